package slurmctl

import (
	"context"
	"errors"
	"fmt"
)

// ErrWantsAccount is an update of a running job that a site's job_submit plugin
// refuses: it wants Account= in every update, which Slurm takes for pending jobs only
// (all versions, 20.11 to 26.05).
var ErrWantsAccount = errors.New("this site's job_submit plugin refuses every update without Account=, and Slurm takes that for pending jobs only")

// change runs an update of a job. Some sites' job_submit plugins refuse updates that
// lack Account=: what was refused for no reason that is known is tried once more with
// the account that the job has, which changes nothing of it (measured on 22.05, as root).
// Where that helps the client sends it from then on, at the cost of one query of the job.
func (c *Client) change(ctx context.Context, id JobID, a *setting) error {
	if a.err != nil {
		return a.err
	}
	wants := c.wantsAccount.Load()
	if !wants {
		err := c.setting(ctx, a)
		if err == nil || explained(err) {
			return err
		}
		if again := c.withAccount(ctx, id, a, err); again == nil {
			c.wantsAccount.Store(true)
			return nil
		}
		return err
	}
	return c.withAccount(ctx, id, a, nil)
}

// withAccount runs an update with the job's own account in it; because of err, if that
// was tried without.
func (c *Client) withAccount(ctx context.Context, id JobID, a *setting, err error) error {
	jobs, failed := c.Glance(ctx, id)
	if failed != nil {
		return errors.Join(err, failed)
	}
	if len(jobs) == 1 && jobs[0].State == Pending && jobs[0].Account != "" {
		with := &setting{args: append([]string{}, a.args...)}
		with.add("Account", checkWord, jobs[0].Account)
		return c.setting(ctx, with)
	}
	if err != nil {
		return err
	}
	// The plugin may have been mended, or spare some updates: ask.
	if err = c.setting(ctx, a); err != nil && !explained(err) {
		return fmt.Errorf("%w: %w", ErrWantsAccount, err)
	}
	return err
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
