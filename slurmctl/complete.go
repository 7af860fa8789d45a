package slurmctl

import (
	"context"
	"slices"
)

// completeScript ends allocations as salloc does when its command ends: by slurmctld's request "complete job". No
// command sends that request for an allocation that it has not made itself, but Slurm's own Perl interface does
// (package slurm-perlapi or libslurm-perl, which seff needs too). It ends nothing on another cluster than the commands'.
const completeScript = `use Slurm;
my $s = Slurm::new() or exit 2;
(my $conf = $s->load_ctl_conf()) or exit 2;
exit 3 if $conf->{cluster_name} ne shift @ARGV;
my $failed = 0;
for (@ARGV) { $s->complete_job($_, 0) and $failed = 1 }
exit $failed;`

// perl is the one command that is not in Client.Dir.
const perl = "perl"

// Complete ends running allocations without a script (salloc --no-shell) as COMPLETED, as far as this machine has Slurm's
// Perl interface, and otherwise as Cancel does. It ignores jobs that have ended or are unknown.
func (c *Client) Complete(ctx context.Context, ids ...JobID) error {
	if len(ids) == 0 {
		return nil
	}
	if c.complete(ctx, ids) == nil {
		return nil
	}
	return c.Cancel(ctx, ids...)
}

func (c *Client) complete(ctx context.Context, ids []JobID) error {
	name := c.cluster.Load()
	if name == nil {
		cfg, err := c.Config(ctx)
		if err != nil {
			return err
		}
		name = &cfg.ClusterName
		c.cluster.Store(name)
	}
	for some := range slices.Chunk(ids, perCancel) {
		args := []string{"-e", completeScript, "--", *name}
		for _, id := range some {
			if err := checkID(id); err != nil {
				return err
			}
			args = append(args, formatID(id))
		}
		if _, err := c.output(ctx, perl, args...); err != nil {
			return err
		}
	}
	return nil
}

// Completes reports whether Complete ends allocations as COMPLETED on this machine.
func (c *Client) Completes(ctx context.Context) bool {
	_, err := c.output(ctx, perl, "-MSlurm", "-e", "1")
	return err == nil
}
