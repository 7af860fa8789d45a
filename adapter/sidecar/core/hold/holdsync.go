package hold

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/plan"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/slurm"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/stock"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// TakeReservations takes over the reservations of a poll, except holds that were changed since the
// poll began.
func TakeReservations(c *state.Core, s *state.Snapshot) {
	seen := maps.Clone(s.Reservations)
	for name, at := range c.HoldChanged {
		if !at.After(s.Taken) {
			delete(c.HoldChanged, name)
			continue
		}
		if r, ok := c.Reservations[name]; ok {
			seen[name] = r
		} else {
			delete(seen, name)
		}
	}
	takeStuckHolds(c, s, seen)
	c.Reservations = seen
	for name := range c.Unwilling {
		if _, ok := seen[name]; !ok {
			delete(c.Unwilling, name)
		}
	}
	nameHolds(c)
}

// nameHolds finds out which job and step each hold belongs to, and brings the ledger up to date.
func nameHolds(c *state.Core) {
	clear(c.HoldNames)
	c.Ours = c.Ours[:0]
	for name, r := range c.Reservations {
		if own, ours := state.ParseHold(r); ours {
			c.Ours = append(c.Ours, state.OwnHold{name, own})
		}
	}
	slices.SortFunc(c.Ours, func(a, b state.OwnHold) int { return strings.Compare(a.Name, b.Name) })
	for _, h := range c.Ours {
		if k := (state.HoldKey{h.Own.Job, h.Own.Step}); c.HoldNames[k] == "" {
			c.HoldNames[k] = h.Name
		}
	}
	noteClosed(c)
	book(c)
}

// SetHold records that a hold was created or changed.
func SetHold(c *state.Core, r slurmctl.Reservation) {
	c.Reservations[r.Name], c.HoldChanged[r.Name] = r, c.Now
	nameHolds(c)
}

// ForgetHold records that a hold was given up.
func ForgetHold(c *state.Core, name string) {
	if b := c.Ledger[name]; b != nil {
		b.GivenUp, b.Refused = true, c.Unwilling[name]
	}
	c.HoldChanged[name] = c.Now
	noteGivenUp(c, name)
	delete(c.Reservations, name)
	delete(c.HeldSince, name)
	delete(c.Unwilling, name)
	nameHolds(c)
}

// SyncHolds creates, changes and deletes reservations in Slurm to match the plan, the most urgent
// first. A node that changes hands stays held all the time: the sidecar keeps a surplus hold while
// a hold that soon needs one of its nodes is not in place.
func SyncHolds(c *state.Core, s *state.Snapshot) {
	now := c.Now.Unix()
	wanted := wantedHolds(c, now)
	needed := make(map[state.HoldKey]state.Hold, len(wanted))
	for _, h := range wanted {
		needed[state.HoldKey{h.Job.BaseID(), h.Step}] = h
	}
	existing, surplus := matchHolds(c, needed, now)
	exact := stockWaits(c, s)
	giveUpInTurn(c, s, wanted, existing, surplus, exact)
	open := changeHolds(c, wanted, existing, now, exact)
	for _, name := range surplus {
		if !open.Any(c.Reservations[name].Nodes) {
			deleteHold(c, s, name)
		}
	}
}

// matchHolds returns the names of the holds that exist for the needed ones, and the names of the surplus
// holds. The name is "" for a hold that must stay as it is at present.
func matchHolds(c *state.Core, needed map[state.HoldKey]state.Hold, now int64) (existing map[state.HoldKey]string, surplus []string) {
	existing = map[state.HoldKey]string{}
	for _, h := range c.Ours {
		name, own := h.Name, h.Own
		k := state.HoldKey{own.Job, own.Step}
		j := c.ByID[own.Job]
		if forsaken(c, j, own.Step, name) {
			surplus = append(surplus, name) // nothing uses it, and a stock job waits for its nodes
			continue
		}
		if j != nil && j.Busy || c.Work.Keys[name] {
			existing[k] = "" // an action may be using it, or gives it up; look again after the action
			continue
		}
		if plan.IsComing(c, own.Job) {
			existing[k] = "" // its job will soon be adopted again, and the hold shows which step it is in
			continue
		}
		h, want := needed[k]
		if _, twice := existing[k]; !want || twice || c.Unwilling[name] || stale(c, c.Reservations[name], h, now) {
			surplus = append(surplus, name)
			continue
		}
		existing[k] = name
	}
	return existing, surplus
}

