package state

import (
	"github.com/evoslurm/evoslurm/adapter/internal/drivemode"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/mode"
)

// SetFacts records what the site does not allow. If that has changed, every job gets its row again.
func SetFacts(c *Core, facts mode.Facts) {
	if c.Facts == facts {
		return
	}
	c.Facts = facts
	for _, j := range c.Active {
		SetMode(c, j)
	}
}

// SetMode gives a job its row of the table. Call it when its drive mode or the knowledge about its request has changed.
func SetMode(c *Core, j *Job) { j.Mode = mode.Of(drivemode.Mode(j.Drive), FactsOf(c, j)) }

// FactsOf returns the facts for a job. It may have a step manager where the site has them, until its request is read.
func FactsOf(c *Core, j *Job) mode.Facts {
	facts := c.Facts
	if j.Asked != nil {
		facts = c.Facts.With(j.Asked.StepMgr)
	}
	facts.AsksJobs = facts.AsksJobs && j.User != c.Site.User
	return facts
}

// MayUpdate records whether Slurm lets the sidecar change running jobs.
func (c *Core) MayUpdate(may bool) {
	facts := c.Facts
	facts.UpdatesNeedAccount = !may
	SetFacts(c, facts)
}
