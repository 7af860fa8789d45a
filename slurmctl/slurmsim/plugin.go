package slurmsim

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/evoslurm/evoslurm/slurmctl"
)

// Plugin is a site's job_submit plugin. It sees what is submitted and every update of a
// job, root's too, before anything is done, and may change or refuse it: with
// Refusal("Unspecified error"), as Slurm says where the plugin gives no code of its own.
// What is nil lets everything pass.
type Plugin struct {
	Submit func(*Job) error
	Update func(slurmctl.Job, *Update) error
}

// Update is an update of a job as a plugin sees it; of a merge or a shrink the account alone.
type Update struct {
	slurmctl.JobUpdate
	Account string // Account=, "" where that is not given
}

// WantsAccount is as of slurmctl.Client.
func (k *Client) WantsAccount() bool { return k.wantsAccount }

// changing is an update of a job that takes so long. As slurmctl.Client does, it tries what
// was refused for no reason that is known once more with the account that the job has: of one
// that runs Slurm refuses that itself, and so the plugin has let it pass; that says something
// if it refuses what changes nothing.
func (k *Client) changing(ctx context.Context, d time.Duration, name string, id slurmctl.JobID, u slurmctl.JobUpdate, do func(*job, slurmctl.JobUpdate) error) error {
	set := func(account string) error {
		return k.call(ctx, d, about(name, id), func() error {
			j, err := k.mine(id)
			if err == nil && u.As != nil && u.As.UID != 0 && u.As.UID != j.UID {
				err = refusal("Access/permission denied")
			}
			if err != nil {
				return err
			}
			given := Update{u, account}
			if see := k.cluster.options.Plugin.Update; see != nil {
				if err := see(k.cluster.shown(j), &given); err != nil {
					return err
				}
			}
			if account != "" && j.State != slurmctl.Pending {
				return Refusal("Job is no longer pending execution")
			}
			return do(j, given.JobUpdate)
		})
	}
	if k.wantsAccount {
		return k.withAccount(ctx, id, set, nil)
	}
	err := set("")
	if !errors.Is(err, slurmctl.ErrUnspecified) {
		return err
	}
	again := k.withAccount(ctx, id, set, err)
	if errors.Is(again, slurmctl.ErrWantsAccount) {
		do = func(*job, slurmctl.JobUpdate) error { return nil } // it changes nothing
		if jobs, failed := k.Glance(ctx, id); failed != nil || len(jobs) != 1 || !errors.Is(set(""), slurmctl.ErrUnspecified) {
			return err
		}
	}
	if again == nil || errors.Is(again, slurmctl.ErrWantsAccount) {
		k.wantsAccount = true
		return again
	}
	return err
}

// withAccount sets something with the job's own account; because of err, if it was tried
// without.
func (k *Client) withAccount(ctx context.Context, id slurmctl.JobID, set func(account string) error, err error) error {
	jobs, failed := k.Glance(ctx, id)
	if failed != nil {
		return errors.Join(err, failed)
	}
	known := len(jobs) == 1 && jobs[0].Account != ""
	if !known || jobs[0].State != slurmctl.Pending {
		if err == nil {
			if err = set(""); !errors.Is(err, slurmctl.ErrUnspecified) {
				return err
			}
		}
		if !known {
			return err
		}
	}
	again := set(jobs[0].Account)
	if jobs[0].State != slurmctl.Pending && errors.Is(again, slurmctl.ErrNotPending) {
		return fmt.Errorf("%w: %w", slurmctl.ErrWantsAccount, err)
	}
	return again
}
