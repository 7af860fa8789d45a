package core

import (
	"errors"
	"fmt"

	"github.com/evoslurm/evoslurm/adapter/internal/drivemode"
	"github.com/evoslurm/evoslurm/adapter/job/request"
	"github.com/evoslurm/evoslurm/planner"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// siteFacts holds what a site does not let the sidecar do with running Slurm jobs. A job has its own facts: whether it
// has a step manager is known once its request has been read.
type siteFacts struct {
	updatesNeedAccount bool // Slurm rejects every update of a running job (slurmctl.Client.WantsAccount)
	resizesOnce        bool // Slurm resizes a job only once (slurmctl.ResizesOnce)
	stepManagers       bool // jobs may have a step manager (slurmctl.StepMgr)
}

// behaviour holds what a drive mode means for a job on its site. Every column answers a question that some decision
// asks. No column names the mode.
type behaviour struct {
	// Which parts of a job are one Slurm job, and which are several.
	stepsAreJobs     bool // every step is a Slurm job with a script, a time limit, and nodes of its own
	scriptSpansSteps bool // one batch script runs through all steps and calls next between them
	mergesGrowths    bool // the nodes of an expander become nodes of the base job
	growthsStayJobs  bool // an expander stays beside the base job, as its companion

	// What becomes of nodes and time limits from one step to the next.
	carriesNodes    bool // a job keeps its nodes when a step ends, and the next step goes on with them
	bringsNodes     bool // an expander brings the nodes of a growth, which takes bringSeconds
	resizes         bool // a job that runs gets more nodes or fewer, by its plan, by a change, or as it is offered
	raisesLimits    bool // the time limit of a running job can be raised
	readiesLinks    bool // the next step's Slurm job is released before the current step ends
	staysInHold     bool // a job that begins in a hold cannot be moved out of it, and the hold lasts as long as the job
	waitsForPrologs bool // an expander can be used only once its prologs have ended: until then it rejects steps

	// How finely a running job's size changes.
	shrinksInPart     bool // a Slurm job can be made smaller; otherwise it keeps its nodes until its end
	resizesInPart     bool // any nodes can come and go; otherwise whole companions only
	resizesBesidePlan bool // the size can change at other times than the plan says

	works bool // the site lets jobs grow in this mode
}

// modes holds what every drive mode means on a site that lets the sidecar do everything. A new mode is a row here,
// beside its name in package drivemode.
var modes = map[drivemode.Mode]behaviour{
	drivemode.Merge: {
		scriptSpansSteps: true, mergesGrowths: true,
		carriesNodes: true, bringsNodes: true, resizes: true, raisesLimits: true,
		shrinksInPart: true, resizesInPart: true, resizesBesidePlan: true, works: true,
	},
	drivemode.Companion: {
		scriptSpansSteps: true, growthsStayJobs: true,
		carriesNodes: true, bringsNodes: true, resizes: true, raisesLimits: true,
		shrinksInPart: true, resizesInPart: true, resizesBesidePlan: true, works: true,
	},
	drivemode.Chain: {
		stepsAreJobs: true,
		readiesLinks: true, works: true,
	},
}

// behaviourOf returns the row of a drive mode on a site: what the mode means, without what the site does not allow.
func behaviourOf(mode drivemode.Mode, on siteFacts) behaviour {
	b := modes[mode]
	if on.updatesNeedAccount {
		b.raisesLimits, b.readiesLinks, b.staysInHold = false, false, true
	}
	if on.updatesNeedAccount || on.stepManagers {
		b.shrinksInPart, b.resizesInPart = false, false
		b.works = b.works && !b.mergesGrowths
	}
	if on.resizesOnce {
		b.resizesInPart = false
	}
	if !b.resizesInPart && !b.growthsStayJobs {
		b.resizesBesidePlan = false
	}
	b.waitsForPrologs = on.stepManagers
	return b
}

// setFacts records what the site does not allow. If that has changed, every job gets its row again.
func (c *Core) setFacts(facts siteFacts) {
	if c.facts == facts {
		return
	}
	c.facts = facts
	for _, j := range c.active {
		c.setMode(j)
	}
}

// setMode gives a job its row of the table. It is called when the job's drive mode, or the knowledge about its request,
// has changed.
func (c *Core) setMode(j *job) { j.mode = behaviourOf(drivemode.Mode(j.Drive), c.factsOf(j)) }

// factsOf returns the facts that hold for a job. A job whose request has not been read may have a step manager
// where the site has them.
func (c *Core) factsOf(j *job) siteFacts {
	if j.asked == nil {
		return c.facts
	}
	return c.factsWith(j.asked.StepMgr)
}

// factsWith returns the facts that hold for a job with or without a step manager.
func (c *Core) factsWith(stepMgr bool) siteFacts {
	facts := c.facts
	facts.stepManagers = stepMgr
	return facts
}

// siteDrive returns the drive mode that jobs get where facts hold, and why.
func (c *Core) siteDrive(on siteFacts) (drivemode.Mode, string) {
	if b := behaviourOf(c.drive, on); b.mergesGrowths && !b.works {
		return drivemode.Companion, on.whyFixed()
	}
	return c.drive, c.driveReason
}

// driveOf returns the drive mode that a job gets, and why. The job's own choice comes first, then the configured mode,
// then the mode that works here. If a job asks for merge where merge never works, driveOf rejects it with the reason. If
// the site configured merge there, the job gets companions instead.
func (c *Core) driveOf(r *slurmctl.Job, sp request.Request, stepMgr bool) (drive drivemode.Mode, why string, err error) {
	const inWords = "drive mode merge cannot work here: %s; submit the job without --drive"
	wanted := sp.Drive
	facts := c.factsWith(stepMgr)
	drive, why = c.siteDrive(facts)
	switch {
	case wanted == drivemode.Merge && drive != drivemode.Merge:
		return "", "", fmt.Errorf(inWords, why)
	case wanted == drivemode.Merge:
		if against := c.noMergeAny(r, sp); against != "" {
			return "", "", fmt.Errorf(inWords, against)
		}
		drive, why = wanted, "the job asked for it"
	case wanted == drivemode.Companion:
		drive, why = wanted, "the job asked for it"
	case c.cfg.Drive == drivemode.Companion: // a job not submitted as a chain cannot become a chain
		drive, why = drivemode.Companion, "the configuration says so"
	case drive == drivemode.Merge && (c.site.Root || r.User == c.site.User):
		against := c.noMergeAny(r, sp)
		if against == "" && c.cfg.Drive != drivemode.Merge { // with merge configured, the site is responsible
			against = slurmctl.BesideEpilog(c.slurmConfig)
		}
		if against != "" {
			drive, why = drivemode.Companion, against
		}
	}
	if drive == drivemode.Companion && !c.site.Root && r.User != c.site.User {
		return "", "", fmt.Errorf("drive mode companion (%s) submits jobs in the user's name, for which the sidecar must run as root, not as %s", why, c.site.User)
	}
	if err := c.checkResizes(sp, facts); err != nil {
		return "", "", err
	}
	return drive, why, nil
}

// checkResizes returns an error if a profile that the job may get needs a resize that Slurm refuses.
func (c *Core) checkResizes(sp request.Request, facts siteFacts) error {
	profiles := []planner.Profile{sp.Profile}
	if sp.Moldable != nil {
		profiles = sp.Moldable.Alternatives
	}
	for _, p := range profiles {
		if against := request.Resized(p); against != "" {
			if err := facts.noShrink(against); err != nil {
				return err
			}
		}
		if against := request.ResizedTwice(p); facts.resizesOnce && against != "" {
			return errors.New(against + ", " + c.onceWords() + ": " + request.OnceRemedy)
		}
	}
	return nil
}

// noMergeAny returns the limits that prevent merging for any profile that the job may get, or "" if there are none.
func (c *Core) noMergeAny(r *slurmctl.Job, sp request.Request) string {
	if sp.Moldable == nil {
		return c.noMerge(r, sp.Profile)
	}
	for k, p := range sp.Moldable.Alternatives {
		if against := c.noMerge(r, p); against != "" && !sp.Moldable.LeftOut(k) {
			return against
		}
	}
	return ""
}

// turn makes the job grow by companions from now on.
func (c *Core) turn(j *job, why error) {
	if !j.mode.mergesGrowths {
		return
	}
	j.Drive = string(drivemode.Companion)
	c.setMode(j)
	c.save(j)
	c.event(j, "drive changed", map[string]any{"from": drivemode.Merge, "to": drivemode.Companion, "why": why.Error()})
	c.logJob(j).WithError(why).Warn("Slurm merges nothing into this job: it grows by companions from now on")
}

const (
	accountWords  = "the site's job_submit plugin refuses updates without Account=, which Slurm takes for pending jobs only, so that a job that runs cannot be changed"
	accountRemedy = "Begin with the fewest nodes and give back as many as a growth has brought, use --drive=chain, or have the administrator let updates of running jobs pass"
)

// whyFixed returns why Slurm jobs cannot be made smaller, or "" if they can.
func (f siteFacts) whyFixed() string {
	switch {
	case f.updatesNeedAccount:
		return accountWords
	case f.stepManagers:
		return request.StepMgrWords
	}
	return ""
}

// noShrink returns the error for a profile that needs a smaller Slurm job. The text against says where. It returns nil
// if Slurm jobs can be made smaller.
func (f siteFacts) noShrink(against string) error {
	switch {
	case f.updatesNeedAccount:
		return errors.New(against + ": " + accountWords + ". " + accountRemedy)
	case f.stepManagers:
		return errors.New(against + ": " + request.StepMgrWords + ": " + request.StepMgrRemedy)
	}
	return nil
}

// onceWords returns the text that Slurm resizes a job only once.
func (c *Core) onceWords() string {
	return fmt.Sprintf("and Slurm %s without slurmdbd resizes a job only once", c.slurmConfig.Version)
}

// mayUpdate records whether Slurm lets the sidecar change running jobs.
func (c *Core) mayUpdate(may bool) {
	facts := c.facts
	facts.updatesNeedAccount = !may
	c.setFacts(facts)
}