// forsaken reports whether the promise of a step has lapsed while its job is busy with a start or a growth that does not
// use the step's hold. That may last for seconds, and the hold would keep the nodes from a job that gets them.
func forsaken(c *state.Core, j *state.Job, step int, hold string) bool {
	return j != nil && step > max(len(j.Plan), 1) && c.Work.BusyBeside(j, hold)
}

// changeHolds creates and changes holds. It returns the nodes of holds that must soon be in place and are not.
// See adjusted for exact.
func changeHolds(c *state.Core, wanted []state.Hold, existing map[state.HoldKey]string, now int64, exact bool) (open msg.Set) {
	missing := missingNodes(c, wanted, existing, now)
	open = msg.Set{}
	for _, h := range inTurn(c, wanted, existing, now) {
		name, exists := existing[state.HoldKey{h.Job.BaseID(), h.Step}]
		r, u, change := adjusted(c, c.Reservations[name], h, now, exact)
		if exists && (name == "" || !change) {
			continue
		}
		if !h.Far(c, now) {
			open.Add(h.Nodes)
		}
		switch {
		case h.Job.Busy || !c.Due(c.Now, h.Job.HoldRetry):
		case exists && u.Nodes != nil && missing[h.Job.BaseID()].Any(msg.Without(c.Reservations[name].Nodes, h.Nodes)):
			// its steps were renumbered: another hold must take over the released nodes first
		case exists:
			adjustHold(c, r, u, h, now)
		default:
			createHold(c, h)
		}
	}
	return open
}

// mostLag is the number of seconds by which the start of a hold may differ from its plan until it is changed before others.
const mostLag = 60

// inTurn returns the wanted holds in the order in which they are changed: far ones that lag behind their plan come first, the
// longest first. Changes of far holds are rationed, and where starts recede all the time the first of them would take all.
func inTurn(c *state.Core, wanted []state.Hold, existing map[state.HoldKey]string, now int64) []state.Hold {
	lag := func(h state.Hold) int64 {
		r, there := c.Reservations[existing[state.HoldKey{h.Job.BaseID(), h.Step}]]
		if by := max(h.Start-r.Start.Unix(), r.Start.Unix()-h.Start); there && by > mostLag && h.Far(c, now) {
			return by
		}
		return 0
	}
	if !slices.ContainsFunc(wanted, func(h state.Hold) bool { return lag(h) > 0 }) {
		return wanted
	}
	all := slices.Clone(wanted)
	slices.SortStableFunc(all, func(a, b state.Hold) int { return cmp.Compare(lag(b), lag(a)) })
	return all
}

// surplusFor is how long a surplus hold stays at most while other changes of its job's holds go first.
const surplusFor = time.Minute

// giveUpInTurn gives up the surplus holds that have waited too long. Where slurmctld is slow, the holds of a late job
// need longer ends as fast as they get them, and its surplus would never go. A hold that only needs a longer end
// keeps its nodes, unless it ends within a minute.
func giveUpInTurn(c *state.Core, s *state.Snapshot, wanted []state.Hold, existing map[state.HoldKey]string, surplus []string, exact bool) {
	waited := waitedTooLong(c, surplus)
	if len(waited) == 0 {
		return
	}
	now, open := c.Now.Unix(), msg.Set{}
	for _, h := range wanted {
		name, exists := existing[state.HoldKey{h.Job.BaseID(), h.Step}]
		r := c.Reservations[name]
		_, u, change := adjusted(c, r, h, now, exact)
		longer := !u.StartNow && u.Start.IsZero() && u.Nodes == nil && u.Users == nil && !c.ReachedSecond(now, r.End.Unix()-60)
		if !(exists && (name == "" || !change || longer)) && !h.Far(c, now) {
			open.Add(h.Nodes)
		}
	}
	for _, name := range waited {
		if r := c.Reservations[name]; !open.Any(r.Nodes) {
			deleteHold(c, s, name)
		}
	}
}

