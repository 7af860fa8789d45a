package hold

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/adopt"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/follow"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/plan"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/slurm"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// A hold is a reservation, and a user who may use a reservation may run any job in it. So a hold to grow in
// stays closed until the sidecar submits its expander. A hold to start in cannot be closed: the user of the
// job that starts there may send other jobs there, past the queue. The sidecar sees such jobs in the next
// cycle. It sends a pending job back to the queue. It takes a running job out of the hold, so that Slurm does
// not end the job when the hold ends. That job keeps its nodes until its own end, and the sidecar plans other
// nodes for the owner of the hold.
//
// Where a process of the job submits its expanders, a hold to grow in is open to the job's user for longer, and at
// moments that the user chooses. A job that slips in then is cancelled: otherwise it could have the nodes past the
// queue, and for longer than the job may. Slurm lets users take their running jobs out of a reservation, so what counts is
// that it began on the hold's nodes while the hold was open.

// refersTo reports whether a Slurm job asks for a reservation, perhaps among others.
func refersTo(r *slurmctl.Job, name string) bool {
	for other := range strings.SplitSeq(r.Reservation, ",") {
		if other == name {
			return true
		}
	}
	return false
}

// otherReservations returns the reservations that a Slurm job asks for, except one.
func otherReservations(r *slurmctl.Job, name string) string {
	var rest []string
	for other := range strings.SplitSeq(r.Reservation, ",") {
		if other != name {
			rest = append(rest, other)
		}
	}
	return strings.Join(rest, ",")
}

// HoldNamed does what ParseHold does, for a name that a job refers to.
func HoldNamed(c *state.Core, name string) (state.OwnName, bool) {
	if r, known := c.Reservations[name]; known {
		return state.ParseHold(r)
	}
	return state.ParseHoldName(name)
}

// HoldIn returns the first hold in a list of reservations that a job refers to, and whose it is.
func HoldIn(c *state.Core, list string) (name string, own state.OwnName, is bool) {
	for name := range strings.SplitSeq(list, ",") {
		if own, ours := HoldNamed(c, name); ours {
			return name, own, true
		}
	}
	return "", state.OwnName{}, false
}

// backTo returns the reservations that a Slurm job asks for once it is out of a hold.
func backTo(c *state.Core, r *slurmctl.Job, hold string) string {
	rest := otherReservations(r, hold)
	if j := c.Owner(r.ID); j != nil && rest == "" {
		return j.Reservation
	}
	return rest
}

// WatchIntruders removes jobs from holds of other jobs.
func WatchIntruders(c *state.Core, s *state.Snapshot) {
	for _, id := range slices.Sorted(maps.Keys(c.Intruders)) {
		r, in := s.ByID[id], c.Intruders[id]
		if in.Job != nil {
			in.Job.Remark("")
		}
		if r == nil || r.Ended() || r.State == slurmctl.Completing || in.Job != nil && (in.Job.State == row.Ended || in.Job.Step >= in.Step) {
			delete(c.Intruders, id)
		}
	}
	sendIntruders(c, s)
	sendLeft(c, s)
	for _, id := range slices.Sorted(maps.Keys(c.Intruders)) {
		if in := c.Intruders[id]; in.Job != nil {
			in.Job.Remark(in.Text)
		}
	}
}

// sendIntruders sends every job away from a hold that is not for it.
func sendIntruders(c *state.Core, s *state.Snapshot) {
	for i := range s.Jobs {
		r := &s.Jobs[i]
		if r.Reservation == "" || r.Ended() || r.State == slurmctl.Completing {
			continue
		}
		for name := range strings.SplitSeq(r.Reservation, ",") {
			if own, ours := HoldNamed(c, name); ours && !isFor(c, own, r) {
				sendAway(c, s, r, name, own)
				break // the other reservations follow in the next cycle
			}
		}
	}
}

// isFor reports whether a hold is for a Slurm job, as far as the core knows. If an evolving job refers to the wrong one
// of several holds, mirror and act correct that, unless it slipped in.
func isFor(c *state.Core, own state.OwnName, r *slurmctl.Job) bool {
	j := holder(c, own.Job)
	if k := c.Owner(r.ID); k != nil && !slurm.IsExpander(c, r) {
		return k == j || r.State == slurmctl.Pending || !slippedIn(c, j, own.Step, r)
	}
	if slurm.IsExpander(c, r) {
		name, _ := state.ParseHoldName(r.Name)
		return name.Job == own.Job && (j == nil || adopt.MayBring(c, r, j))
	}
	if j != nil {
		return false
	}
	_, marked, err := plan.Mark(c, r) // it may not be adopted yet
	return marked || err != nil || r.ID == own.Job
}

