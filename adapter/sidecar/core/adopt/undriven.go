package adopt

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/evoslurm/evoslurm/adapter/internal/config"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// LeaveRefused applies the site's policy to parked jobs that are not driven.
func LeaveRefused(c *state.Core, s *state.Snapshot) {
	if c.Releases() {
		return
	}
	keeps := c.Config.Undriven != config.UndrivenRelease
	for _, id := range slices.Sorted(maps.Keys(c.Refused)) {
		in, r := c.Refused[id], s.ByID[id]
		if r == nil || in.Drained || keeps && in.Was && parkAgain(c, s, r, in) || c.Config.Undriven == config.UndrivenKeep {
			continue
		}
		if !isParked(c, s, r, in) || !c.Reached(c.Now, in.Since.Add(c.Config.GiveUp)) || !c.Reached(c.Now, in.Again) || !c.Work.Room() {
			continue
		}
		in.Again = c.Now.Add(state.MostPause)
		c.Refused[id] = in
		leave(c, r)
	}
}

// isParked reports whether a refused job does not start before a time that the sidecar gave it.
func isParked(c *state.Core, s *state.Snapshot, r *slurmctl.Job, in state.Refused) bool {
	return mayHaveLost(c, r, s.Taken) || in.Was && r.State == slurmctl.Pending && !c.Reached(s.Taken, r.StartTime)
}

// parkAgain parks a refused job that Slurm would start by its old plan. It reports false if it is parked.
func parkAgain(c *state.Core, s *state.Snapshot, r *slurmctl.Job, in state.Refused) bool {
	if r.State != slurmctl.Pending || r.Reason != "BeginTime" || mayHaveLost(c, r, s.Taken) || c.Reached(s.Taken, r.StartTime) {
		return false
	}
	if c.Due(c.Now, in.Again) && c.Work.Room() {
		in.Again = c.Now.Add(StartWait)
		c.Refused[r.ID] = in
		c.Ask(nil, fmt.Sprint("leave ", r.ID), state.KindLeave, msg.Task{Command: msg.Update{Job: r.ID, Change: slurmctl.JobUpdate{StartTime: c.Now.Add(Parked)}}},
			state.Args{What: "parked again", Of: r.ID})
	}
	return true
}

// mostWhy bounds the reason in a job's comment, in bytes.
const mostWhy = 300

// unmarked returns the comment of a released job: a later sidecar must not take the job for an evolving one,
// and its user sees the reason where Slurm shows comments.
func unmarked(why string) string {
	if len(why) > mostWhy {
		why = strings.ToValidUTF8(why[:mostWhy], "") + "…"
	}
	return "Evoslurm does not drive this job: " + strings.ReplaceAll(why, "evo:v", "evo v")
}

// leave releases or cancels a refused job.
func leave(c *state.Core, r *slurmctl.Job) {
	comment := unmarked(c.Refused[r.ID].Reason)
	what, do := "let go as a stock job", msg.Command(msg.Update{Job: r.ID, Change: slurmctl.JobUpdate{StartNow: true, Comment: &comment}})
	if c.Config.Undriven == config.UndrivenCancel {
		what, do = "cancelled", msg.Cancel{Jobs: []slurmctl.JobID{r.ID}}
	}
	c.Ask(nil, fmt.Sprint("leave ", r.ID), state.KindLeave, msg.Task{Command: do}, state.Args{What: what, Of: r.ID})
}

// SettleLeave is called when a refused job was released or cancelled, or when that failed.
func SettleLeave(c *state.Core, _ *state.Job, p *state.Pending, o msg.Outcome) {
	id, what := p.Args.Of, p.Args.What
	in, known := c.Refused[id]
	if !known {
		return
	}
	entry := c.Log.WithField("job", id).WithField("user", in.User)
	if p.Args.Release {
		settleRelease(c, id, p, o)
		return
	}
	if o.Err != nil {
		why, _, _ := strings.Cut(in.Reason, "; it cannot be ") // without the error of the last try
		reason := fmt.Sprintf("%s; it cannot be %s: %v", why, what, o.Err)
		if reason != in.Reason && c.MayTell(in.UID) {
			entry.WithError(o.Err).Warn("a job that cannot be driven stays parked")
		}
		in.Reason = reason
	} else {
		c.WarnOf(in.UID, entry, "a job that cannot be driven is "+what, "left", map[string]any{"slurm_id": id, "uid": in.UID, "user": in.User, "what": what, "why": in.Reason})
		in.Reason, in.Was = in.Reason+"; it is "+what, false // its start is its user's from now on
	}
	c.Refused[id] = in
}
