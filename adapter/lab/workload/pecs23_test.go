package workload_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/evoslurm/evoslurm/adapter/lab/machine"
	"github.com/evoslurm/evoslurm/adapter/lab/workload"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest/must"
)

// TestPECS23Published checks that ten workloads match the publication's, by its mean run time of
// rigid jobs: 3353.6868 s, at least 3340.2 and at most 3363.6 s.
func TestPECS23Published(t *testing.T) {
	sum, least, most := 0., math.Inf(1), 0.
	for seed := range 10 {
		jobs := workload.DefaultPECS23.Generate(fmt.Sprintf("S%d", seed))
		runtime := 0.
		for _, j := range jobs {
			p := j.Phases[0]
			runtime += p.Work / p.Speed[p.Pref] / float64(len(jobs))
		}
		sum, least, most = sum+runtime, min(least, runtime), max(most, runtime)
	}
	if got := fmt.Sprintf("%.4f %.1f %.1f", sum/10, least, most); got != "3353.6868 3340.2 3363.6" {
		t.Error(got)
	}
}

// TestPECS23Classes: what the model's rules give for every preferred size.
func TestPECS23Classes(t *testing.T) {
	got := map[string]int{}
	for _, j := range workload.DefaultPECS23.Generate("S3") {
		p := j.Phases[0]
		got[fmt.Sprintf("%d-%d-%d", p.Min, p.Pref, p.Max)]++
		must.OK(t, j.As(machine.Malleable).Validate(128))
	}
	for class, atLeast := range map[string]int{"1-1-128": 5, "2-2-16": 20, "2-4-16": 40, "2-8-16": 90, "4-16-64": 200, "8-32-128": 450, "32-64-128": 1000} {
		if got[class] < atLeast {
			t.Errorf("%s: %d jobs of %v", class, got[class], got)
		}
	}
	if len(got) != 7 {
		t.Errorf("%v", got)
	}
}

// TestPECS23Evolving: phases have the job's size once at least, and what does not declare them
// asks for the largest.
func TestPECS23Evolving(t *testing.T) {
	model := workload.PECS23{Nodes: 128, Days: 3, Phases: 5}
	jobs := model.Generate("S1")
	several, submit := 0, int64(0)
	area := 0.
	for _, j := range jobs {
		if j.Submit < submit || j.Draw < 0 || j.Draw >= 1 || len(j.Phases) > 5 {
			t.Fatalf("%+v", j)
		}
		submit = j.Submit
		if len(j.Phases) > 1 {
			several++
		}
		peak := 0
		for _, p := range j.Phases {
			peak = max(peak, p.Pref)
		}
		for _, kind := range []machine.Kind{machine.Rigid, machine.Moldable, machine.Malleable, machine.Evolving, machine.Both} {
			job := j.As(kind)
			must.OK(t, job.Validate(128))
			if kind == machine.Rigid && job.Phases[0].Pref != peak {
				t.Fatalf("rigid: %d nodes, the largest phase has %d", job.Phases[0].Pref, peak)
			}
		}
		for _, p := range j.Phases {
			area += p.Work / p.Speed[peak] * float64(peak)
		}
	}
	if several < len(jobs)/2 {
		t.Errorf("%d of %d jobs have phases", several, len(jobs))
	}
	if load := area / (3 * 24 * 3600 * 128); load < .97 || load > 1.03 {
		t.Errorf("as rigid jobs they load the machine to %v", load)
	}
}

func TestPECS23Validate(t *testing.T) {
	for what, p := range map[string]workload.PECS23{
		"nodes: 1 is not":   {Nodes: 1, Days: 1, Phases: 1},
		"days: 0 is not":    {Nodes: 2, Phases: 1},
		"phases: 101 is":    {Nodes: 2, Days: 1, Phases: 101},
		"nodes: 5000 is no": {Nodes: 5000, Days: 1, Phases: 1},
	} {
		if err := p.Validate(); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("got %v, want %q", err, what)
		}
	}
}
