package slurmctl

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// ErrWantsAccount is an update of a running job that a site's job_submit plugin
// refuses: it wants Account= in every update, which Slurm takes for pending jobs only
// (all versions, 20.11 to 26.05).
var ErrWantsAccount = errors.New("this site's job_submit plugin refuses every update without Account=, and Slurm takes that for pending jobs only")

// change runs an update of a job. Some sites' job_submit plugins refuse updates that
// lack Account=: what was refused for no reason that is known is tried once more with
// the account that the job has, which changes nothing of it (measured on 22.05, as root).
// Of a job that runs that is refused by Slurm itself, before it has changed anything: the
// plugin has let it pass, which says something if it refuses what changes nothing (the time
// limit that the job has) without it, too: Slurm itself may have had no reason to give, as for a merge of what has
// GRES. Once either was seen the client sends the account at once, at the cost of one query of
// the job.
func (c *Client) change(ctx context.Context, id JobID, a *setting) error {
	if a.err != nil {
		return a.err
	}
	if c.wantsAccount.Load() {
		return c.withAccount(ctx, id, a, nil)
	}
	err := c.setting(ctx, a)
	if err == nil || explained(err) {
		return err
	}
	again := c.withAccount(ctx, id, a, err)
	if again == nil || errors.Is(again, ErrWantsAccount) && !c.takesWithout(ctx, id) {
		if !a.user.foreign() { // such a user can write what scontrol says
			c.wantsAccount.Store(true)
		}
		return again
	}
	return err
}

// withAccount runs an update with the job's own account in it; because of err, if that
// was tried without.
func (c *Client) withAccount(ctx context.Context, id JobID, a *setting, err error) error {
	jobs, failed := c.Glance(ctx, id)
	if failed != nil {
		return errors.Join(err, failed)
	}
	known := len(jobs) == 1 && jobs[0].Account != ""
	if !known || jobs[0].State != Pending {
		if err == nil { // the plugin may have been mended, or spare some updates: ask
			if err = c.setting(ctx, a); err == nil || explained(err) {
				return err
			}
		}
		if !known {
			return err
		}
	}
	with := &setting{args: append([]string{}, a.args...), user: a.user}
	with.add("Account", checkWord, jobs[0].Account)
	again := c.setting(ctx, with)
	if jobs[0].State != Pending && errors.Is(again, ErrNotPending) {
		return fmt.Errorf("%w: %w", ErrWantsAccount, err)
	}
	return again
}

// takesWithout reports whether the site takes an update of a running job that has no Account=, as far
// as that can be told: it does where Slurm was not asked, or names another reason.
func (c *Client) takesWithout(ctx context.Context, id JobID) bool {
	jobs, err := c.Glance(ctx, id)
	if err != nil || len(jobs) != 1 || jobs[0].TimeLimit == 0 {
		return true // not known: asked at the next one
	}
	a := newSetting("update")
	a.job(id)
	a.raw("TimeLimit", formatDuration(jobs[0].TimeLimit))
	err = c.setting(ctx, a)
	return err == nil || explained(err)
}

// TryUpdate sees whether the site lets a pending job be changed, by writing the start time
// into it that it has: WantsAccount may be known then. The error is a refusal for which
// Slurm itself gives no reason, of a plugin that is, with or without Account=.
func (c *Client) TryUpdate(ctx context.Context, id JobID, start time.Time) error {
	if err := c.UpdateJob(ctx, id, JobUpdate{StartTime: start}); !explained(err) {
		return err
	}
	return nil
}

// WantsAccount reports whether the site was seen to refuse updates without Account=, so
// that running jobs cannot be changed.
func (c *Client) WantsAccount() bool { return c.wantsAccount.Load() }

// explained reports whether an error has a reason that this package knows by name.
func explained(err error) bool {
	var failed *CommandError
	if !errors.As(err, &failed) || failed.ExitCode <= 0 {
		return true // not refused by Slurm
	}
	for reason := range phrases {
		if !errors.Is(reason, ErrUnspecified) && failed.Is(reason) {
			return true
		}
	}
	return false
}
