//go:build live

package live_test

import (
	"bytes"
	"flag"
	"math"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/lab/workload"
	"github.com/evoslurm/evoslurm/adapter/trials/rig"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest/must"
)

var workloadFile = flag.String("live.workload", "testdata/hour.json", "workload file that TestHour plays, on as many nodes as it says")

// TestHour plays an hour of a trace, eight times as fast, and reports how far off the model is.
func TestHour(t *testing.T) {
	text := must.Read(t, *workloadFile)
	w, err := workload.Read(bytes.NewReader(text))
	must.OK(t, err)
	s := newSite(t, w.Nodes, time.Hour)
	before := rig.Load()
	p := s.play(string(text))
	d := p.diff
	near := map[float64]int{1: d.Both - len(d.Jobs), 2: d.Both - len(d.Jobs), 8: d.Both - len(d.Jobs)} // what does not differ
	for _, j := range d.Jobs {
		for within := range near {
			if math.Abs(j.B-j.A) <= within {
				near[within]++
			}
		}
	}
	t.Logf("load %s, %s\n%s", before, rig.Load(), p.table)
	t.Logf("of %d jobs %d start within 1 s, %d within 2 s, %d within 8 s of when the model has them; makespan %.0f s, by the model %.0f s (%+.1f %%)",
		d.Both, near[1], near[2], near[8], d.Makespan[1], d.Makespan[0], 100*(d.Makespan[0]/d.Makespan[1]-1))
}
