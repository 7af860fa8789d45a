package slurmctl

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// ErrWantsAccount means that a site's job_submit plugin refuses an update of a running job. Such a
// plugin wants Account= in every update, but Slurm accepts Account= for pending jobs only (all
// versions, 20.11 to 26.05).
var ErrWantsAccount = errors.New("this site's job_submit plugin refuses every update without Account=, and Slurm takes that for pending jobs only")

// change updates a job. Some sites' job_submit plugins refuse updates that lack Account=, and each
// words its refusal differently. So change judges a refusal by a second update, which changes
// nothing. If the site refuses that update without the job's account and the plugin accepts it with
// the account, the site wants Account= in every update. For a job that is not pending, Slurm itself
// refuses the account before it changes anything, which shows that the plugin accepted the update
// (measured on 22.05, as root). From then on the client sends the account at once, at the cost of
// one query of the job.
//
// The test update runs as this process, because another user can forge what a command prints that
// runs as that user.
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
		return err // the plugin refuses this update as well
	}
	c.wantsAccount.Store(true)
	if j.State != Pending {
		return fmt.Errorf("%w: %w", ErrWantsAccount, err)
	}
	return c.setting(ctx, a.with(j.Account))
}

// withAccount runs an update at a site that wants Account=, if Slurm accepts it.
func (c *Client) withAccount(ctx context.Context, id JobID, a *setting) error {
	j, known := c.lasting(ctx, id)
	if known && j.State == Pending {
		return c.setting(ctx, a.with(j.Account))
	}
	err := c.setting(ctx, a) // the plugin may have been fixed, or may exempt some updates
	if known && refusedUpdate(err) && refusedUpdate(c.touch(ctx, j, false)) {
		return fmt.Errorf("%w: %w", ErrWantsAccount, err)
	}
	return err
}

// lasting returns a job that can be updated and whose account is known.
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
	a.job(c, j.ID)
	a.raw("TimeLimit", formatDuration(j.TimeLimit))
	if account {
		a = a.with(j.Account)
	}
	return c.setting(ctx, a)
}

// with returns the setting with an account added.
func (a *setting) with(account string) *setting {
	with := &setting{args: append([]string{}, a.args...), user: a.user}
	with.add("Account", checkWord, account)
	return with
}

// refusedUpdate reports whether slurmctld or one of its plugins refused an update. It returns false
// if slurmctld did not answer, cannot store changes at the moment, or lets a job be changed no more.
// It says so of a job that it preempts, from the beginning of the time of grace on, while the job
// still runs (source of 22.05 to 26.05: update_job; measured on 22.05).
func refusedUpdate(err error) bool {
	var failed *CommandError
	return errors.As(err, &failed) && failed.ExitCode > 0 && !failed.Is(ErrUnreachable) && !failed.Is(ErrDBIndex) && !failed.Is(ErrAlreadyDone)
}

// TryUpdate finds out whether the site lets a pending job be changed: it writes the job's own start
// time into the job. Afterwards WantsAccount may be known. The error is a refusal, with or without
// Account=, in any wording, or ErrUnreachable, which says nothing about the site. TryUpdate returns
// nil if the job is no longer pending.
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

// WantsAccount reports whether the site has refused updates without Account=, so that running jobs
// cannot be changed.
func (c *Client) WantsAccount() bool { return c.wantsAccount.Load() }
