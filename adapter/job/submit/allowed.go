package submit

import (
	"context"

	"github.com/evoslurm/evoslurm/adapter/internal/config"
)

// allowed returns why the site keeps a job with these options from evolving, or nil. Where the site's lists have
// names that no option gives, Slurm is asked for the defaults. If it does not answer, the sidecar decides.
func (s site) allowed(ctx context.Context, l layers) error {
	if s.mayEvolve == nil {
		return nil
	}
	job := config.Names{Accounts: config.ListOf(l.value("account")), QOS: config.ListOf(l.value("qos")), Partitions: config.ListOf(l.value("partition"))}
	unchecked, err := s.mayEvolve(ctx, job)
	if err != nil || len(unchecked) == 0 {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	u, known := s.limits(ctx, l)
	if !known {
		return nil
	}
	job = config.Names{Accounts: config.ListOf(u.subject.Account), QOS: config.ListOf(u.subject.QOS), Partitions: u.partitions(l, nil)}
	_, err = s.mayEvolve(ctx, job)
	return err
}
