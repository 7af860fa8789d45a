package workload_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/evoslurm/evoslurm/adapter/lab/workload"
)

// TestOAR checks that the background has its load and its start time, and does not delay itself.
func TestOAR(t *testing.T) {
	o := workload.DefaultOAR
	for test := range 20 {
		jobs, err := o.Generate(1, test)
		if err != nil || len(jobs) != o.Jobs {
			t.Fatalf("%d jobs, %v", len(jobs), err)
		}
		area := 0.
		for _, j := range jobs {
			p := j.Phases[0]
			area += p.Work
			if err := j.Validate(o.Cores); err != nil || j.Submit < o.Quiet || p.Pref%o.Node != 0 || p.Pref > o.Cores/4 ||
				j.Submit+p.Seconds(p.Pref) > o.Seconds {
				t.Fatalf("%+v: %v", j, err)
			}
			used := 0
			for _, k := range jobs {
				if k.Submit <= j.Submit && j.Submit < k.Submit+k.Phases[0].Seconds(k.Phases[0].Pref) {
					used += k.Phases[0].Pref
				}
			}
			if used > o.Cores {
				t.Fatalf("%d cores at second %d", used, j.Submit)
			}
		}
		if load := area / float64(o.Cores) / float64(o.Seconds); load < .397 || load > .4 {
			t.Errorf("load %v", load)
		}
		if again, _ := o.Generate(1, test); !reflect.DeepEqual(jobs, again) {
			t.Error("not equal")
		}
	}
}

func TestOARValidate(t *testing.T) {
	for what, change := range map[string]func(*workload.OAR){
		"cores: 66 is no multiple": func(o *workload.OAR) { o.Cores = 66 },
		"seconds: 1 is not":        func(o *workload.OAR) { o.Seconds = 1 },
		"quiet: 18000 is not":      func(o *workload.OAR) { o.Quiet = 18000 },
		"load: 0 is not":           func(o *workload.OAR) { o.Load = 0 },
		"load: 90 % of 18000 s":    func(o *workload.OAR) { o.Load = 90 },
		"bursts: 0 is not":         func(o *workload.OAR) { o.Bursts = 0 },
		"jobs: 4 is not within 5":  func(o *workload.OAR) { o.Jobs = 4 },
	} {
		o := workload.DefaultOAR
		change(&o)
		if err := o.Validate(); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("got %v, want %q", err, what)
		}
	}
	o := workload.DefaultOAR
	o.Quiet, o.Bursts, o.Jobs, o.Load = 0, 1, 1, 30 // 16 cores never make 30 % of 64
	if _, err := o.Generate(1, 0); err == nil || !strings.Contains(err.Error(), "do not fit beside each other") {
		t.Errorf("got %v", err)
	}
}
