package state

import (
	"errors"
	"fmt"

	"github.com/evoslurm/evoslurm/adapter/internal/drivemode"
	"github.com/evoslurm/evoslurm/adapter/job/request"
)

// SiteFacts holds what a site does not let the sidecar do with running Slurm jobs. A job has its own facts: whether it
// has a step manager is known once its request has been read.
type SiteFacts struct {
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

// Modes holds what every drive mode means on a site that lets the sidecar do everything. A new mode is a row here,
// beside its name in package drivemode.
var Modes = map[drivemode.Mode]Behaviour{
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

// BehaviourOf returns the row of a drive mode on a site: what the mode means, without what the site does not allow.
func BehaviourOf(mode drivemode.Mode, on SiteFacts) Behaviour {
	b := Modes[mode]
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

// SetFacts records what the site does not allow. If that has changed, every job gets its row again.
func SetFacts(c *Core, facts SiteFacts) {
	if c.Facts == facts {
		return
	}
	c.Facts = facts
	for _, j := range c.Active {
		SetMode(c, j)
	}
}

// SetMode gives a job its row of the table. Call it when its drive mode or the knowledge about its request has changed.
func SetMode(c *Core, j *Job) { j.Mode = BehaviourOf(drivemode.Mode(j.Drive), FactsOf(c, j)) }

// FactsOf returns the facts for a job. It may have a step manager where the site has them, until its request is read.
func FactsOf(c *Core, j *Job) SiteFacts {
	facts := c.Facts
	if j.Asked != nil {
		facts = c.Facts.With(j.Asked.StepMgr)
	}
	facts.AsksJobs = facts.AsksJobs && j.User != c.Site.User
	return facts
}

// With returns the facts that hold for a job with or without a step manager.
func (f SiteFacts) With(stepMgr bool) SiteFacts {
	f.StepManagers = stepMgr
	return f
}

// SiteDrive returns the drive mode that jobs get where facts hold, and why.
func SiteDrive(c *Core, on SiteFacts) (drivemode.Mode, string) {
	if b := BehaviourOf(c.Drive, on); b.MergesGrowths && !b.Works {
		return drivemode.Companion, on.WhyFixed()
	}
	return c.Drive, c.DriveReason
}

// Turn makes the job grow by companions from now on.
func (c *Core) Turn(j *Job, why error) {
	if !j.Mode.MergesGrowths {
		return
	}
	j.DriveBy(string(drivemode.Companion))
	SetMode(c, j)
	c.Save(j)
	c.Event(j, "drive changed", map[string]any{"from": drivemode.Merge, "to": drivemode.Companion, "why": why.Error()})
	c.LogJob(j).WithError(why).Warn("Slurm merges nothing into this job: it grows by companions from now on")
}

const (
	AccountWords  = "the site's job_submit plugin refuses updates without Account=, which Slurm takes for pending jobs only, so that a job that runs cannot be changed"
	accountRemedy = "Begin with the fewest nodes and give back as many as a growth has brought, use --drive=chain, or have the administrator let updates of running jobs pass"
)

// WhyFixed returns why Slurm jobs cannot be made smaller, or "" if they can.
func (f SiteFacts) WhyFixed() string {
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
func (f SiteFacts) NoShrink(against string) error {
	switch {
	case f.UpdatesNeedAccount:
		return errors.New(against + ": " + AccountWords + ". " + accountRemedy)
	case f.StepManagers:
		return errors.New(against + ": " + request.StepMgrWords + ": " + request.StepMgrRemedy)
	}
	return nil
}

// OnceWords returns the text that Slurm resizes a job only once.
func OnceWords(c *Core) string {
	return fmt.Sprintf("and Slurm %s without slurmdbd resizes a job only once", c.SlurmConfig.Version)
}

// MayUpdate records whether Slurm lets the sidecar change running jobs.
func (c *Core) MayUpdate(may bool) {
	facts := c.Facts
	facts.UpdatesNeedAccount = !may
	SetFacts(c, facts)
}