// waitedTooLong returns the surplus holds of jobs that have had one for longer than surplusFor, and gave none up.
func waitedTooLong(c *state.Core, surplus []string) (all []string) {
	has := make(map[*state.Job]bool, len(surplus))
	for _, name := range surplus {
		own, _ := state.ParseHoldName(name)
		j := c.ByID[own.Job]
		if j == nil {
			continue
		}
		has[j] = true
		if j.SurplusSince.IsZero() {
			j.SurplusSince = c.Now
		}
		if c.Reached(c.Now, j.SurplusSince.Add(surplusFor)) {
			all = append(all, name)
		}
	}
	for _, j := range c.Active {
		if !has[j] && !j.Busy {
			j.SurplusSince = time.Time{}
		}
	}
	return all
}

// missingNodes returns the nodes of holds to create soon, by job.
func missingNodes(c *state.Core, wanted []state.Hold, existing map[state.HoldKey]string, now int64) map[slurmctl.JobID]msg.Set {
	missing := map[slurmctl.JobID]msg.Set{}
	for _, h := range wanted {
		if id := h.Job.BaseID(); existing[state.HoldKey{id, h.Step}] == "" && !h.Far(c, now) {
			if missing[id] == nil {
				missing[id] = msg.Set{}
			}
			missing[id].Add(h.Nodes)
		}
	}
	return missing
}

// changeHold asks for a change of a hold, after which the hold is r. It returns false if there is no
// room, or if the hold is far away and the allowance for such holds is used up.
func changeHold(c *state.Core, h state.Hold, now int64, kind state.Kind, do msg.Command, r slurmctl.Reservation) bool {
	args := state.Args{Hold: &r}
	if h.Far(c, now) && !KeepsFreed(c, do) {
		return c.Chore(&c.Pace.FarHolds, h.Job, kind, do, args)
	}
	task := msg.Task{Command: do}
	if !c.ReachedSecond(now, h.Start-int64(Soon/time.Second)) {
		task = c.Gently(do)
	}
	return c.Work.RoomForHolds() && c.Ask(h.Job, "", kind, task, args)
}

// holdWaits reports whether a change of a hold was postponed because slurmctld would have delayed it.
func holdWaits(c *state.Core, j *state.Job, err error) bool {
	if !errors.Is(err, msg.ErrBackfilling) {
		return false
	}
	j.HoldRetry = c.Now.Add(time.Second)
	return true
}

// KeepsFreed reports whether a change removes a hold from nodes for which promises gave way. Until
// that change, Slurm does not start the stock job that should get the nodes.
func KeepsFreed(c *state.Core, do msg.Command) bool {
	change, ok := do.(msg.ChangeHold)
	if !ok || change.Change.Nodes == nil {
		return false
	}
	for _, h := range c.Delays.Jobs {
		if plan.KeepsNodes(c, h, c.Now) && plan.IsFreed(c, h, c.Now) && len(msg.Common(h.Nodes, c.Reservations[change.Name].Nodes)) > 0 {
			return true
		}
	}
	return false
}

// Soon is how far ahead of its time a hold is changed even if the change must wait.
const Soon = 8 * time.Second

// stockWaits reports whether jobs that are not ours wait for nodes. If a job is planned to end exactly
// at a hold, Slurm does not start it while the hold begins any earlier. If the hold's job in turn
// waits for that job, both would wait forever.
func stockWaits(c *state.Core, s *state.Snapshot) bool {
	return slices.ContainsFunc(s.Jobs, func(r slurmctl.Job) bool {
		return r.State == slurmctl.Pending && c.ByID[r.ID] == nil && slurm.Queues(&r)
	})
}

