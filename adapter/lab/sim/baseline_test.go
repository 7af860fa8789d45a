package sim_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/evoslurm/evoslurm/adapter/lab/sim"
	"github.com/evoslurm/evoslurm/adapter/lab/trace"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest/must"
)

// TestBaseline checks a few jobs by hand, and the contents of an outcome.
func TestBaseline(t *testing.T) {
	const text = `; MaxProcs: 20
1 100 -1 100 12 -1 -1 12 100 -1 1 1 -1 -1 0 -1 -1 -1
2 101 -1 100 16 -1 -1 16 100 -1 1 1 -1 -1 0 -1 -1 -1
3 102 -1 200  6 -1 -1  6 200 -1 1 1 -1 -1 0 -1 -1 -1
4 103 -1   0  6 -1 -1  6 200 -1 5 1 -1 -1 0 -1 -1 -1
5 104 -1  50  3 -1 -1  3  90 -1 1 1 -1 -1 0 -1 -1 -1
`
	for name, want := range map[string]string{"fcfs": "0 99 198 196", "easy": "0 99 198 0", "conservative": "0 99 198 0"} {
		tr, err := trace.Read(strings.NewReader(text))
		must.OK(t, err)
		out, err := sim.Baseline(t.Context(), tr, name, 10, 2)
		must.OK(t, err)
		var waits []string
		for _, j := range out.Jobs {
			waits = append(waits, fmt.Sprint(j.Wait))
		}
		if got := strings.Join(waits, " "); got != want || out.Header.Machine() != 10 || out.Jobs[1].Processors != 8 {
			t.Errorf("%s: waits %s, want %s; %+v", name, got, want, out.Header)
		}
	}
	if _, err := sim.Baseline(t.Context(), trace.Trace{}, "sjf", 10, 1); err == nil || !strings.Contains(err.Error(), "fcfs, easy, conservative") {
		t.Errorf("got %v", err)
	}
}
