package core

import (
	"errors"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/internal/config"
	"github.com/evoslurm/evoslurm/adapter/internal/drivemode"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/adopt"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/mode"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/slurm"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state/statetest"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/view"
	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
	"github.com/evoslurm/evoslurm/planner"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// TestDriveRowIsCurrent checks that a job gets its row when it is adopted, when its mode or the site changes, and when
// its request has been read.
func TestDriveRowIsCurrent(t *testing.T) {
	c := statetest.NewCore(config.Default(), time.Now())
	j := &state.Job{Job: &row.Job{Owned: row.Owned{SlurmID: 7}, Terms: row.Terms{Drive: string(drivemode.Merge), Profile: planner.Profile{{Duration: 60, Nodes: 1}}}}}
	check := func(when string, drive drivemode.Mode, on mode.Facts) {
		t.Helper()
		if want := mode.Of(drive, on); j.Mode != want {
			t.Errorf("%s: %+v, want %+v", when, j.Mode, want)
		}
	}
	adopt.Add(c, j)
	check("adopted", drivemode.Merge, mode.Facts{})
	state.SetFacts(c, mode.Facts{ResizesOnce: true, StepManagers: true})
	check("it may have a step manager", drivemode.Merge, mode.Facts{ResizesOnce: true, StepManagers: true})
	c.MayUpdate(false)
	check("Slurm rejects updates", drivemode.Merge, mode.Facts{UpdatesNeedAccount: true, ResizesOnce: true, StepManagers: true})
	c.Snapshot = &state.Snapshot{ByID: map[slurmctl.JobID]*slurmctl.Job{7: {ID: 7}}}
	c.Asked[7] = &state.RequestRead{Known: true}
	adopt.LearnAll(c, c.Snapshot)
	check("it has no step manager", drivemode.Merge, mode.Facts{UpdatesNeedAccount: true, ResizesOnce: true})
	c.MayUpdate(true)
	slurm.Unmerge(c, j, errors.New("no merging"))
	check("turned", drivemode.Companion, mode.Facts{ResizesOnce: true})
	if err := view.CheckJobs(c); err != nil {
		t.Error(err)
	}
	if j.Mode = drivemode.Chain.Means(); view.CheckJobs(c) == nil {
		t.Error("a job with another mode's row passes the check")
	}
}
