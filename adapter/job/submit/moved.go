package submit

import (
	"context"
	"fmt"
	"io"

	"github.com/evoslurm/evoslurm/adapter/internal/getopt"
	"github.com/evoslurm/evoslurm/adapter/job/request"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// A site's job_submit plugin may move a job into another partition, account, or QOS, whose limits
// then apply. So with plugins, a violated limit is only a doubt: the job is submitted, and checked
// again as what it has become.

// mayMove reports whether plugins may move the job elsewhere than it asks for.
func (c *Command) mayMove(ctx context.Context, r *submission) bool {
	return !r.settled && c.submitPlugins(ctx)
}

// submitPlugins reports whether slurmctld has plugins that see submissions.
func (c *Command) submitPlugins(ctx context.Context) bool {
	if c.Cluster == nil {
		return false
	}
	cfg, err := c.Cluster.Config(ctx)
	return err == nil && cfg.Values["JobSubmitPlugins"] != ""
}

// checkMoved checks a new job as what plugins have made of it.
func (c *Command) checkMoved(ctx context.Context, r *submission, want request.Request, j slurmctl.Job) error {
	was := map[string]string{"partition": j.Partition, "account": j.Account, "qos": j.QOS}
	moved := r.doubt != nil
	again := *r
	again.doubt, again.settled, again.options.become = nil, true, nil
	for _, name := range []string{"partition", "account", "qos"} {
		if moved = moved || was[name] != r.options.value(name); was[name] != "" {
			again.options.become = append(again.options.become, getopt.Option{Name: name, Value: was[name], HasValue: true})
		}
	}
	if !moved || !c.submitPlugins(ctx) {
		return nil
	}
	if link := want.Chain; link != nil { // each of its jobs may be moved elsewhere
		again.request.Profile = r.request.Profile[link.Step-1 : link.Step]
	}
	silent := *c
	silent.Stderr = io.Discard // it was said already
	check := silent.checkCluster
	if r.request.Moldable != nil {
		check = silent.checkAlternatives
	}
	if err := check(ctx, &again); err != nil {
		return fmt.Errorf("in partition %s, account %s and QOS %s, where Slurm has put job %d: %w", orNone(j.Partition), orNone(j.Account), orNone(j.QOS), j.ID, err)
	}
	return nil
}

func orNone(name string) string {
	if name == "" {
		return "(none)"
	}
	return name
}
