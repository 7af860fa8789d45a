package outcome_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/evoslurm/evoslurm/adapter/lab/outcome"
	"github.com/evoslurm/evoslurm/adapter/lab/trace"
)

// TestResults checks that output of evosim run is a trace of the jobs' outcomes.
func TestResults(t *testing.T) {
	const text = `{"strategy":"noX","nodes":4,"jobs":[
{"id":"7","submit":5,"start":8,"end":20,"state":"COMPLETED","user":3,"area":20,"sizes":[{"at":8,"nodes":1},{"at":12,"nodes":2},{"at":20,"nodes":0}]},
{"id":"8","submit":6,"start":20,"end":30,"state":"TIMEOUT","user":4,"area":9,"sizes":[{"at":20,"nodes":1},{"at":30,"nodes":0}]},
{"id":"9","submit":7,"start":-1,"end":-1,"state":"WAITING","user":4,"area":9,"sizes":null}]}`
	read := func(text string) (trace.Trace, error) {
		r, err := trace.NewReader(strings.NewReader(text), trace.Options{}, outcome.Results)
		if err != nil {
			return trace.Trace{}, err
		}
		return r.ReadAll()
	}
	got, err := read(text)
	if err != nil {
		t.Fatal(err)
	}
	want := []trace.Job{trace.Unknown, trace.Unknown, trace.Unknown}
	for i, v := range []struct{ number, submit, wait, run, nodes, status, user int64 }{{7, 5, 3, 12, 2, 1, 3}, {8, 6, 14, 10, 1, 0, 4}, {9, 7, -1, -1, -1, 5, 4}} {
		j := &want[i]
		j.Number, j.Submit, j.Wait, j.Run, j.Processors, j.Status, j.User = v.number, float64(v.submit), float64(v.wait), float64(v.run), v.nodes, v.status, v.user
	}
	if diff := cmp.Diff(want, got.Jobs); diff != "" {
		t.Error(diff)
	}
	for bad, why := range map[string]string{
		strings.Replace(text, `"8"`, `"busy[0]"`, 1): `job 2: id: "busy[0]": in a trace jobs have numbers`,
		text[:len(text)-40]:                          "the file is cut short",
	} {
		if _, err := read(bad); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%v, want %s", err, why)
		}
	}
}
