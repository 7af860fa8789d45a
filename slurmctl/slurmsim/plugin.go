package slurmsim

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/evoslurm/evoslurm/slurmctl"
)

// Plugin models a site's job_submit plugin. It sees every submission and every update of a job,
// even root's, before it takes effect. It may change or refuse it: with Refusal("Unspecified
// error"), as Slurm prints if the plugin returns no code of its own. A nil function accepts
// everything.
type Plugin struct {
	Submit func(*Job) error
	Update func(slurmctl.Job, *Update) error
}

// Update is an update of a job as a plugin sees it. Of a merge or a shrink, it holds only the
// account.
type Update struct {
	slurmctl.JobUpdate
	Account string // Account=, or "" if not given
}

// WantsAccount does what slurmctl.Client.WantsAccount does.
func (k *Client) WantsAccount() bool { return k.wantsAccount }

// changing runs an update of a job that takes d. Like slurmctl.Client, it judges a refusal by an
// update that changes nothing, with and without the job's account.
func changing(ctx context.Context, k *Client, d time.Duration, name string, id slurmctl.JobID, u slurmctl.JobUpdate, do func(*job, slurmctl.JobUpdate) error) error {
	set := func(account string) error { return runUpdate(ctx, k, d, name, id, Update{u, account}, do) }
	touch := func(account string) error {
		return runUpdate(ctx, k, k.cluster.options.Latency.Change, "UpdateJob", id, Update{Account: account}, func(*job, slurmctl.JobUpdate) error { return nil })
	}
	if k.wantsAccount {
		j, known := lasting(ctx, k, id)
		if known && j.State == slurmctl.Pending {
			return set(j.Account)
		}
		err := set("")
		if known && refusedUpdate(err) && refusedUpdate(touch("")) {
			return fmt.Errorf("%w: %w", slurmctl.ErrWantsAccount, err)
		}
		return err
	}
	err := set("")
	if !refusedUpdate(err) {
		return err
	}
	j, known := lasting(ctx, k, id)
	if !known || !refusedUpdate(touch("")) {
		return err
	}
	if with := touch(j.Account); with != nil && (j.State == slurmctl.Pending || !errors.Is(with, slurmctl.ErrNotPending)) {
		return err
	}
	if k.wantsAccount = true; j.State != slurmctl.Pending {
		return fmt.Errorf("%w: %w", slurmctl.ErrWantsAccount, err)
	}
	return set(j.Account)
}

// runUpdate runs one update.
func runUpdate(ctx context.Context, k *Client, d time.Duration, name string, id slurmctl.JobID, given Update, do func(*job, slurmctl.JobUpdate) error) error {
	return call(ctx, k, d, about(name, id), func() error {
		j, err := ownJob(k, id)
		if as := given.As; err == nil && as != nil && as.UID != 0 && as.UID != j.UID {
			err = refusal("Access/permission denied")
		}
		if err != nil {
			return err
		}
		if see := k.cluster.options.Plugin.Update; see != nil {
			if err := see(shown(k.cluster, j), &given); err != nil {
				return err
			}
		}
		if given.Account != "" && j.State != slurmctl.Pending {
			return Refusal("Job is no longer pending execution")
		}
		return do(j, given.JobUpdate)
	})
}

// lasting returns a job that can be updated and whose account is known.
func lasting(ctx context.Context, k *Client, id slurmctl.JobID) (slurmctl.Job, bool) {
	jobs, err := k.Glance(ctx, id)
	if err != nil || len(jobs) != 1 {
		return slurmctl.Job{}, false
	}
	j := jobs[0]
	return j, j.Account != "" && !j.Ended() && j.State != slurmctl.Completing
}

// refusedUpdate reports whether slurmctld or the plugin refused an update.
func refusedUpdate(err error) bool {
	var failed *slurmctl.CommandError
	return errors.As(err, &failed) && failed.ExitCode > 0 && !failed.Is(slurmctl.ErrUnreachable) && !failed.Is(slurmctl.ErrDBIndex) && !failed.Is(slurmctl.ErrAlreadyDone)
}
