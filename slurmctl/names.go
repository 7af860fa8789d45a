package slurmctl

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

var partitionLine = pattern(`(?m)^PartitionName=(\S+)`)

// PartitionNames returns the partitions that the caller may see, in order.
func (c *Client) PartitionNames(ctx context.Context) ([]string, error) {
	out, err := c.output(ctx, "scontrol", "--oneliner", "show", "partition")
	var names []string
	for _, m := range partitionLine().FindAllStringSubmatch(out, -1) {
		names = append(names, m[1])
	}
	return names, err
}

// Accounts returns the accounts that a user may charge, in order; none without accounting.
func (c *Client) Accounts(ctx context.Context, user string) ([]string, error) {
	if !userNamePattern().MatchString(user) {
		return nil, fmt.Errorf("invalid user name %q", oneLine(user, 40))
	}
	return c.accounting(ctx, "associations", "user="+user, "format=Account")
}

// AccountNames returns all accounts, in order; none without accounting.
func (c *Client) AccountNames(ctx context.Context) ([]string, error) {
	return c.accounting(ctx, "account", "format=Account")
}

// QOSNames returns all QOS, in order; none without accounting.
func (c *Client) QOSNames(ctx context.Context) ([]string, error) {
	return c.accounting(ctx, "qos", "format=Name")
}

// accounting returns the names in one column of slurmdbd, in order.
func (c *Client) accounting(ctx context.Context, show ...string) ([]string, error) {
	out, err := c.output(ctx, "sacctmgr", append([]string{"--noheader", "--parsable2", "--readonly", "show"}, show...)...)
	names := strings.Fields(out)
	slices.Sort(names)
	return slices.Compact(names), err
}