// noteSlack notes when a time in Slurm that is off by some seconds is too far off: see Slack.
func noteSlack(c *state.Core, now, want, off int64) {
	if off > msg.Earlier {
		c.ReachedSecond(now, want-10*off+1)
	}
}

// adjusted returns a reservation as it should be for a hold, and the change that it needs. With exact,
// the hold of a job that does not run yet may begin only a little before its time (UntilLook).
func adjusted(c *state.Core, r slurmctl.Reservation, h state.Hold, now int64, exact bool) (slurmctl.Reservation, slurmctl.ReservationUpdate, bool) {
	var u slurmctl.ReservationUpdate
	start, end := r.Start.Unix(), r.End.Unix()
	early := max(msg.Earlier, int64(Slack(time.Duration(h.Start-now)*time.Second)/time.Second))
	sooner := early // how much before its time it may begin
	if exact && !h.Job.Runs() {
		sooner = min(early, stock.UntilLook/2)
	}
	noteSlack(c, now, h.Start, h.Start-start)
	noteSlack(c, now, h.Start, (end-h.End-59)/2)
	change := false
	switch want := c.Since(now, h.Start); {
	case !c.ReachedSecond(now, start) && want <= now:
		u.StartNow, change = true, true
		r.Start = time.Unix(now, 0)
	case start > want || start < h.Start-sooner && !c.ReachedSecond(now, start):
		u.Start, change = time.Unix(want, 0), true
		r.Start = u.Start
	}
	if end < h.End-msg.Earlier || end > h.End+60+2*early {
		u.End, change = time.Unix(h.End+early, 0), true
		r.End = u.End
	}
	if !msg.SameSet(r.Nodes, h.Nodes) {
		u.Nodes, r.Nodes, change = h.Nodes, h.Nodes, true
	}
	if !msg.SameSet(r.Users, h.Users) { // it was opened for an expander that did not come
		u.Users, r.Users, change = h.Users, h.Users, true
	}
	return r, u, change
}

// adjustHold changes a reservation so that it becomes r.
func adjustHold(c *state.Core, r slurmctl.Reservation, u slurmctl.ReservationUpdate, h state.Hold, now int64) {
	changeHold(c, h, now, state.KindAdjustHold, msg.ChangeHold{r.Name, u}, r)
}

// SettleAdjustHold handles the outcome of changing a hold. If Slurm refused, the hold will be recreated. If Slurm did not
// answer, it may have changed the hold: the next poll shows it.
func SettleAdjustHold(c *state.Core, j *state.Job, p *state.Pending, o msg.Outcome) {
	u := state.CommandOf[msg.ChangeHold](p).Change
	if p.Args.Hold == nil || holdWaits(c, j, o.Err) || o.Err != nil && u.Users != nil && cannotClose(c, o.Err) {
		return
	}
	r := *p.Args.Hold
	if state.Transient(o.Err) {
		j.HoldRetry = c.Now.Add(state.AgainAfter)
		c.LogJob(j).WithError(o.Err).Warn("no answer to a change of a hold")
		return
	}
	if o.Err != nil {
		c.LogJob(j).WithError(o.Err).Warn("cannot change hold, recreating it")
		c.Unwilling[r.Name] = true
		return
	}
	if u.Nodes != nil {
		c.HeldSince[r.Name] = c.Now
	}
	SetHold(c, r)
}

func createHold(c *state.Core, h state.Hold) {
	now := c.Now.Unix()
	start := time.Unix(max(h.Start, now), 0)
	request := slurmctl.ReservationRequest{Start: start, End: time.Unix(h.End, 0), Nodes: h.Nodes, Users: h.Users, Flags: h.Flags()}
	if h.Start <= now {
		request.Start = time.Time{} // now, by Slurm's own clock
	}
	request.Name = state.OwnName{h.Job.BaseID(), h.Step, h.Job.Attempt + 1}.String()
	r := slurmctl.Reservation{Name: request.Name, Start: start, End: request.End, Nodes: h.Nodes, Users: h.Users, Flags: request.Flags}
	if changeHold(c, h, now, state.KindCreateHold, msg.Reserve{request}, r) {
		h.Job.Attempt++
	}
}

