package adopt

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/internal/config"
	"github.com/evoslurm/evoslurm/adapter/job/request"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/plan"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/slurm"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// An operator drains the sidecar: it adopts nothing new, queued jobs stay parked without plans and holds, and running
// jobs go on as planned. Or the operator releases everything (evosctl release-all). Then every job becomes an ordinary
// one: the sidecar forgets it, and the mark in its comment says so (request.LetGo). What is left to do follows from
// Slurm alone, in every cycle and after every restart, until the operator resumes.

// Drain takes over that the sidecar was drained or resumed. The jobs that it had left alone are looked at again.
func Drain(c *state.Core, was config.Drain) {
	if c.Config.Drain == was {
		return
	}
	kind, words := "resumed", "the sidecar is resumed"
	if c.Drained() {
		if kind, words = "drained", c.DrainWords(); c.Releases() {
			kind = "release all"
		}
	}
	d, _ := c.Config.Drain.Parse()
	c.Event(nil, kind, map[string]any{"by": d.By, "words": string(c.Config.Drain)})
	c.Log.Warn(words)
	maps.DeleteFunc(c.Refused, func(_ slurmctl.JobID, in state.Refused) bool { return in.Drained })
}

// refuseDrained reports whether a Slurm job that asks for it is not adopted because the sidecar is drained. A drained
// sidecar takes a job that ran before, because it may have lost its database.
func refuseDrained(c *state.Core, r *slurmctl.Job) bool {
	if !c.Drained() {
		return false
	}
	d, _ := c.Config.Drain.Parse()
	if running(r) && !d.Release && (d.At.IsZero() || c.Wall(r.StartTime).Before(d.At)) {
		return false
	}
	left := "stays parked until evosctl resume"
	if running(r) {
		left = "runs as an ordinary job"
	}
	asks, peak := c.Requests[r.ID].Request, 0
	if asks.Chain == nil { // a link of a chain has its step's nodes
		peak = asks.Profile.Peak()
	}
	LeaveDrained(c, r, Stranger(r, d.Words()+"; it "+left), asks.Begin, peak)
	return true
}

// LeaveDrained records that the sidecar has nothing to do with a job while it is drained, or because the job
// was let go before.
func LeaveDrained(c *state.Core, r *slurmctl.Job, shown api.Job, begin time.Time, peak int) {
	c.Refused[r.ID] = state.Refused{Job: shown, Since: c.Now, Drained: true, Begin: begin, Peak: peak, LetGo: request.IsLetGo(r.Comment)}
}

// noteLetGo reports whether a Slurm job was let go before.
func noteLetGo(c *state.Core, r *slurmctl.Job) bool {
	if !request.IsLetGo(r.Comment) {
		return false
	}
	LeaveDrained(c, r, Stranger(r, LetGoWords), time.Time{}, 0)
	return true
}

// LetGoWords is the reason in evosqueue of a job that was let go.
const LetGoWords = "let go: it is an ordinary job of Slurm now"

// Release lets the jobs go that the sidecar does not drive, as the operator said.
func Release(c *state.Core, s *state.Snapshot) {
	for _, id := range slices.Sorted(maps.Keys(c.Refused)) {
		in, r := c.Refused[id], s.ByID[id]
		if in.LetGo && r != nil && c.Reached(s.Taken, in.Again) && mayHaveLost(c, r, s.Taken) {
			in.LetGo = false // something has parked it again
		}
		if r == nil || in.LetGo || !in.Drained && !in.Was && !mayHaveLost(c, r, s.Taken) || !c.Due(c.Now, in.Again) || c.Work.Keys[readKey(id)] || !c.Work.Room() {
			continue // or a try is under way, which would park it again
		}
		do, what := releaseOf(c, s, r, &in)
		if do == nil {
			in.LetGo = true
			c.Refused[id] = in
			continue
		}
		in.Again = c.Now.Add(state.AgainAfter)
		c.Refused[id] = in
		c.Ask(nil, fmt.Sprint("leave ", id), state.KindLeave, msg.Task{Command: do}, state.Args{What: what, Of: id, Release: true})
	}
}

