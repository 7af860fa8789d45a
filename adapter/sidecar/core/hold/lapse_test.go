package hold

import (
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/internal/drivemode"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
	"github.com/evoslurm/evoslurm/planner"
)

// TestOverrun: a step that is planned to last longer than its profile says is late only
// beyond that.
func TestOverrun(t *testing.T) {
	begun := time.Unix(1_000_000, 0)
	profile := planner.Profile{{Duration: 100, Nodes: 1}, {Duration: 100, Nodes: 4}}
	for _, c := range []struct {
		name                string
		planned, overdue    int64 // ends, in seconds after the beginning
		awake, now, overran int64
	}{
		{"as planned", 100, 0, 0, 130, 30},
		{"in time", 100, 0, 0, 90, -10},
		{"planned to be expanded", 150, 0, 0, 130, -20},
		{"beyond that", 150, 0, 0, 160, 10},
		{"refitted since", 165, 150, 0, 163, 13},
		{"refitted since, without expansion", 165, 100, 0, 163, 63},
		{"no plan", 0, 0, 0, 130, 30},
		{"the sidecar was away", 100, 0, 125, 130, 5},
	} {
		j := &state.Job{Mode: drivemode.Merge.Means(), Job: &row.Job{Life: row.Life{State: row.Running, Step: 1, StepStarted: begun}, Terms: row.Terms{Profile: profile}}}
		if c.planned > 0 {
			j.Plan = []msg.PlannedStep{{Start: begun.Unix(), End: begun.Unix() + c.planned}, {}}
		}
		if c.overdue > 0 {
			j.Overdue = begun.Unix() + c.overdue
		}
		second := func(s int64) time.Time { return begun.Add(time.Duration(s) * time.Second) }
		ctl := &state.Core{Awake: second(c.awake)}
		if got := Overrun(ctl, j, second(c.now)); got != time.Duration(c.overran)*time.Second {
			t.Errorf("%s: late by %v, want %d s", c.name, got, c.overran)
		}
	}
}
