package outcome_test

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/evoslurm/evoslurm/adapter/lab/outcome"
	"github.com/evoslurm/evoslurm/adapter/lab/trace"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest/must"
)

// TestLayout checks that every job has as many nodes as its outcome says at every second, and
// shares them with no other.
func TestLayout(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := outcome.Run{Nodes: rapid.IntRange(1, 9).Draw(t, "nodes")}
		const last = 40
		used := make([]int, last)
		for i := range rapid.IntRange(0, 12).Draw(t, "jobs") {
			j := outcome.Job{ID: fmt.Sprint(i), Start: int64(rapid.IntRange(0, last-10).Draw(t, "start")), State: outcome.Completed}
			at := j.Start
			var want []int
			for range rapid.IntRange(1, 3).Draw(t, "sizes") {
				n := rapid.IntRange(1, o.Nodes).Draw(t, "n")
				j.Sizes = append(j.Sizes, outcome.Size{At: at, Nodes: n})
				for d := rapid.IntRange(0, 3).Draw(t, "d"); d > 0; d-- {
					want = append(want, n)
					at++
				}
			}
			j.End = at
			j.Sizes = append(j.Sizes, outcome.Size{At: at})
			room := true
			for k, n := range want {
				room = room && used[int(j.Start)+k]+n <= o.Nodes
			}
			if room {
				for k, n := range want {
					used[int(j.Start)+k] += n
				}
				o.Jobs = append(o.Jobs, j)
			}
		}
		blocks, err := o.Layout()
		must.OK(t, err)
		whose := map[[2]int]int{}
		had := map[[2]int]int{}
		for _, b := range blocks {
			if b.First < 0 || b.Last >= o.Nodes {
				t.Fatalf("%+v", b)
			}
			for at := int(b.Start); at < int(b.End); at++ {
				for n := b.First; n <= b.Last; n++ {
					if other, taken := whose[[2]int{at, n}]; taken {
						t.Fatalf("jobs %d and %d have node %d at %d", other, b.Job, n, at)
					}
					whose[[2]int{at, n}] = b.Job
				}
				had[[2]int{b.Job, at}] += b.Last - b.First + 1
			}
		}
		for i, j := range o.Jobs {
			for at := range last {
				want := 0
				for k, s := range j.Sizes {
					if int64(at) >= s.At && (k+1 == len(j.Sizes) || int64(at) < j.Sizes[k+1].At) {
						want = s.Nodes
					}
				}
				if got := had[[2]int{i, at}]; got != want {
					t.Fatalf("job %d has %d nodes at %d, want %d", i, got, at, want)
				}
			}
		}
		// The nodes in use over time are the jobs'.
		series, _, _ := o.Series(last, last)
		for at, want := range used {
			if d := series[at] - float64(want); d > 1e-6 || d < -1e-6 {
				t.Fatalf("%v nodes in use at %d, want %d", series[at], at, want)
			}
		}
	})
}

const result = `{"strategy":"2X+c","nodes":4,"sidecar":true,"made":{"command":"evosim run w.json","version":"v1","seed":"3"},"jobs":[
{"id":"b","submit":5,"start":10,"end":30,"limit":60,"state":"COMPLETED","sizes":[{"at":10,"nodes":1},{"at":30,"nodes":0}]},
{"id":"a","evolving":true,"submit":0,"start":0,"end":30,"state":"COMPLETED","sizes":[{"at":0,"nodes":1},{"at":30,"nodes":0}],
 "steps":[{"step":1,"nodes":1,"at":0},{"step":2,"nodes":3,"at":10},{"step":3,"nodes":1,"at":20}],"planned":[{"at":0,"nodes":1},{"at":9,"nodes":3},{"at":30,"nodes":0}]},
{"id":"c","submit":7,"start":-1,"end":-1,"state":"REFUSED","reason":"too large","sizes":[]}],"metrics":{"allocated":77}}`

