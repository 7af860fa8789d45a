package slurmctl

import (
	"context"
	"slices"
	"strings"
)

// Visible holds the partitions that sinfo shows to users: by name, with the groups of AllowGroups.
// Groups are nil for all users and empty for none (Hidden=YES).
type Visible map[string][]string

// Visible queries the visible partitions, by one scontrol.
func (c *Client) Visible(ctx context.Context) (Visible, error) {
	out, err := c.output(ctx, "scontrol", "--oneliner", "--all", "show", "partition")
	if err != nil {
		return nil, err
	}
	return parseVisible(out), nil
}

// parseVisible reads lines like "PartitionName=p AllowGroups=a,b … Hidden=NO …".
func parseVisible(out string) Visible {
	v := Visible{}
	for line := range strings.Lines(out) {
		name, hidden, seen := "", false, map[string]bool{}
		var groups []string
		for _, field := range strings.Fields(line) {
			key, value, _ := strings.Cut(field, "=")
			if seen[key] {
				continue
			}
			seen[key] = true
			switch key {
			case "PartitionName":
				name = value
			case "AllowGroups":
				if !strings.EqualFold(value, "ALL") {
					groups = append([]string{}, list(value)...)
				}
			case "Hidden":
				hidden = value == "YES"
			}
		}
		if hidden {
			groups = []string{}
		}
		if name != "" {
			v[name] = groups
		}
	}
	return v
}

// To reports whether sinfo shows the partition to a user with these groups who is not an operator.
// It returns false for an unknown partition.
func (v Visible) To(groups []string, partition string) bool {
	allowed, known := v[partition]
	return known && (allowed == nil || slices.ContainsFunc(allowed, func(g string) bool { return slices.Contains(groups, g) }))
}
