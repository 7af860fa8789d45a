// Package mode is the table of drive modes: what each means on a site with what the site does not allow.
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

// Behaviour holds what a drive mode means for a job on its site. Every column answers a question that some decision
// asks. No column names the mode.
type Behaviour struct {
	// Which parts of a job are one Slurm job, and which are several.
	StepsAreJobs     bool // every step is a Slurm job with a script, a time limit, and nodes of its own
	ScriptSpansSteps bool // one batch script runs through all steps and calls next between them
	MergesGrowths    bool // the nodes of an expander become nodes of the base job
	GrowthsStayJobs  bool // an expander stays beside the base job, as its companion

	// What becomes of nodes and time limits from one step to the next.
	CarriesNodes    bool // a job keeps its nodes when a step ends, and the next step goes on with them
	BringsNodes     bool // an expander brings the nodes of a growth, which takes BringSeconds
	AsksJob         bool // a process of the job submits expanders
	Resizes         bool // a job that runs gets more nodes or fewer, by its plan, by a change, or as it is offered
	RaisesLimits    bool // the time limit of a running job can be raised
	ReadiesLinks    bool // the next step's Slurm job is released before the current step ends
	StaysInHold     bool // a job that begins in a hold cannot be moved out of it, and the hold lasts as long as the job
	WaitsForPrologs bool // an expander can be used only once its prologs have ended: until then it rejects steps

	// How finely a running job's size changes.
	ShrinksInPart     bool // a Slurm job can be made smaller; otherwise it keeps its nodes until its end
	ResizesInPart     bool // any nodes can come and go; otherwise whole companions only
	ResizesBesidePlan bool // the size can change at other times than the plan says

	Works bool // the site lets jobs grow in this mode
}

// Table holds what every drive mode means on a site that lets the sidecar do everything. A new mode is a row here,
// beside its name in package drivemode.
var Table = map[drivemode.Mode]Behaviour{
	drivemode.Merge: {
		ScriptSpansSteps: true, MergesGrowths: true, CarriesNodes: true, BringsNodes: true, Resizes: true, RaisesLimits: true,
		ShrinksInPart: true, ResizesInPart: true, ResizesBesidePlan: true, Works: true,
	},
	drivemode.Companion: {
		ScriptSpansSteps: true, GrowthsStayJobs: true, CarriesNodes: true, BringsNodes: true, Resizes: true, RaisesLimits: true,
		ShrinksInPart: true, ResizesInPart: true, ResizesBesidePlan: true, Works: true,
	},
	drivemode.Chain: {StepsAreJobs: true, ReadiesLinks: true, Works: true},
}

// Of returns the row of a drive mode on a site: what the mode means, without what the site does not allow.
func Of(mode drivemode.Mode, on Facts) Behaviour {
	b := Table[mode]
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