// sendAway takes a Slurm job out of a hold that is not for it.
func sendAway(c *state.Core, s *state.Snapshot, r *slurmctl.Job, name string, own state.OwnName) {
	j, rest, runs := holder(c, own.Job), backTo(c, r, name), r.State != slurmctl.Pending
	slipped := runs && slippedIn(c, j, own.Step, r)
	if _, known := c.Intruders[r.ID]; !known {
		what := "it is taken out of it"
		in := state.Intrusion{Job: j, Step: own.Step, Text: fmt.Sprintf("job %d of %s was sent into nodes held for it (%s)", r.ID, r.User, name)}
		switch {
		case slipped:
			what = "it is cancelled"
			in.Text = fmt.Sprintf("job %d of %s slipped into nodes held for it (%s) and is cancelled", r.ID, r.User, name)
		case runs:
			in.Text = fmt.Sprintf("job %d of %s was sent into nodes held for it and runs on %s: others are looked for",
				r.ID, r.User, slurmctl.CompressNodes(r.NodeList))
		}
		c.Intruders[r.ID] = in
		detail := map[string]any{"slurm_id": r.ID, "user": r.User, "hold": name, "state": r.State, "nodes": slurmctl.CompressNodes(r.NodeList)}
		line := c.Log.WithField("job", own.Job).WithField("hold", name).WithField("intruder", r.ID).WithField("user", r.User).WithField("state", r.State)
		if text := "a job is in a hold that is for another one; " + what; j == nil {
			c.WarnOf(r.UID, line, text, "intruder", detail)
		} else if c.Event(j, "intruder", detail) {
			line.Warn(text)
		}
	}
	if !c.Work.Room() {
		return // in the next cycle
	}
	if slipped {
		adopt.CancelBeside(c, "a job in another job's hold", r.ID)
		return
	}
	c.Ask(nil, sendKey(r.ID), state.KindSendAway, msg.Task{Command: msg.Update{Job: r.ID, Change: slurmctl.JobUpdate{Reservation: &rest}}}, state.Args{Seen: s.Taken, UID: r.UID})
	if runs && j != nil && own.Step == 1 && j.State == row.Starting && !j.Busy && !j.Touched.After(s.Taken) {
		follow.TakeBack(c, j, j.Record.ID, c.Intruders[r.ID].Text, state.KindEvict, state.Args{State: row.Queued})
	}
}

// sendKey is the key of the task that takes a job out of a hold.
func sendKey(id slurmctl.JobID) string { return fmt.Sprint("send away ", id) }

// slippedIn reports whether a running job can be in a hold of j only because it was open to the user for an expander.
func slippedIn(c *state.Core, j *state.Job, step int, r *slurmctl.Job) bool {
	return j != nil && j.Mode.AsksJob && r.UID == j.UID && !c.HoldsOpen && !state.Hold{Job: j, Step: step}.ToStartIn()
}

// holder returns the job that a hold is for, also if it has ended since the hold was opened to its user.
func holder(c *state.Core, id slurmctl.JobID) *state.Job {
	if j := c.ByID[id]; j != nil {
		return j
	}
	return c.OpenedFor(id)
}

// Opened records that a growth's hold is open to its job's user, since a time at the earliest. Slurm counts in seconds, by a
// clock that may be a little behind. Nobody else can have begun on held nodes just before.
func Opened(c *state.Core, j *state.Job, g msg.Grow, since time.Time) {
	since = since.Truncate(time.Second)
	if !g.HoldBegins {
		since = since.Add(-state.ClockSlack)
	}
	c.Opened[g.Name] = state.Opening{Job: j, Hold: g.Hold, Nodes: c.Reservations[g.Hold].Nodes, Since: since}
}

// noteClosed records since when jobs may begin on the nodes of opened holds in another way, as Slurm counts. Where that is
// not known, no job counts as one that slipped in: none may suffer for another one.
func noteClosed(c *state.Core) {
	for name, o := range c.Opened {
		r, there := c.Reservations[o.Hold]
		switch {
		case !o.Until.IsZero():
			continue
		case !there:
			o.Until = o.Since // it ended, or somebody deleted it
		case !r.End.IsZero() && c.Reached(c.Now, r.End):
			o.Until = r.End.Add(-state.ClockSlack) // it ended, unless Slurm still extends it
		case len(msg.Without(o.Nodes, o.Job.Nodes())) == 0:
			o.Until = freeFrom(c) // the job has them, and may free them at once
		case !slices.Contains(r.Users, o.Job.User):
			o.Until = c.Now.Truncate(time.Second).Add(time.Second) // it is closed, and keeps the nodes
		default:
			continue
		}
		c.Opened[name] = o
	}
}

