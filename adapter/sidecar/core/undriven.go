package core

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/internal/config"
	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// A parked job that cannot be driven, because it was refused or because Slurm refuses to start it, would wait
// in Slurm's queue without end. evosqueue shows the reason from the start. After give_up, the site's policy
// (undriven) keeps the job, releases it as a stock job, or cancels it.

// refused holds a job with a marker that the sidecar does not drive.
type refused struct {
	api.Job
	since time.Time
	again time.Time // when the next attempt to release or cancel it follows
}

// mayLeave gives up a queued job that Slurm has refused to start for give_up.
func (c *Core) mayLeave(j *job, err error) {
	if err == nil || outage(err) || j.State != row.Queued || j.failing.IsZero() || c.now.Sub(j.failing) < c.cfg.GiveUp {
		return
	}
	r := j.record
	text := fmt.Sprintf("Slurm has refused to start it for %v: %v", c.cfg.GiveUp, err)
	c.event(j, "given up", map[string]any{"failures": j.failures, "error": err.Error()})
	c.refuse(&r, fmt.Errorf("%s", text))
	in := c.refused[r.ID]
	in.since = c.now.Add(-c.cfg.GiveUp) // its time is up
	c.refused[r.ID] = in
	c.end(j, slurmctl.Job{})
}

// leaveRefused applies the site's policy to parked jobs that are not driven.
func (c *Core) leaveRefused(s *snapshot) {
	if c.cfg.Undriven == config.UndrivenKeep {
		return
	}
	for _, id := range slices.Sorted(maps.Keys(c.refused)) {
		in, r := c.refused[id], s.byID[id]
		if r == nil || !mayHaveLost(r, s.taken) || c.now.Sub(in.since) < c.cfg.GiveUp || c.now.Before(in.again) || !c.work.room() {
			continue
		}
		in.again = c.now.Add(mostPause)
		c.refused[id] = in
		c.leave(r)
	}
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
func (c *Core) leave(r *slurmctl.Job) {
	comment := unmarked(c.refused[r.ID].Reason)
	what, do := "let go as a stock job", Command(Update{Job: r.ID, Change: slurmctl.JobUpdate{StartNow: true, Comment: &comment}})
	if c.cfg.Undriven == config.UndrivenCancel {
		what, do = "cancelled", Cancel{[]slurmctl.JobID{r.ID}}
	}
	c.ask(nil, fmt.Sprint("leave ", r.ID), KindLeave, Task{Command: do}, Args{What: what, Of: r.ID})
}

// settleLeave is called when a refused job was released or cancelled, or when that failed.
func (c *Core) settleLeave(_ *job, p *Pending, o Outcome) {
	id, what := p.Args.Of, p.Args.What
	in, known := c.refused[id]
	if !known {
		return
	}
	entry := c.log.WithField("job", id).WithField("user", in.User)
	if o.Err != nil {
		why, _, _ := strings.Cut(in.Reason, "; it cannot be ") // without the error of the last try
		in.Reason = fmt.Sprintf("%s; it cannot be %s: %v", why, what, o.Err)
		entry.WithError(o.Err).Warn("a job that cannot be driven stays parked")
	} else {
		entry.Warn("a job that cannot be driven is " + what)
		c.event(nil, "left", map[string]any{"slurm_id": id, "uid": in.UID, "user": in.User, "what": what, "why": in.Reason})
		in.Reason += "; it is " + what
	}
	c.refused[id] = in
}
