package slurmctl

import (
	"context"
	"slices"
	"strings"
)

// AllocNodes lists the partitions into which jobs may be submitted from some hosts only, by one scontrol.
func (c *Client) AllocNodes(ctx context.Context) ([]string, error) {
	out, err := c.output(ctx, "scontrol", "--oneliner", "--all", "show", "partition")
	if err != nil {
		return nil, err
	}
	return boundToHosts(out), nil
}

// boundToHosts reads lines like "PartitionName=p … AllocNodes=login[1-2] …".
func boundToHosts(out string) (bound []string) {
	for line := range strings.Lines(out) {
		fields := strings.Fields(line)
		i := slices.IndexFunc(fields, func(f string) bool { return strings.HasPrefix(f, "AllocNodes=") })
		if i < 0 || strings.EqualFold(fields[i], "AllocNodes=ALL") {
			continue
		}
		bound = append(bound, strings.TrimPrefix(fields[0], "PartitionName="))
	}
	return bound
}