// SettleCreateHold handles the outcome of creating a hold.
func SettleCreateHold(c *state.Core, j *state.Job, p *state.Pending, o msg.Outcome) {
	if p.Args.Hold == nil || holdWaits(c, j, o.Err) {
		return
	}
	r := *p.Args.Hold
	if o.Err != nil {
		own, _ := state.ParseHoldName(r.Name)
		if h := (state.Hold{Job: j, Step: own.Step}); !h.ToStartIn() && cannotClose(c, o.Err) {
			return // the next attempt creates an open hold
		}
		j.HoldRetry = c.Now.Add(state.AgainAfter)
		bookRefusal(c, j, r)
		c.LogJob(j).WithError(o.Err).Warn("cannot hold nodes of a coming step")
		return
	}
	c.HeldSince[r.Name] = c.Now
	SetHold(c, r)
	c.LogJob(j).WithField("hold", r.Name).WithField("nodes", slurmctl.CompressNodes(r.Nodes)).Debug("nodes held")
}

// cannotClose reports whether Slurm refused a hold because it does not accept `nobody` as its user. That
// happens if Slurm requires associations (AccountingStorageEnforce) and the site deleted root's. Then
// holds are open to the jobs' users, and the sidecar detects jobs that enter them (intruders.go).
func cannotClose(c *state.Core, err error) bool {
	if c.HoldsOpen || !errors.Is(err, slurmctl.ErrInvalidAccount) {
		return false
	}
	c.HoldsOpen = true
	c.Log.WithError(err).Warn("holds of growths cannot be closed to the jobs' users: Slurm knows no association of root (sacctmgr add user root account=root)")
	return true
}

// deleteHold gives a hold up. Slurm deletes no reservation that jobs refer to. The command first moves pending
// jobs out of the reservation. Running jobs must be detached before.
func deleteHold(c *state.Core, s *state.Snapshot, name string) {
	own, _ := state.ParseHoldName(name)
	owner := c.ByID[own.Job]
	if forsaken(c, owner, own.Step, name) {
		owner = nil // it stays busy
	}
	if !c.Work.RoomForHolds() || owner != nil && (owner.Busy || !c.Due(c.Now, owner.HoldRetry)) {
		return
	}
	var out []msg.TakenOut
	for i := range s.Jobs {
		r := &s.Jobs[i]
		if j := c.Owner(r.ID); j != nil && j.Record.ID == r.ID {
			r = &j.Record // includes changes made since the snapshot
		}
		if !refersTo(r, name) {
			continue
		}
		if r.State != slurmctl.Pending || slurm.IsExpander(c, r) || c.Work.Keys[sendKey(r.ID)] {
			return
		}
		out = append(out, msg.TakenOut{r.ID, backTo(c, r, name)})
	}
	if c.Ask(owner, name, state.KindDeleteHold, msg.Task{Command: msg.GiveUpHold{name, out}}, state.Args{Seen: s.Taken}) && owner != nil {
		owner.SurplusSince = c.Now
	}
}

// SettleDeleteHold handles the outcome of giving up a hold.
func SettleDeleteHold(c *state.Core, j *state.Job, p *state.Pending, o msg.Outcome) {
	do := state.CommandOf[msg.GiveUpHold](p)
	if o.Err != nil {
		if j != nil {
			j.HoldRetry = c.Now.Add(state.AgainAfter)
		}
		c.Log.WithError(o.Err).WithField("hold", do.Name).Warn("cannot give up a hold")
		return
	}
	for _, out := range do.TakeOut {
		if other := c.Owner(out.Job); other != nil && other.Record.ID == out.Job {
			other.MovedTo(out.Rest)
		} else {
			state.Wrote(c.RecordOf(j, p, out.Job), slurmctl.JobUpdate{Reservation: &out.Rest})
		}
	}
	ForgetHold(c, do.Name)
}
