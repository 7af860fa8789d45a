package plan

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state/statetest"
	"github.com/evoslurm/evoslurm/planner"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// TestAimNear: n1 and n4 are in use for five minutes, so three nodes are on two switches until then.
func TestAimNear(t *testing.T) {
	for name, c := range map[string]struct {
		aim     planner.Aim
		network slurmctl.Topology
		allow   []string
		wait    time.Duration
		since   int64 // relative to now; 0: it could not start
		start   int64
		says    string
	}{
		"no aim":              {planner.NoAim, twoSwitches, planner.Aims(), 10 * time.Minute, 0, 0, ""},
		"it waits":            {planner.AimNear, twoSwitches, planner.Aims(), 10 * time.Minute, 0, 302, "--prefer-near takes 2 switches in all steps together, not 3: starts at"},
		"for too long":        {planner.AimNear, twoSwitches, planner.Aims(), time.Minute, 0, 0, "--prefer-near changes nothing"},
		"not at all":          {planner.AimNear, twoSwitches, planner.Aims(), 0, 0, 0, "--prefer-near changes nothing"},
		"it has waited":       {planner.AimNear, twoSwitches, planner.Aims(), 10 * time.Minute, -600, 0, ""},
		"it waits since":      {planner.AimNear, twoSwitches, planner.Aims(), 10 * time.Minute, -100, 302, "--prefer-near"},
		"it waits not longer": {planner.AimNear, twoSwitches, planner.Aims(), 6 * time.Minute, -100, 0, "--prefer-near"},
		"not allowed":         {planner.AimNear, twoSwitches, []string{"start"}, 10 * time.Minute, 0, 0, "the site does not allow it"},
		"without a topology":  {planner.AimNear, slurmctl.Topology{}, planner.Aims(), 10 * time.Minute, 0, 0, "Slurm knows no switches"},
		"nothing is idle":     {planner.AimWaste, twoSwitches, planner.Aims(), 10 * time.Minute, 0, 0, "--prefer-waste changes nothing"},
		"it starts at once":   {planner.AimStart, twoSwitches, planner.Aims(), 10 * time.Minute, 0, 0, "--prefer-start changes nothing"},
	} {
		t.Run(name, func(t *testing.T) {
			b := statetest.New(t, 6)
			b.Core.Topology, b.Core.Config.AllowPrefer, b.Core.Config.PreferWait = c.network, c.allow, c.wait
			b.StockRuns(1, "n1,n4", 5*time.Minute)
			j := b.Evolving(2, 5, "3@5m,1@5m", time.Hour)
			if j.Aim = c.aim; c.since != 0 {
				j.AimSince = statetest.Second + c.since
			}
			planAll(b)
			if len(j.Plan) == 0 || j.Plan[0].Start != statetest.Second+c.start {
				t.Fatalf("%+v, %q", j.Plan, j.Reason().Words())
			}
			if says := j.Reason().Words(); !strings.Contains(says, c.says) || c.says == "" && says != "" {
				t.Errorf("%q", says)
			}
			if waits := j.AimSince == statetest.Second || c.since != 0 && j.AimStart == j.Plan[0].Start; c.start > 0 && !waits {
				t.Errorf("since %d for %d", j.AimSince, j.AimStart)
			}
		})
	}
}

// TestAimMovesNobody: the plan of all other jobs is the same whatever jobs prefer, until one could have started; then the
// others are planned around the start that it waits for.
func TestAimMovesNobody(t *testing.T) {
	b := statetest.New(t, 6)
	b.Core.Topology, b.Core.Strategy.ExpandLimit = twoSwitches, 2
	b.StockRuns(1, "n1,n4", 5*time.Minute)
	var all []*state.Job
	for i, profile := range []string{"3@5m,1@5m", "1@2m,4@5m", "3@5m", "2@1m,1@9m,5@2m", "6@1m"} {
		all = append(all, b.Evolving(10+i, uint64(100-i), profile, time.Hour))
	}
	planAll(b)
	starts := make([]int64, len(all))
	for i, j := range all {
		starts[i] = j.Plan[0].Start
	}
	for k := range all {
		for _, aim := range []planner.Aim{planner.AimStart, planner.AimWaste, planner.AimNear} {
			all[k].Aim = aim
			planAll(b)
			for i, j := range all {
				if i != k && j.Plan[0].Start != starts[i] {
					t.Errorf("%v of job %d moves job %d from %d to %d", aim, k, i, starts[i], j.Plan[0].Start)
				}
			}
			all[k].Aim, all[k].AimSince, all[k].AimStart = planner.NoAim, 0, 0
		}
	}
}

// TestAimWaits: once a job could have started without its aim, the others are planned around the start that it waits for.
func TestAimWaits(t *testing.T) {
	b := statetest.New(t, 6)
	b.Core.Topology = twoSwitches
	b.StockRuns(1, "n1,n4", 5*time.Minute)
	near, long, short := b.Evolving(10, 9, "3@5m,1@5m", time.Hour), b.Evolving(11, 8, "1@20m", time.Hour), b.Evolving(12, 7, "2@1m", time.Hour)
	near.Aim = planner.AimNear
	for _, starts := range [][2]int64{{364, 302}, {302, 0}} { // at first, near comes after the short job
		planAll(b)
		if near.AimSince != statetest.Second || near.AimStart != near.Plan[0].Start || near.AimStart != statetest.Second+starts[0] || long.Plan[0].Start != statetest.Second || short.Plan[0].Start != statetest.Second+starts[1] {
			t.Fatalf("since %d for %d: %v, %v, %v", near.AimSince, near.AimStart, near.Plan, long.Plan, short.Plan)
		}
	}
}

// TestAimsOfManyUsers: a user's first job counts, however many jobs of others come before it.
func TestAimsOfManyUsers(t *testing.T) {
	b := statetest.New(t, 6)
	b.Core.Topology = twoSwitches
	for i := range mostAimed + MostAimed {
		j := b.Evolving(10+i, uint64(100-i), "1@5m,2@5m", time.Hour)
		j.UID, j.Aim = uint32(2000+i/MostAimed), planner.AimNear
	}
	last := b.Evolving(80, 1, "1@5m,2@5m", time.Hour)
	last.UID, last.Aim = 1001, planner.AimNear
	planAll(b)
	if len(last.Plan) == 0 || strings.Contains(last.Reason().Words(), "counts when earlier jobs have begun") {
		t.Errorf("%q", last.Reason().Words())
	}
}

// TestAimsInTurns: the aims of a few jobs of a user count at a time, and those of other users beside them.
func TestAimsInTurns(t *testing.T) {
	b := statetest.New(t, 6)
	b.Core.Topology = twoSwitches
	var all []*state.Job
	for i := range 2 * MostAimed {
		all = append(all, b.Evolving(10+i, uint64(100-i), "1@5m,2@5m", time.Hour))
	}
	other := b.Evolving(51, 1, "1@5m,2@5m", time.Hour)
	other.UID = 1001
	for _, j := range append(all, other) {
		j.Aim = planner.AimNear
	}
	planAll(b)
	late := slices.DeleteFunc(append(all, other), func(j *state.Job) bool {
		return !strings.Contains(j.Reason().Words(), "counts when earlier jobs have begun")
	})
	if len(late) != MostAimed || late[0].SlurmID != uint32(10+MostAimed) || len(other.Plan) == 0 {
		t.Errorf("the aims of %d jobs do not count", len(late))
	}
}
