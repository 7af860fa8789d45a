package hold

import (
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// TestLeftHold checks which jobs count as ones that slipped into an open hold and left it: none that may have come in
// another way.
func TestLeftHold(t *testing.T) {
	at := func(s int64) time.Time { return time.Unix(1000+s, 0) }
	j := &state.Job{}
	c := &state.Core{}
	c.ByID = map[slurmctl.JobID]*state.Job{8: j}
	open := state.Opening{Job: j, Hold: "evo_7_2_1", Nodes: []string{"n3", "n4"}, Since: at(0)}
	closed := open
	closed.Until = at(5)
	for name, test := range map[string]struct {
		o      state.Opening
		change func(*slurmctl.Job)
		want   bool
	}{
		"while it is open":           {open, func(*slurmctl.Job) {}, true},
		"before it was closed":       {closed, func(*slurmctl.Job) {}, true},
		"into another reservation":   {closed, func(r *slurmctl.Job) { r.Reservation = "evo_9_1_1" }, true},
		"it is still in the hold":    {closed, func(r *slurmctl.Job) { r.Reservation = "evo_7_2_1" }, false},
		"it began before":            {closed, func(r *slurmctl.Job) { r.StartTime = at(-1) }, false},
		"as others could begin":      {closed, func(r *slurmctl.Job) { r.StartTime = at(5) }, false},
		"it began after the closing": {closed, func(r *slurmctl.Job) { r.StartTime = at(6) }, false},
		"on other nodes":             {closed, func(r *slurmctl.Job) { r.NodeList = []string{"n5"} }, false},
		"it is the job's own":        {closed, func(r *slurmctl.Job) { r.ID = 8 }, false},
		"it waits":                   {open, func(r *slurmctl.Job) { r.State = slurmctl.Pending }, false},
		"it has ended":               {open, func(r *slurmctl.Job) { r.State = slurmctl.Cancelled }, false},
	} {
		r := slurmctl.Job{ID: 9, State: slurmctl.Running, NodeList: []string{"n2", "n3"}, StartTime: at(3)}
		test.change(&r)
		if got := leftHold(c, test.o, &r); got != test.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// TestNoteClosed checks from when on jobs of the same user on a growth's nodes are innocent.
func TestNoteClosed(t *testing.T) {
	since, now := time.Unix(1000, 0), time.Unix(1005, 600)
	for name, test := range map[string]struct {
		change func(c *state.Core, j *state.Job)
		want   time.Time
	}{
		"it is open": {func(*state.Core, *state.Job) {}, time.Time{}},
		"it is closed": {func(c *state.Core, _ *state.Job) {
			c.Reservations["evo_7_2_1"] = slurmctl.Reservation{Users: []string{"root"}}
		}, time.Unix(1006, 0)},
		"the job has it":       {func(_ *state.Core, j *state.Job) { j.Held = []msg.Part{{ID: 7, Nodes: []string{"n3"}}} }, time.Unix(1005, 0)},
		"it is given up":       {func(c *state.Core, _ *state.Job) { noteGivenUp(c, "evo_7_2_1") }, time.Unix(1005, 0)},
		"nobody knows who did": {func(c *state.Core, _ *state.Job) { delete(c.Reservations, "evo_7_2_1") }, since},
	} {
		j := &state.Job{Job: &row.Job{}}
		j.User = "user"
		c := &state.Core{Now: now}
		c.Reservations = map[string]slurmctl.Reservation{"evo_7_2_1": {Users: []string{"user"}}}
		c.Opened = map[string]state.Opening{"evo_7_2_3": {Job: j, Hold: "evo_7_2_1", Nodes: []string{"n3"}, Since: since}}
		test.change(c, j)
		noteClosed(c)
		if got := c.Opened["evo_7_2_3"].Until; !got.Equal(test.want) {
			t.Errorf("%s: %v, want %v", name, got, test.want)
		}
	}
}
