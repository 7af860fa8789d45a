package lend

import (
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state/statetest"
	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
)

func TestFrequencyOfStep(t *testing.T) {
	b := statetest.New(t, 8)
	j := b.Evolving(1, 1, "2@10m,4@10m,1@10m", time.Hour)
	b.Runs(j, "n[1-2]")
	if got := Allocation(b.Core, j).CPUFreq; got != "" {
		t.Errorf("a job without frequencies: %q", got)
	}
	j.Frequencies = []string{"high", "", "2100000"}
	for _, c := range []struct {
		step  int
		state row.State
		want  string
	}{
		{1, row.Running, "high"}, {2, row.Running, ""}, {3, row.Running, "2100000"}, {0, row.Starting, ""}, {4, row.Running, ""},
		{1, row.Waiting, "low"}, {2, row.Waiting, "low"}, // they only wait
	} {
		j.Step, j.State = c.step, c.state
		if got := frequency(j); got != c.want {
			t.Errorf("%s in step %d: %q, want %q", c.state, c.step, got, c.want)
		}
	}
}
