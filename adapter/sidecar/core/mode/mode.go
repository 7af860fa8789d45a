// Package mode says what a drive mode means on a site: its row of package drivemode, without what the site does not allow.
package mode

import (
	"errors"

	"github.com/evoslurm/evoslurm/adapter/internal/drivemode"
	"github.com/evoslurm/evoslurm/adapter/job/request"
)

// Facts holds what a site does not let the sidecar do with running Slurm jobs. A job has its own facts: whether it
// has a step manager is known once its request has been read.
type Facts struct {
	UpdatesNeedAccount bool // Slurm rejects every update of a running job (slurmctl.Client.WantsAccount)
	ResizesOnce        bool // Slurm resizes a job only once (slurmctl.ResizesOnce)
	StepManagers       bool // jobs may have a step manager (slurmctl.StepMgr)
	AsksJobs           bool // the sidecar may not submit in the users' names
}

// Of returns the row of a drive mode on a site: what the mode means, without what the site does not allow.
func Of(mode drivemode.Mode, on Facts) drivemode.Behaviour {
	b := mode.Means()
	if on.UpdatesNeedAccount {
		b.RaisesLimits, b.ReadiesLinks, b.StaysInHold = false, false, true
	}
	if on.UpdatesNeedAccount || on.StepManagers {
		b.ShrinksInPart, b.ResizesInPart = false, false
		b.Works = b.Works && !b.MergesGrowths
	}
	if on.ResizesOnce {
		b.ResizesInPart = false
	}
	if !b.ResizesInPart && !b.GrowthsStayJobs {
		b.ResizesBesidePlan = false
	}
	b.WaitsForPrologs, b.AsksJob = on.StepManagers, on.AsksJobs && b.BringsNodes
	return b
}

// With returns the facts that hold for a job with or without a step manager.
func (f Facts) With(stepMgr bool) Facts {
	f.StepManagers = stepMgr
	return f
}

const (
	AccountWords  = "the site's job_submit plugin refuses updates without Account=, which Slurm takes for pending jobs only, so that a job that runs cannot be changed"
	accountRemedy = "Begin with the fewest nodes and give back as many as a growth has brought, use --drive=chain, or have the administrator let updates of running jobs pass"
)

// WhyFixed returns why Slurm jobs cannot be made smaller, or "" if they can.
func (f Facts) WhyFixed() string {
	switch {
	case f.UpdatesNeedAccount:
		return AccountWords
	case f.StepManagers:
		return request.StepMgrWords
	}
	return ""
}

// NoShrink returns the error for a profile that needs a smaller Slurm job. The text against says where. It returns nil
// if Slurm jobs can be made smaller.
func (f Facts) NoShrink(against string) error {
	switch {
	case f.UpdatesNeedAccount:
		return errors.New(against + ": " + AccountWords + ". " + accountRemedy)
	case f.StepManagers:
		return errors.New(against + ": " + request.StepMgrWords + ": " + request.StepMgrRemedy)
	}
	return nil
}
