package main

import (
	"context"
	"slices"
	"strings"

	"github.com/evoslurm/evoslurm/adapter/internal/drivemode"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// partitions reports of every partition which drive mode its jobs get and what limits them.
func (d *doctor) partitions(ctx context.Context, sc slurmctl.Config) {
	limits, err := d.slurm.Limits(ctx, sc)
	if err != nil {
		d.add("partitions", warn, err.Error(), "run doctor as the sidecar's user")
		return
	}
	nodes, _, err := d.slurm.Nodes(ctx)
	for _, name := range limits.Partitions() {
		if len(d.cfg.Partitions) > 0 && !slices.Contains(d.cfg.Partitions, name) {
			continue
		}
		words := []string{"drive mode " + d.Drive}
		s := slurmctl.Subject{Partition: name}
		if d.Drive == string(drivemode.Merge) && d.cfg.Drive != drivemode.Merge {
			which, counts := limits.CountsJobs(s)
			switch {
			case counts:
				words = []string{"drive mode companion: Slurm goes on counting merged expanders, and " + which}
			case limits.TooSmall(s, 1):
				words = append(words, "companion for profiles that grow by fewer nodes than MinNodes")
			}
		}
		if unshown := limits.Unshown(name, nodes); err == nil && len(unshown) > 0 {
			d.add("partition "+name, warn, "Slurm does not show "+slurmctl.CompressNodes(unshown)+": State=CLOUD nodes that are off; nothing is planned on them", "PrivateData=cloud in slurm.conf shows them")
		}
		d.add("partition "+name, ok, strings.Join(append(words, limits.Describe(name)...), ", "), "")
	}
}