// freeFrom returns the second from which on jobs may begin on nodes that are free now: slurmctld's clock may be behind.
func freeFrom(c *state.Core) time.Time { return c.Now.Truncate(time.Second).Add(-state.ClockSlack) }

// noteGivenUp records that the sidecar has given up a hold, perhaps an opened one, or one that it has just closed.
func noteGivenUp(c *state.Core, hold string) {
	for name, o := range c.Opened {
		if until := freeFrom(c); o.Hold == hold && (o.Until.IsZero() || o.Until.After(until)) {
			o.Until = until
			c.Opened[name] = o
		}
	}
}

// sendLeft cancels jobs that slipped into an open hold, and that their user took out of it before a poll.
func sendLeft(c *state.Core, s *state.Snapshot) {
	noteClosed(c)
	for _, name := range slices.Sorted(maps.Keys(c.Opened)) {
		o := c.Opened[name]
		own, _ := state.ParseHoldName(o.Hold)
		found, acts := false, o.Job.Busy || o.Job.Touched.After(s.Taken) // its expander may have left the hold in order
		for i := range s.Jobs {
			if r := &s.Jobs[i]; leftHold(c, o, r) && !(acts && slurm.IsExpander(c, r)) && slippedIn(c, o.Job, own.Step, r) {
				found = true
				sendAway(c, s, r, o.Hold, own)
			}
		}
		if !found && !acts && over(c, s, o) && !keeps(c, s, o) {
			delete(c.Opened, name)
		}
	}
}

// over reports whether a poll shows all jobs that began in an opened hold.
func over(c *state.Core, s *state.Snapshot, o state.Opening) bool {
	return !o.Until.IsZero() && c.Passed(s.Taken, o.Until)
}

// keeps reports whether another opening needs to know of this one: it is not over, and a job may have come by either.
func keeps(c *state.Core, s *state.Snapshot, o state.Opening) bool {
	for _, other := range c.Opened {
		if other.Job != o.Job && other.Job.UID == o.Job.UID && !over(c, s, other) && len(msg.Common(o.Nodes, other.Nodes)) > 0 {
			return true
		}
	}
	return false
}

// cameByOther reports whether a job came by the opening whose expander it is, of another job of the user. It counts there.
func cameByOther(c *state.Core, o state.Opening, r *slurmctl.Job) bool {
	other, known := c.Opened[r.Name]
	if !known || other.Job == o.Job || len(msg.Without(r.NodeList, other.Nodes)) > 0 || !adopt.MayBring(c, r, other.Job) {
		return false
	}
	return c.Owner(r.ID) == other.Job || slurm.IsExpander(c, r) && began(other, r)
}

// began reports whether a job began while a hold was open.
func began(o state.Opening, r *slurmctl.Job) bool {
	return !r.StartTime.Before(o.Since) && (o.Until.IsZero() || r.StartTime.Before(o.Until))
}

// leftHold reports whether a job that is not the hold's own began on its nodes while it was open.
func leftHold(c *state.Core, o state.Opening, r *slurmctl.Job) bool {
	return r.State != slurmctl.Pending && !r.Ended() && r.State != slurmctl.Completing && c.Owner(r.ID) != o.Job && !refersTo(r, o.Hold) &&
		(began(o, r) || c.Intruders[r.ID].Job == o.Job) && len(msg.Common(o.Nodes, r.NodeList)) > 0 && !cameByOther(c, o, r)
}

// SettleSendAway is called when an intruder was taken out of a hold, or when that failed.
func SettleSendAway(c *state.Core, j *state.Job, p *state.Pending, o msg.Outcome) {
	do := state.CommandOf[msg.Update](p)
	if o.Err == nil {
		state.Wrote(c.RecordOf(j, p, do.Job), do.Change)
	} else if c.MayTell(p.Args.UID) {
		c.Log.WithError(o.Err).WithField("intruder", do.Job).Warn("cannot take a job out of another job's hold")
	}
}

// SettleEvict is called when a job was parked because an intruder has its nodes. The job is planned again at
// once.
func SettleEvict(c *state.Core, j *state.Job, p *state.Pending, o msg.Outcome) {
	if follow.TookBack(c, j, p, o) {
		j.KeepBack(&state.KeptBack{Text: p.Task.Intent.Detail})
	}
}
