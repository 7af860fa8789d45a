package hold

import (
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state/statetest"
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

// TestCameByOther: a companion of one job did not slip into the hold of another job of its user on the same nodes, but what only
// pretends to be such a companion did.
func TestCameByOther(t *testing.T) {
	for name, test := range map[string]struct {
		change func(b *statetest.Bench, other *state.Opening, r *slurmctl.Job)
		left   bool
	}{
		"it is coming":                  {func(*statetest.Bench, *state.Opening, *slurmctl.Job) {}, false},
		"it has come":                   {func(b *statetest.Bench, _ *state.Opening, _ *slurmctl.Job) { b.ByID[9] = b.ByID[8] }, false},
		"it has come, as others may":    {func(b *statetest.Bench, o *state.Opening, _ *slurmctl.Job) { b.ByID[9] = b.ByID[8]; o.Until = b.Now }, false},
		"it has another name":           {func(_ *statetest.Bench, _ *state.Opening, r *slurmctl.Job) { r.Name = "evo_8_2_4" }, true},
		"it is on nodes of this one":    {func(_ *statetest.Bench, _ *state.Opening, r *slurmctl.Job) { r.NodeList = []string{"n3", "n4"} }, true},
		"it is in another partition":    {func(_ *statetest.Bench, _ *state.Opening, r *slurmctl.Job) { r.Partition = "other" }, true},
		"it began before the other":     {func(b *statetest.Bench, o *state.Opening, _ *slurmctl.Job) { o.Since = b.Now.Add(time.Second) }, true},
		"it began after the other":      {func(b *statetest.Bench, o *state.Opening, _ *slurmctl.Job) { o.Until = b.Now }, true},
		"the other was never opened":    {func(b *statetest.Bench, _ *state.Opening, _ *slurmctl.Job) { delete(b.Opened, "evo_8_2_3") }, true},
		"it has the name of this job's": {func(_ *statetest.Bench, _ *state.Opening, r *slurmctl.Job) { r.Name = "evo_7_2_3" }, true},
	} {
		b := statetest.New(t, 6)
		j, k := b.Evolving(7, 1, "1@10m,3@10m", time.Hour), b.Evolving(8, 1, "1@10m,2@10m", time.Hour)
		j.Mode.AsksJob, k.Mode.AsksJob = true, true
		this := state.Opening{Job: j, Hold: "evo_7_2_1", Nodes: []string{"n3", "n4"}, Since: b.Now.Add(-time.Minute)}
		other := state.Opening{Job: k, Hold: "evo_8_2_1", Nodes: []string{"n3"}, Since: b.Now.Add(-time.Minute)}
		r := slurmctl.Job{ID: 9, UID: 1000, User: "user", Name: "evo_8_2_3", Partition: "main", State: slurmctl.Running, NodeList: []string{"n3"}, StartTime: b.Now}
		b.Opened = map[string]state.Opening{"evo_7_2_3": this, "evo_8_2_3": other}
		test.change(b, &other, &r)
		if _, there := b.Opened["evo_8_2_3"]; there {
			b.Opened["evo_8_2_3"] = other
		}
		if got := leftHold(b.Core, this, &r); got != test.left {
			t.Errorf("%s: left the hold: %v", name, got)
		}
	}
}

// TestOpeningsKept: an opening is known for as long as another one of the user on its nodes, and no longer.
func TestOpeningsKept(t *testing.T) {
	for name, test := range map[string]struct {
		change func(b *statetest.Bench, other *state.Opening)
		kept   bool
	}{
		"another one is open":         {func(*statetest.Bench, *state.Opening) {}, true},
		"the other one is over":       {func(b *statetest.Bench, o *state.Opening) { o.Until = b.Now.Add(-time.Minute) }, false},
		"it has other nodes":          {func(_ *statetest.Bench, o *state.Opening) { o.Nodes = []string{"n5"} }, false},
		"it is another user's":        {func(_ *statetest.Bench, o *state.Opening) { o.Job.UID = 1001 }, false},
		"it is one of the same job's": {func(b *statetest.Bench, o *state.Opening) { o.Job = b.ByID[7] }, false},
	} {
		b := statetest.New(t, 6)
		j, k := b.Evolving(7, 1, "1@10m,3@10m", time.Hour), b.Evolving(8, 1, "1@10m,2@10m", time.Hour)
		other := state.Opening{Job: k, Hold: "evo_8_2_1", Nodes: []string{"n3", "n4"}, Since: b.Now.Add(-time.Hour)}
		b.Reservations["evo_8_2_1"] = slurmctl.Reservation{Users: []string{"user"}}
		test.change(b, &other)
		b.Opened = map[string]state.Opening{"evo_8_2_3": other,
			"evo_7_2_3": {Job: j, Hold: "evo_7_2_1", Nodes: []string{"n3"}, Since: b.Now.Add(-time.Hour), Until: b.Now.Add(-time.Minute)}}
		sendLeft(b.Core, b.Seen)
		if _, kept := b.Opened["evo_7_2_3"]; kept != test.kept {
			t.Errorf("%s: kept: %v", name, kept)
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
		"the job has it": {func(_ *state.Core, j *state.Job) { j.Held = []msg.Part{{ID: 7, Nodes: []string{"n3"}}} }, time.Unix(1003, 0)},
		"it is given up": {func(c *state.Core, _ *state.Job) { noteGivenUp(c, "evo_7_2_1") }, time.Unix(1003, 0)},
		"it is closed, and given up at once": {func(c *state.Core, _ *state.Job) {
			c.Reservations["evo_7_2_1"] = slurmctl.Reservation{Users: []string{"root"}}
			noteClosed(c)
			noteGivenUp(c, "evo_7_2_1")
		}, time.Unix(1003, 0)},
		"it has ended": {func(c *state.Core, _ *state.Job) {
			c.Reservations["evo_7_2_1"] = slurmctl.Reservation{Users: []string{"user"}, End: time.Unix(1005, 0)}
		}, time.Unix(1003, 0)},
		"it has not ended yet": {func(c *state.Core, _ *state.Job) {
			c.Reservations["evo_7_2_1"] = slurmctl.Reservation{Users: []string{"user"}, End: time.Unix(1006, 0)}
		}, time.Time{}},
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
