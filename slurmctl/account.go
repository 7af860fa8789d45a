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
// lack Account=, in whatever words they like. So a refusal is judged by what becomes of an
// update that changes nothing: where the site refuses that without the job's own account, and
// the plugin lets it pass with the account, the site wants Account= in every update. Slurm
// itself refuses the account of a job that is not pending, before it changes anything: so the
// plugin has let that pass, too (measured on 22.05, as root). Once that was seen the client
// sends the account at once, at the cost of one query of the job.
//
// What is tried is tried in the name of this process: another user can write what a
// command in that user's name prints.
func (c *Client) change(ctx context.Context, id JobID, a *setting) error {
	if a.err != nil {
		return a.err
	}
	if c.wantsAccount.Load() {
		return c.withAccount(ctx, id, a)
	}
	err := c.setting(ctx, a)
	if !refusedUpdate(err) {
		return err
	}
	j, known := c.lasting(ctx, id)
	if !known || !refusedUpdate(c.touch(ctx, j, false)) {
		return err
	}
	if with := c.touch(ctx, j, true); with != nil && (j.State == Pending || !errors.Is(with, ErrNotPending)) {
		return err // the plugin refuses that, too
	}
	c.wantsAccount.Store(true)
	if j.State != Pending {
		return fmt.Errorf("%w: %w", ErrWantsAccount, err)
	}
	return c.setting(ctx, a.with(j.Account))
}

// withAccount runs an update at a site that wants Account=, as far as Slurm takes it.
func (c *Client) withAccount(ctx context.Context, id JobID, a *setting) error {
	j, known := c.lasting(ctx, id)
	if known && j.State == Pending {
		return c.setting(ctx, a.with(j.Account))
	}
	err := c.setting(ctx, a) // the plugin may have been mended, or spare some updates
	if known && refusedUpdate(err) && refusedUpdate(c.touch(ctx, j, false)) {
		return fmt.Errorf("%w: %w", ErrWantsAccount, err)
	}
	return err
}

// lasting is a job that can be updated, and whose account is known.
func (c *Client) lasting(ctx context.Context, id JobID) (Job, bool) {
	jobs, err := c.Glance(ctx, id)
	if err != nil || len(jobs) != 1 {
		return Job{}, false
	}
	j := jobs[0]
	return j, j.Account != "" && j.TimeLimit != 0 && !j.Ended() && j.State != Completing
}

// touch updates a job so that nothing changes: it writes the time limit that the job has.
func (c *Client) touch(ctx context.Context, j Job, account bool) error {
	a := newSetting("update")
	a.job(j.ID)
	a.raw("TimeLimit", formatDuration(j.TimeLimit))
	if account {
		a = a.with(j.Account)
	}
	return c.setting(ctx, a)
}

// with is the setting with an account in it.
func (a *setting) with(account string) *setting {
	with := &setting{args: append([]string{}, a.args...), user: a.user}
	with.add("Account", checkWord, account)
	return with
}

// refusedUpdate reports whether slurmctld, or a plugin of it, has refused an update: not that it
// could not be asked, or cannot store changes at the moment.
func refusedUpdate(err error) bool {
	var failed *CommandError
	return errors.As(err, &failed) && failed.ExitCode > 0 && !failed.Is(ErrUnreachable) && !failed.Is(ErrDBIndex)
}

// TryUpdate sees whether the site lets a pending job be changed, by writing the start time
// into it that it has: WantsAccount may be known then. The error is a refusal, with or
// without Account=, in whatever words, or ErrUnreachable, which says nothing of the site. A job
// that is not pending any more is none.
func (c *Client) TryUpdate(ctx context.Context, id JobID, start time.Time) error {
	err := c.UpdateJob(ctx, id, JobUpdate{StartTime: start})
	if errors.Is(err, ErrUnreachable) {
		return err
	}
	if !refusedUpdate(err) {
		return nil
	}
	if jobs, failed := c.Glance(ctx, id); failed == nil && len(jobs) == 1 && jobs[0].State == Pending {
		return err
	}
	return nil
}

// WantsAccount reports whether the site was seen to refuse updates without Account=, so
// that running jobs cannot be changed.
func (c *Client) WantsAccount() bool { return c.wantsAccount.Load() }
