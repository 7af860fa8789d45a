package act

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state/statetest"
	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
	"github.com/evoslurm/evoslurm/planner"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// TestGrowthUndone: a job of 2@10m,4@5m, one minute into its first step, grows to three nodes for three minutes. The growth
// is given up after some time.
func TestGrowthUndone(t *testing.T) {
	for name, c := range map[string]struct {
		change func(t *testing.T, j *state.Job)
		after  time.Duration
		want   string
	}{
		"at once":                      {nil, 0, "2@10m,4@5m [8 8] kept false"},
		"after the end of its step":    {nil, 11 * time.Minute, "2@12m,4@5m [8 8] kept false"},
		"a growth of the profile":      {func(_ *testing.T, j *state.Job) { j.GrowthSettled() }, 0, "2@1m,3@3m,2@6m,4@5m [8 8 8 8] kept true"},
		"with other steps after it":    {func(t *testing.T, j *state.Job) { updates(t, j) }, 0, "2@10m,5@7m [8 8] kept false"},
		"and these changes are undone": {func(t *testing.T, j *state.Job) { updates(t, j); j.UndoChange() }, 0, "2@10m,4@5m [8 8] kept false"},
	} {
		t.Run(name, func(t *testing.T) {
			b := statetest.New(t, 8)
			j := b.Evolving(1, 1, "2@10m,4@5m", time.Hour)
			j.Malleable = &row.Malleable{Max: []int{8, 8}}
			b.Runs(j, "n[1-2]")
			b.Later(time.Minute)
			changes(t, j, "2@1m,3@3m,2@6m,4@5m", state.Target{Ends: true, Grown: 1}, b.Now)
			j.Written(slurmctl.JobUpdate{Comment: new(string)})
			if c.change != nil {
				c.change(t, j)
			}
			j.Failing = b.Now.Add(-time.Hour)
			b.Later(c.after)
			mayGiveUp(b.Core, j, 3, errors.New("no"))
			if got := fmt.Sprintf("%v %v kept %v", j.Profile, j.Malleable.Max, j.Kept != nil); got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
			if j.State != row.Running || j.Growing != nil {
				t.Errorf("%s, growing %v", j.State, j.Growing)
			}
		})
	}
}

// TestGrowthPassed: a growth that another sidecar has led the job past can no longer be undone.
func TestGrowthPassed(t *testing.T) {
	b := statetest.New(t, 8)
	j := b.Evolving(1, 1, "2@1m,3@3m,2@6m", time.Hour)
	b.Runs(j, "n[1-3]")
	j.Step, j.Growing = 2, &row.Growing{Profile: planner.Profile{{Nodes: 2, Duration: 600}}}
	if state.GrowthUndone(j.Job, j.Step) {
		t.Error("it can be undone")
	}
	changes(t, j, "2@1m,3@1m,5@2m", state.Target{}, b.Now)
	if j.Growing != nil {
		t.Errorf("%+v", j.Growing)
	}
	j.Growing = &row.Growing{}
	if j.InStep(b.Now); j.Growing != nil {
		t.Error("it is not settled when a step begins")
	}
}

// updates asks for other coming steps.
func updates(t *testing.T, j *state.Job) {
	t.Helper()
	changes(t, j, "2@1m,5@7m", state.Target{}, j.StepEnded)
}

// changes gives a job another profile.
func changes(t *testing.T, j *state.Job, profile string, to state.Target, at time.Time) {
	t.Helper()
	p, err := planner.ParseProfile(profile)
	if err != nil {
		t.Fatal(err)
	}
	m := &row.Malleable{}
	for range p {
		m.Max = append(m.Max, 8)
	}
	to.Job = &state.Job{Job: &row.Job{Terms: row.Terms{Profile: p, Malleable: m}}}
	j.Change(&to, "a", at)
}
