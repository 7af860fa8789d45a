package plan

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state/statetest"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// twoSwitches has three nodes on each of two switches.
var twoSwitches = slurmctl.Topology{Switches: []slurmctl.Switch{{Name: "a", Above: 2, Nodes: statetest.Names(1, 3)}, {Name: "b", Above: 2, Nodes: statetest.Names(4, 6)}, {Name: "top", Above: -1}}}

// TestFewSwitches: n1 and n4 are in use, so three nodes are on two switches.
func TestFewSwitches(t *testing.T) {
	for name, c := range map[string]struct {
		asks    slurmctl.JobRequest
		network slurmctl.Topology
		since   int64 // relative to now; 0: it could not start
		start   int64
		waits   bool
	}{
		"it asks for none":      {slurmctl.JobRequest{}, twoSwitches, 0, 0, false},
		"it waits":              {slurmctl.JobRequest{Switches: 1, SwitchWait: 5 * time.Minute}, twoSwitches, 0, 300, true},
		"it has waited":         {slurmctl.JobRequest{Switches: 1, SwitchWait: 5 * time.Minute}, twoSwitches, -300, 0, false},
		"it has waited a while": {slurmctl.JobRequest{Switches: 1, SwitchWait: 5 * time.Minute}, twoSwitches, -200, 100, true},
		"two will do":           {slurmctl.JobRequest{Switches: 2, SwitchWait: 5 * time.Minute}, twoSwitches, 0, 0, false},
		"it waits for nothing":  {slurmctl.JobRequest{Switches: 1}, twoSwitches, 0, 0, false},
		"without a topology":    {slurmctl.JobRequest{Switches: 1, SwitchWait: 5 * time.Minute}, slurmctl.Topology{}, 0, 0, false},
		"on blocks":             {slurmctl.JobRequest{Switches: 1, SwitchWait: 5 * time.Minute}, slurmctl.Topology{Switches: twoSwitches.Switches, Blocks: true}, 0, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			b := statetest.New(t, 6)
			b.Core.Topology = c.network
			b.StockRuns(1, "n1,n4", time.Hour)
			j := b.Evolving(2, 5, "3@5m,1@5m", time.Hour)
			if j.Asked = &c.asks; c.since != 0 {
				j.CouldStart = statetest.Second + c.since
			}
			planAll(b)
			if len(j.Plan) == 0 || j.Plan[0].Start != statetest.Second+c.start {
				t.Fatalf("%+v", j.Plan)
			}
			if waits := strings.Contains(j.Reason().Words(), "at most 1 leaf switches"); waits != c.waits || waits && j.CouldStart == 0 {
				t.Errorf("%q, %d", j.Reason().Words(), j.CouldStart)
			}
		})
	}
}

// TestTogetherInTurns: one user's many jobs with --switches are planned a few at a time, and other jobs beside them.
func TestTogetherInTurns(t *testing.T) {
	b := statetest.New(t, 6)
	b.Core.Topology = twoSwitches
	var all []*state.Job
	for i := range 2 * MostTogether {
		j := b.Evolving(10+i, uint64(100-i), "1@5m,2@5m", time.Hour)
		j.Asked = &slurmctl.JobRequest{Switches: 1, SwitchWait: time.Minute}
		all = append(all, j)
	}
	plain, other := b.Evolving(50, 2, "1@5m,2@5m", time.Hour), b.Evolving(51, 1, "1@5m,2@5m", time.Hour)
	other.UID, other.Asked = 1001, all[0].Asked
	planAll(b)
	all = append(all, plain, other)
	unplanned := slices.DeleteFunc(slices.Clone(all), func(j *state.Job) bool { return len(j.Plan) > 0 })
	if len(unplanned) != MostTogether || unplanned[0] != all[MostTogether] {
		t.Errorf("%d jobs are not planned", len(unplanned))
	}
	if why := all[MostTogether].Reason().Words(); !strings.Contains(why, "with --switches") {
		t.Errorf("%q", why)
	}
}
