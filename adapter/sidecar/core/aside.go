package core

import (
	"encoding/binary"
	"errors"
	"iter"
	"time"

	"github.com/evoslurm/evoslurm/slurmctl"
)

// A user's job must not end the sidecar again and again. The core notes at which job it is, in
// memory that the shell keeps in a file, so that it outlives a panic and a kill alike. The next
// life finds there whose handling ended the one before, and that job is set aside: it runs or
// waits as Slurm has it, nothing is done to it or for it, operators see why, and all others go on.

// Handling is the note: the job's number, how it is handled, and when it was submitted. A number
// of 0: no job is.
type Handling [16]byte

// Stage is how a job is handled.
type Stage byte

// The stages.
const (
	Again   Stage = iota // it has come through a whole cycle before
	First                // it has not
	Guessed              // all jobs are planned at once, and it is one that has not
)

// At returns the job that is noted, when it was submitted (in whole seconds), and its stage.
func (h *Handling) At() (slurmctl.JobID, time.Time, Stage) {
	return slurmctl.JobID(binary.LittleEndian.Uint32(h[:])), time.Unix(int64(binary.LittleEndian.Uint64(h[8:])), 0), Stage(h[4])
}

// Note writes which job is handled from now on. The number comes last: what stands there is
// whole whenever the process ends.
func (h *Handling) Note(id slurmctl.JobID, submitted time.Time, stage Stage) {
	binary.LittleEndian.PutUint32(h[:], 0)
	binary.LittleEndian.PutUint64(h[8:], uint64(submitted.Unix()))
	h[4] = byte(stage)
	binary.LittleEndian.PutUint32(h[:], uint32(id))
}

// Done notes that no job is handled.
func (h *Handling) Done() { binary.LittleEndian.PutUint32(h[:], 0) }

// NoteIn has the core note there which job it is at.
func (c *Core) NoteIn(h *Handling) { c.handling = h }

// at notes that a job is handled.
func (c *Core) at(j *job) {
	stage := First
	if j.settled {
		stage = Again
	}
	c.handling.Note(j.id(), j.Submitted, stage)
}

// each returns jobs one after the other and notes which is handled. A job that ends the process
// stays noted.
func (c *Core) each(jobs []*job) iter.Seq[*job] {
	return func(yield func(*job) bool) {
		outer := *c.handling
		for _, j := range jobs {
			if c.at(j); !yield(j) {
				break
			}
		}
		*c.handling = outer
	}
}

// Aside is a job that is set aside.
type Aside struct {
	Job       slurmctl.JobID
	Submitted time.Time // whole seconds: a number is given again some day
	User      string
	Why       string
}

// plans notes, while a strategy plans all jobs at once, a job that was not planned before: should
// that end the process, it is the likeliest.
func (c *Core) plans() {
	for _, j := range c.active {
		if !j.settled {
			c.handling.Note(j.id(), j.Submitted, Guessed)
		}
	}
}

// setAside returns why a Slurm job is set aside; "" if it is not.
func (c *Core) setAside(id slurmctl.JobID, submitted time.Time) string {
	if a, is := c.aside[id]; is && a.Submitted.Unix() == submitted.Unix() {
		return "set aside: " + a.Why
	}
	return ""
}

// refuseAside refuses a job that is set aside, and reports whether it is.
func (c *Core) refuseAside(r *slurmctl.Job) bool {
	why := c.setAside(r.ID, r.SubmitTime)
	if why != "" {
		c.refuse(r, errors.New(why))
	}
	return why != ""
}

// settle notes that all jobs have come through a whole cycle.
func (c *Core) settle() {
	for _, j := range c.active {
		j.settled = true
	}
}