// releaseOf returns what lets a job go, or nil if nothing is left to do.
func releaseOf(c *state.Core, s *state.Snapshot, r *slurmctl.Job, in *state.Refused) (do msg.Command, what string) {
	d, _ := c.Config.Drain.Parse()
	var u slurmctl.JobUpdate
	if comment := request.LetGo(r.Comment); comment != r.Comment {
		u.Comment = &comment
	}
	if rest := withoutHolds(c, r.Reservation); rest != r.Reservation {
		u.Reservation = &rest
	}
	as := uint32(0)
	switch pending := r.State == slurmctl.Pending; {
	case !pending && c.Facts.UpdatesNeedAccount: // the site lets no running job be changed
		return nil, ""
	case !pending:
		what = "let go as it is"
	case d.Queued == "cancel":
		return msg.Cancel{Jobs: []slurmctl.JobID{r.ID}}, "cancelled"
	default:
		what = "let go as an ordinary job"
		unpark(c, r, in, &u)
		if name := ownName(r); name != r.Name {
			u.Name = name // the rest of an array
		}
		if d.As == "peak" && mayHavePeak(c, s, r, in) {
			if u.NumNodes = in.Peak; c.Site.Root {
				as = r.UID // Slurm compares the size with the user's limits
			}
		}
		if d.Queued == "hold" {
			what, u.Hold = "held (scontrol release starts it)", r.Priority > 0
			if mayResume(c, s, r) {
				u.Comment = nil
			}
		}
	}
	if u == (slurmctl.JobUpdate{}) {
		return nil, ""
	}
	return msg.Update{Job: r.ID, Change: u, As: as}, what
}

// mayHavePeak reports whether a queued job is let go with the nodes of its largest step, if the operator wants that.
func mayHavePeak(c *state.Core, s *state.Snapshot, r *slurmctl.Job, in *state.Refused) bool {
	return in.Peak > r.NumNodes && !in.PeakRefused && slurm.MayStart(c, s, r, in.Peak)
}

// unpark lets a job start now, or at its user's own time.
func unpark(c *state.Core, r *slurmctl.Job, in *state.Refused, u *slurmctl.JobUpdate) {
	switch {
	case !c.Reached(c.Now, in.Begin):
		if !r.StartTime.Equal(in.Begin) {
			u.StartTime = in.Begin
		}
	case !c.Reached(c.Now, r.StartTime):
		u.StartNow = true
	}
}

// mayResume reports whether a sidecar that is resumed may take a held job again. The rest of a chain has no use for that.
func mayResume(c *state.Core, s *state.Snapshot, r *slurmctl.Job) bool {
	asks, _, _ := plan.Mark(c, r)
	if asks.Chain == nil || asks.Chain.First == 0 {
		return true
	}
	first := s.ByID[slurmctl.JobID(asks.Chain.First)]
	return first != nil && first.State == slurmctl.Pending
}

// withoutHolds returns a list of reservations without our holds.
func withoutHolds(c *state.Core, list string) string {
	var rest []string
	for name := range strings.SplitSeq(list, ",") {
		_, ours := state.ParseHoldName(name)
		if r, known := c.Reservations[name]; known {
			_, ours = state.ParseHold(r)
		}
		if !ours {
			rest = append(rest, name)
		}
	}
	return strings.Join(rest, ",")
}

// settleRelease records that a job was let go, or why not.
func settleRelease(c *state.Core, id slurmctl.JobID, p *state.Pending, o msg.Outcome) {
	in, u := c.Refused[id], state.CommandOf[msg.Update](p).Change
	switch {
	case o.Err == nil:
		in.LetGo, in.Reason, in.Again = true, p.Args.What, c.Now.Add(state.MostPause)
		c.WarnOf(in.UID, c.Log.WithField("job", id).WithField("user", in.User), "everything is released: a job is "+in.Reason, "left", map[string]any{"slurm_id": id, "uid": in.UID, "user": in.User, "what": in.Reason})
	case u.NumNodes > 0 && (!state.Transient(o.Err) || errors.Is(o.Err, context.DeadlineExceeded)): // its user may have stopped the command
		in.PeakRefused, in.Again = true, c.Now // with the size of its first step
	default:
		in.Reason = fmt.Sprintf("it cannot be %s: %v", p.Args.What, o.Err)
	}
	c.Refused[id] = in
}
