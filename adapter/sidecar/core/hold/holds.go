package hold

import (
	"cmp"
	"slices"
	"time"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/follow"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/pace"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/plan"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/refit"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/slurm"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// wantedHolds lists the holds that the plan needs and the site's shares allow.
func wantedHolds(c *state.Core, now int64) []state.Hold { return Allowed(c, nearHolds(c, now), now) }

// nearHolds lists the holds that the plan needs. These are holds of starts and growths planned
// within the next hold_ahead, and of growths that a job already waits for. Later starts and growths
// are held when they come within hold_ahead.
func nearHolds(c *state.Core, now int64) []state.Hold {
	if c.Releases() {
		return nil
	}
	var all []state.Hold
	ahead := holdAhead(c)
	for j := range plan.Each(c, c.Active) {
		if h, ok := offerHold(c, j, now); ok {
			all = append(all, h)
		}
		switch {
		case j.Kept != nil:
		case j.State == row.Waiting && follow.SuspendedLong(c, j, c.Now, c.Config.Grace): // the nodes would not be used
		case j.State == row.Queued && slurm.LicensesInUse(c, c.Snapshot, &j.Record) != "": // it could not start on them
		case j.Runs(), j.State == row.Starting, isNear(c, j, now, ahead):
			for _, h := range HoldsOf(c, j, now) {
				if h.Awaited() || c.ReachedSecond(now, h.Start-ahead) {
					all = append(all, h)
				}
			}
		}
	}
	// running jobs first, then by start
	slices.SortStableFunc(all, func(a, b state.Hold) int {
		if a.Job.Runs() != b.Job.Runs() {
			if a.Job.Runs() {
				return -1
			}
			return 1
		}
		return cmp.Compare(a.Start, b.Start)
	})
	return all
}

// isNear reports whether a queued job is planned to start within some seconds.
func isNear(c *state.Core, j *state.Job, now, ahead int64) bool {
	return j.State == row.Queued && len(j.Plan) > 0 && !c.Drained() && c.ReachedSecond(now, j.Plan[0].Start-ahead)
}

// HoldsOf lists a job's holds: one for each step at which it gets nodes.
func HoldsOf(c *state.Core, j *state.Job, now int64) []state.Hold {
	gains := Gained(j)
	if len(gains) == 0 {
		return nil
	}
	all := make([]state.Hold, 0, len(gains))
	beyond := max(int64(c.Config.Grace/time.Second), 60+int64(pace.HoldsOn(&c.Pace)/time.Second))
	for _, g := range gains {
		if g = existing(c, g); len(g.Nodes) == 0 {
			continue
		}
		i := g.Step - 1
		if j.LastEnd > 0 && j.Plan[i].Start >= j.LastEnd { // its time limit ends before
			continue
		}
		if slurm.LeftOwn(c, c.Snapshot, j, g.Nodes) != "" || slurm.Shares(c.Snapshot, j) {
			continue
		}
		end := g.End
		h := state.Hold{Job: j, Step: g.Step, Nodes: g.Nodes, From: g.From, Start: j.Plan[i].Start}
		if h.ToStartIn() {
			end = max(end, h.Start+late(c, h.Start, now)+refit.LimitOf(c, j, i))
		}
		h.End = c.Until(now, end) + beyond
		h.Users = holdUsers(c, h)
		all = append(all, h)
	}
	return all
}

// existing returns a gain without the nodes that Slurm has no more (scontrol delete nodename=): Slurm refuses a hold on them.
func existing(c *state.Core, g state.Gain) state.Gain {
	if c.Snapshot == nil || !slices.ContainsFunc(g.Nodes, func(name string) bool { return !c.Snapshot.Has(name) }) {
		return g
	}
	left := g
	left.Nodes, left.From = nil, nil
	for k, name := range g.Nodes {
		if c.Snapshot.Has(name) {
			left.Nodes, left.From = append(left.Nodes, name), append(left.From, g.From[k])
		}
	}
	return left
}

// Gained lists the nodes that the plan brings the job from its current step on. It caches the result.
func Gained(j *state.Job) []state.Gain {
	m := &j.Gains
	if m.Step == j.Step && msg.Same(m.Plan, j.Plan) && msg.Same(m.Held, j.Held) {
		return m.All
	}
	*m = state.Gains{Plan: j.Plan, Step: j.Step, Held: j.Held}
	had := map[string]int64{} // last time the job has each node, so far
	for i := max(j.Step-1, 0); i < len(j.Plan); i++ {
		added := j.Plan[i].Nodes
		switch {
		case i < j.Step:
			added = nil
		case !j.Mode.CarriesNodes: // every step gets all its nodes
		case i == j.Step && i > 0:
			added = msg.Without(added, j.Nodes())
		case i > 0:
			added = msg.Without(added, j.Plan[i-1].Nodes)
		}
		if len(added) > 0 {
			g := state.Gain{Step: i + 1, Nodes: added, End: j.Plan[i].End, From: make([]int64, len(added))}
			for k, name := range added {
				g.From[k] = had[name]
			}
			m.All = append(m.All, g)
		}
		for _, name := range j.Plan[i].Nodes {
			had[name] = j.Plan[i].End
		}
	}
	if j.Mode.CarriesNodes {
		lastGains(j, m.All)
	}
	return m.All
}

// lastGains sets the ends of gains: when the job gives back the first of their nodes.
func lastGains(j *state.Job, all []state.Gain) {
	type stay struct {
		step int // up to which the stay is known
		end  int64
	}
	stays := map[string]stay{}
	for i, last := len(j.Plan)-1, len(all)-1; last >= 0; i-- {
		for _, name := range j.Plan[i].Nodes {
			s := stays[name]
			if s.end == 0 || s.step != i+1 {
				s.end = j.Plan[i].End
			}
			stays[name] = stay{i, s.end}
		}
		if g := &all[last]; g.Step == i+1 {
			last--
			g.End = stays[g.Nodes[0]].end
			for _, name := range g.Nodes {
				g.End = min(g.End, stays[name].end)
			}
		}
	}
}

// late returns how many seconds a start is overdue, rounded up to whole minutes, so that holds do
// not change every second.
func late(c *state.Core, start, now int64) int64 {
	late := (max(now-start, 0) + 59) / 60 * 60
	c.AtSecond(start + late + 1)
	return late
}

// Slack returns how far off a time written into Slurm may be if it is so far ahead. Plans drift with
// every job that starts late or ends early, and each change costs slurmctld milliseconds.
func Slack(ahead time.Duration) time.Duration { return max(ahead, 0) / 10 }

// stale reports whether no change can turn a reservation into the hold, because the reservation has
// begun and the hold begins later.
func stale(c *state.Core, r slurmctl.Reservation, h state.Hold, now int64) bool {
	return c.ReachedSecond(now, r.Start.Unix()) && !c.ReachedSecond(now, h.Start-msg.Earlier)
}

// nobody is the user of a hold to grow in until its expander is requested. A real user could run
// any job in the reservation.
const nobody = slurmctl.Nobody

// holdUsers returns the users that may use a hold. The job's user may always use a hold to start in:
// in Slurm, no job can refer to a reservation that its user may not use. Slurm must also start the
// job while the sidecar is down.
func holdUsers(c *state.Core, h state.Hold) []string {
	switch {
	case h.ToStartIn():
		return []string{h.Job.User}
	case c.HoldsOpen || Submitter(c, h.Job) != h.Job.User:
		return []string{Submitter(c, h.Job)}
	}
	return []string{nobody}
}

// Submitter returns the user in whose name a job's expanders are submitted: the job's user if the
// sidecar is root, otherwise the sidecar's own user.
func Submitter(c *state.Core, j *state.Job) string {
	if c.Site.Root || c.Site.User == "" {
		return j.User
	}
	return c.Site.User
}

// HoldFor returns the reservation for a job's step, and whether there is one that is not being given up.
func HoldFor(c *state.Core, j *state.Job, step int) (slurmctl.Reservation, bool) {
	name, ok := c.HoldNames[state.HoldKey{j.BaseID(), step}]
	return c.Reservations[name], ok && !c.Work.Keys[name]
}

// Confirmed reports whether everything that a queued job needs is held, as far as it is near and the
// shares allow it. It also checks that no other job took the nodes before that: a poll since then must
// cover everything, or cover only the nodes and show them free.
func Confirmed(c *state.Core, s *state.Snapshot, j *state.Job, now int64) bool {
	ahead := holdAhead(c)
	for _, h := range HoldsOf(c, j, now) {
		if h.Step > 1 && (slices.Contains(j.Deferred, h.Step) || !c.ReachedSecond(now, h.Start-ahead)) {
			continue
		}
		r, ok := HoldFor(c, j, h.Step)
		if !ok || !msg.SameSet(r.Nodes, h.Nodes) || !c.ReachedSecond(max(h.Start, now), r.Start.Unix()) {
			return false
		}
		since := c.HeldSince[r.Name]
		if !s.Taken.After(since) && !(s.NodesTaken.After(since) && slurm.Free(s, h.Nodes)) {
			return false
		}
	}
	return true
}

// NextName returns a new name for an expander.
func NextName(c *state.Core, j *state.Job, step int) state.OwnName {
	j.Attempt++
	return state.OwnName{j.BaseID(), step, j.Attempt}
}
