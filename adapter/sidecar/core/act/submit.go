package act

import (
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/follow"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/hold"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/refit"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// Where the sidecar may not submit in the users' names, a process of the job submits what brings its nodes. That takes
// three tasks, one after another, and the job is busy during all of them:
//
//	KindOpen    the driver opens the hold to the job's user
//	KindSubmit  a waiting call is answered by what to submit (talk), and comes back with a report
//	KindGrow    the driver finds the expander in Slurm, and goes on as with one of its own
//
// If no report comes in time, or a poll shows the expander, the driver looks all the same: the process may have died
// after salloc. When the job is no
// longer busy, SyncHolds closes a hold that is still open.

const (
	// submitWithin is how long a process of the job has for salloc, and reportWithin how long it has for its report.
	submitWithin = 10 * time.Second
	reportWithin = submitWithin + 5*time.Second
)

// errNoProcess is why a growth is given up that no process of the job could submit.
var errNoProcess = errors.New("no process of the job has come that can submit the job that brings its nodes: call evosctl next in the job")

// byJob reports whether a process of the job submits the expander, and whether there is someone to submit it. What is
// merged can also be submitted by the sidecar, as its own.
func byJob(c *state.Core, j *state.Job) (byJob, able bool) {
	if !j.Mode.AsksJob || j.Mode.MergesGrowths && len(j.Expanders) > 0 {
		return false, true
	}
	waits := slices.ContainsFunc(c.Calling, func(k *state.OpenCall) bool { return k.Of == j && follow.Submits(j, k) })
	own := j.Mode.MergesGrowths && j.Reservation == "" // the sidecar's account may not use the reservations of users
	return waits || !own, waits || own || len(j.Expanders) > 0
}

// noProcess is called when no process of a job can submit what brings its nodes. A growth is given up after a while.
func noProcess(c *state.Core, j *state.Job, step, to int) {
	j.WaitsFor(state.Because(state.WhyNoProcess))
	if j.State != row.Waiting || step == refit.LentStep {
		return
	}
	if j.Failing.IsZero() {
		j.Failing = c.Now
	}
	if c.Reached(c.Now, j.Failing.Add(c.Config.GiveUp)) {
		mayGiveUp(c, j, to, errNoProcess)
	}
}

// submit begins to have a process of the job submit an expander.
func submit(c *state.Core, j *state.Job, g msg.Grow, args state.Args) {
	if g.Hold == "" {
		askJob(c, j, g, args)
		return
	}
	g.Opens = true
	args.Begun = c.Now
	c.Ask(j, "", state.KindOpen, msg.Task{Command: g}, args)
}

// SettleOpen handles the outcome of opening a hold to a job's user.
func SettleOpen(c *state.Core, j *state.Job, p *state.Pending, o msg.Outcome) {
	got, _ := o.Result.(msg.Grown)
	g := state.CommandOf[msg.Grow](p)
	usedHold(c, g, got)
	if o.Err == nil {
		hold.Opened(c, j, g, p.Args.Begun)
	}
	switch {
	case o.Err != nil:
		j.Failed("opening its hold", o.Err, c.Now, c.Wall)
	case j.Runs():
		c.LogJob(j).WithField("hold", g.Hold).Debug("hold opened to the job's user")
		g.Opens = false
		askJob(c, j, g, p.Args)
	}
}

// askJob waits for a process of the job to submit an expander. The next call of one that can do so is answered by it.
func askJob(c *state.Core, j *state.Job, g msg.Grow, args state.Args) {
	args.Begun = c.Now
	c.Ask(j, "", state.KindSubmit, msg.Task{Command: g}, args)
	refit.Notify(c, j)
}

// Submission returns what a call must be answered with, if its caller is to submit an expander.
func Submission(c *state.Core, k *state.OpenCall) *api.Submission {
	j := c.ByID[slurmctl.JobID(k.Job)]
	if j == nil || !j.Busy || !follow.Submits(j, k) {
		return nil
	}
	for _, p := range c.Work.Pending {
		if p.Kind == state.KindSubmit && p.Job == j.ID && p.Args.Of == 0 {
			p.Args.Of = j.BaseID() // once
			g := state.CommandOf[msg.Grow](p)
			q := g.Request
			q.Reservation = msg.Both(g.Hold, g.Inside)
			return &api.Submission{Job: j.SlurmID, Seconds: int(submitWithin / time.Second), Request: q}
		}
	}
	return nil
}

// Submitted takes over what a process reports of its salloc.
func Submitted(c *state.Core, in msg.Call) {
	if in.Hands.Submitted == "" {
		return
	}
	for id, p := range c.Work.Pending {
		if g := state.CommandOf[msg.Grow](p); p.Kind == state.KindSubmit && g.As == in.UID && g.Name == in.Hands.Submitted {
			look(c, id, in.Hands.Refusal)
			return
		}
	}
}

// WatchSubmissions looks for expanders whose processes have not reported in time, or whose nodes have gone to a job
// that Slurm puts first: their hold must go.
func WatchSubmissions(c *state.Core) {
	for _, id := range slices.Sorted(maps.Keys(c.Work.Pending)) {
		p := c.Work.Pending[id]
		if p.Kind != state.KindSubmit {
			continue
		}
		j := c.JobOf(p)
		if lapsed := j != nil && j.State == row.Waiting && j.Next() == nil; lapsed || c.Due(c.Now, p.Args.Begun.Add(reportWithin)) {
			look(c, id, "")
		}
	}
}

// FindSubmitted looks for expanders that a poll shows, though their processes have not reported.
func FindSubmitted(c *state.Core, s *state.Snapshot) {
	open := map[string]int64{}
	for id, p := range c.Work.Pending {
		if p.Kind == state.KindSubmit {
			open[state.CommandOf[msg.Grow](p).Name] = id
		}
	}
	for i := range s.Jobs {
		r := &s.Jobs[i]
		if id, ok := open[r.Name]; ok && r.UID == state.CommandOf[msg.Grow](c.Work.Pending[id]).As && !r.Ended() {
			delete(open, r.Name)
			look(c, id, "")
		}
	}
}

// look has the driver look for an expander that a process of the job may have submitted.
func look(c *state.Core, id int64, refusal string) {
	p := c.Work.Pending[id]
	delete(c.Work.Pending, id)
	c.Work.TakeBack(id)
	j := c.JobOf(p)
	c.Finish(j, p, nil)
	if j == nil || !j.Runs() || c.Stopping {
		return
	}
	g := state.CommandOf[msg.Grow](p)
	g.Refusal = refusal
	c.Do(j, "grow", growText(g), state.KindGrow, g, p.Args)
}