// TestRead reads a result of evosim run with nodes from further Slurm jobs, and writes Batsim's
// files and Perfetto's.
func TestRead(t *testing.T) {
	o, err := outcome.Read(strings.NewReader(result), "x")
	must.OK(t, err)
	if o.Name != "2X+c" || o.Nodes != 4 || o.Allocated != 77 || o.Made.Seed != "3" || o.Jobs[0].ID != "a" {
		t.Errorf("%+v", o)
	}
	if diff := cmp.Diff([]outcome.Size{{At: 0, Nodes: 1}, {At: 10, Nodes: 3}, {At: 20, Nodes: 1}, {At: 30}}, o.Jobs[0].Sizes); diff != "" {
		t.Error(diff)
	}
	var b bytes.Buffer
	must.OK(t, outcome.WriteJobs(&b, &o))
	const want = `job_id,workload_name,profile,submission_time,requested_number_of_resources,requested_time,success,final_state,starting_time,execution_time,finish_time,waiting_time,turnaround_time,stretch,allocated_resources,consumed_energy,metadata
a,evoslurm,,0,1,30,1,COMPLETED_SUCCESSFULLY,0,30,30,0,30,1.000000,0-2,-1,"1@10s,3@10s,1@10s"
b,evoslurm,,5,1,60,1,COMPLETED_SUCCESSFULLY,10,20,30,5,25,1.250000,3,-1,
`
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Error(diff)
	}
	if _, err := csv.NewReader(&b).ReadAll(); err != nil {
		t.Error(err)
	}
	b.Reset()
	must.OK(t, outcome.WriteSchedule(&b, &o, "v1"))
	var schedule map[string]any
	must.OK(t, json.Unmarshal(b.Bytes(), &schedule))
	for key, want := range map[string]any{"makespan": 30., "nb_jobs": 3., "nb_jobs_finished": 2., "nb_jobs_rejected": 1., "mean_waiting_time": 2.5, "max_slowdown": 1.25, "time_computing": 77., "time_idle": 43., "nb_computing_machines": 4., "batsim_version": "evoslurm v1"} {
		if schedule[key] != want {
			t.Errorf("%s: %v, want %v", key, schedule[key], want)
		}
	}
	b.Reset()
	must.OK(t, outcome.WritePerfetto(&b, &o))
	var events struct {
		TraceEvents []struct {
			Ph, Name string
			Tid      int
			Ts, Dur  int64
			Args     map[string]any
		}
	}
	must.OK(t, json.Unmarshal(b.Bytes(), &events))
	seen := map[string]bool{}
	for _, e := range events.TraceEvents {
		seen[fmt.Sprint(e.Ph, " ", e.Name, " ", e.Tid, " ", e.Ts, " ", e.Dur)] = true
	}
	for _, want := range []string{"X job a 1 0 30000000", "X job b 2 10000000 20000000", "X 3 nodes 1 10000000 10000000", "C nodes in use 0 10000000 0"} {
		if !seen[want] {
			t.Errorf("no event %q in %v", want, seen)
		}
	}
}

// TestBad checks that a file that is not an outcome is rejected with a reason.
func TestBad(t *testing.T) {
	for text, want := range map[string]string{
		result[:len(result)/2]:                 "the file is cut short",
		`{"strategy":"x","nodes":0,"jobs":[]}`: "0 nodes: must be within",
		`{"strategy":"x","nodes":4,"jobs":[{"id":"a","submit":9,"start":3,"end":5}]}`:                                      "not in this order",
		`{"strategy":"x","nodes":4,"jobs":[{"id":"a","submit":-9,"start":3,"end":5}]}`:                                     "not times",
		`{"strategy":"x","nodes":4,"jobs":[{"id":"a","start":3,"end":5,"sizes":[{"at":3,"nodes":5}]}]}`:                    "5 nodes from 3 on: not on 4 nodes",
		`{"strategy":"x","nodes":4,"jobs":[{"id":"a","start":3,"end":5,"sizes":[{"at":4,"nodes":1},{"at":3,"nodes":1}]}]}`: "before what is in front of it",
		"; MaxProcs: 4\n1 0 -1 100 2 -1 -1 2 100 -1 1 1 -1 -1 0 -1 -1 -1\n":                                                "no outcome",
		"1 0 5 100 2 -1 -1 2 100 -1 1 1 -1 -1 0 -1 -1 -1\n":                                                                "does not tell of its machine",
		"; MaxProcs: 4\n1 0 5 100 20 -1 -1 2 100 -1 1 1 -1 -1 0 -1 -1 -1\n":                                                "line 2: field 5 (processors): 20, and the machine has 4",
		`{"strategy":"x","nodes":1e99,"jobs":[]}`:                                                                          "cannot unmarshal",
		`{"strategy":"x","nodes":4,"jobs":[{"id":"a","start":3,"end":900000000000000000,"sizes":[]}]}`:                     "not times",
	} {
		if _, err := outcome.Read(strings.NewReader(text), "x"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60s: got %v, want %q", text, err, want)
		}
	}
}

// TestFromTrace reads an outcome in SWF, with its header's notes on how it was made.
func TestFromTrace(t *testing.T) {
	tr, err := trace.Read(strings.NewReader("; MaxProcs: 4\n; Scheduler: easy\n; Command: evosim baseline x.swf\n; MadeBy: v9\n1 100 5 20 2 -1 -1 2 100 -1 1 1 -1 -1 0 -1 -1 -1\n2 110 -1 0 2 -1 -1 2 100 -1 5 1 -1 -1 0 -1 -1 -1\n"))
	must.OK(t, err)
	o, err := outcome.FromTrace(tr, "x")
	must.OK(t, err)
	want := outcome.Outcome{Name: "easy", Made: outcome.Made{Command: "evosim baseline x.swf", Version: "v9"}, Run: outcome.Run{Nodes: 4, Jobs: []outcome.Job{
		{ID: "1", Start: 5, End: 25, Limit: 100, User: 1, Area: 40, State: outcome.Completed, Sizes: []outcome.Size{{At: 5, Nodes: 2}, {At: 25}}},
		{ID: "2", Submit: 10, Start: -1, End: -1, Limit: 100, User: 1, State: "CANCELLED"}}}}
	if diff := cmp.Diff(want, o); diff != "" {
		t.Error(diff)
	}
}
