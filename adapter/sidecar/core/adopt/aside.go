package adopt

import (
	"errors"
	"time"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// NoteIn makes the core record in h which job it is handling.
func NoteIn(c *state.Core, h *msg.Handling) { c.Handling = h }

// Plans records a job that was not planned before, while a strategy plans all jobs at once. If
// the planning ends the process, that job is the likeliest cause.
func Plans(c *state.Core) {
	for _, j := range c.Active {
		if !j.Settled {
			c.Handling.Note(j.BaseID(), j.Submitted, msg.Guessed)
		}
	}
}

// SetAside returns why a Slurm job is set aside, or "" if it is not.
func SetAside(c *state.Core, id slurmctl.JobID, submitted time.Time) string {
	if a, is := c.Aside[id]; is && a.Submitted.Unix() == submitted.Unix() {
		return "set aside: " + a.Why
	}
	return ""
}

// refuseAside refuses a job that is set aside, and reports whether the job is set aside.
func refuseAside(c *state.Core, r *slurmctl.Job) bool {
	why := SetAside(c, r.ID, r.SubmitTime)
	if why != "" {
		Refuse(c, r, errors.New(why))
	}
	return why != ""
}

// Settle records that all jobs have come through a whole cycle.
func Settle(c *state.Core) {
	for _, j := range c.Active {
		j.Settled = true
	}
}
