package slurm

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/evoslurm/evoslurm/adapter/internal/drivemode"
	"github.com/evoslurm/evoslurm/adapter/job/request"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/mode"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
	"github.com/evoslurm/evoslurm/planner"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// TakeConfig takes over Slurm's configuration, which says what drive mode Auto selects.
func TakeConfig(c *state.Core, cfg slurmctl.Config) (err error) {
	merge, reasons := slurmctl.Capabilities(cfg)
	if cfg.Boot() != c.SlurmConfig.Boot() {
		c.CountsFrom = time.Time{}
	}
	c.SlurmConfig, c.ConfigRead, c.Ageing = cfg, c.Now, cfg.Ageing()
	stepMgrs, _ := slurmctl.StepMgr(cfg)
	state.SetFacts(c, mode.Facts{UpdatesNeedAccount: c.Facts.UpdatesNeedAccount, ResizesOnce: slurmctl.ResizesOnce(cfg), StepManagers: stepMgrs, AsksJobs: !c.Site.Root})
	c.Power.SetSaving(cfg)
	if _, c.SlurmUser, err = cfg.SlurmUser(); err != nil {
		return err
	}
	before := c.Drive
	c.Drive, c.DriveReason = drivemode.Companion, strings.Join(reasons, "; ")
	if merge {
		c.Drive = drivemode.Merge
	}
	if c.Drive != before {
		c.Log.WithField("drive", c.Drive).WithField("slurm", cfg.Version).Info("drive mode chosen: " + c.DriveReason)
	}
	return nil
}

// DriveOf returns the drive mode that a job gets, and why. The job's own choice comes first, then the configured mode,
// then the mode that works here. If a job asks for merge where merge never works, DriveOf rejects it with the reason. If
// the site configured merge there, the job gets companions instead.
func DriveOf(c *state.Core, r *slurmctl.Job, sp request.Request, stepMgr bool) (drive drivemode.Mode, why string, err error) {
	const inWords = "drive mode merge cannot work here: %s; submit the job without --drive"
	wanted := sp.Drive
	facts := c.Facts.With(stepMgr)
	drive, why = SiteDrive(c, facts)
	switch {
	case wanted == drivemode.Merge && drive != drivemode.Merge:
		return "", "", fmt.Errorf(inWords, why)
	case wanted == drivemode.Merge:
		if against := noMergeAny(c, r, sp); against != "" {
			return "", "", fmt.Errorf(inWords, against)
		}
		drive, why = wanted, "the job asked for it"
	case wanted == drivemode.Companion:
		drive, why = wanted, "the job asked for it"
	case c.Config.Drive == drivemode.Companion: // a job not submitted as a chain cannot become a chain
		drive, why = drivemode.Companion, "the configuration says so"
	case drive == drivemode.Merge:
		against := noMergeAny(c, r, sp)
		if against == "" && c.Config.Drive != drivemode.Merge { // with merge configured, the site is responsible
			against = slurmctl.BesideEpilog(c.SlurmConfig)
		}
		if against != "" {
			drive, why = drivemode.Companion, against
		}
	}
	if err := checkResizes(c, sp, facts); err != nil {
		return "", "", err
	}
	return drive, why, nil
}

// checkResizes returns an error if a profile that the job may get needs a resize that Slurm refuses.
func checkResizes(c *state.Core, sp request.Request, facts mode.Facts) error {
	profiles := []planner.Profile{sp.Profile}
	if sp.Moldable != nil {
		profiles = sp.Moldable.Alternatives
	}
	for _, p := range profiles {
		if against := request.Resized(p); against != "" {
			if err := facts.NoShrink(against); err != nil {
				return err
			}
		}
		if against := request.ResizedTwice(p); facts.ResizesOnce && against != "" {
			return errors.New(against + ", " + OnceWords(c) + ": " + request.OnceRemedy)
		}
	}
	return nil
}

// noMergeAny returns the limits that prevent merging for any profile that the job may get, or "" if there are none.
func noMergeAny(c *state.Core, r *slurmctl.Job, sp request.Request) string {
	if sp.Moldable == nil {
		return noMerge(c, r, sp.Profile)
	}
	for k, p := range sp.Moldable.Alternatives {
		if against := noMerge(c, r, p); against != "" && !sp.Moldable.LeftOut(k) {
			return against
		}
	}
	return ""
}

// noMerge returns why limits rule out merging for a job, or "" if they do not. Either its partition accepts no
// expander as small as a growth, or a limit counts its user's jobs. In all Slurm versions so far, every merged
// expander continues to count until slurmctld restarts or rereads its configuration.
func noMerge(c *state.Core, r *slurmctl.Job, p planner.Profile) string {
	limits := c.Rules.Limits
	need := state.NeedOf(p, false)
	if limits == nil || len(need.Growths) == 0 {
		return ""
	}
	for _, partition := range strings.Split(r.Partition, ",") {
		s := state.Subject(r, partition)
		if limits.TooSmall(s, slices.Min(need.Growths)) {
			return "partition " + partition + " takes no expander as small as a growth (MinNodes)"
		}
		if which, counts := limits.CountsJobs(s); counts {
			return which + ", and Slurm goes on counting merged expanders"
		}
	}
	return ""
}

// OnceWords returns the text that Slurm resizes a job only once.
func OnceWords(c *state.Core) string {
	return fmt.Sprintf("and Slurm %s without slurmdbd resizes a job only once", c.SlurmConfig.Version)
}

// SiteDrive returns the drive mode that jobs get where facts hold, and why.
func SiteDrive(c *state.Core, on mode.Facts) (drivemode.Mode, string) {
	if b := mode.Of(c.Drive, on); b.MergesGrowths && !b.Works {
		return drivemode.Companion, on.WhyFixed()
	}
	return c.Drive, c.DriveReason
}

// RequeuesMerged returns why Slurm would requeue a running job some time after these nodes were merged into it, or nil. When the
// node of the batch script registers again, slurmctld takes the script for lost unless that node is the job's first one (all
// versions; validate_jobs_on_node in slurmctld's source). It does so once the job has run for longer than BatchStartTimeout.
func RequeuesMerged(c *state.Core, j *state.Job, nodes []string) error {
	if j.Record.TimeLimit <= slurmctl.BatchStartTimeout(c.SlurmConfig) {
		return nil
	}
	host, known := c.Snapshot.Index[j.BatchHost]
	for _, name := range nodes {
		if n, ok := c.Snapshot.Index[name]; ok && known && n < host {
			return fmt.Errorf("Slurm requeues a job with a merged node (%s) that comes before the node of its batch script (%s)", name, j.BatchHost)
		}
	}
	return nil
}

// Unmerge makes a job grow by companions from now on.
func Unmerge(c *state.Core, j *state.Job, why error) {
	if !j.Mode.MergesGrowths {
		return
	}
	j.DriveBy(string(drivemode.Companion))
	state.SetMode(c, j)
	c.Save(j)
	c.Event(j, "drive changed", map[string]any{"from": drivemode.Merge, "to": drivemode.Companion, "why": why.Error()})
	c.LogJob(j).WithError(why).Warn("Slurm merges nothing into this job: it grows by companions from now on")
}
