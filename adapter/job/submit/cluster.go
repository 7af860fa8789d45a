package submit

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/evoslurm/evoslurm/planner"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// Cluster is the part of Slurm that a submission queries; *slurmctl.Client implements it.
type Cluster interface {
	Nodes(ctx context.Context) ([]slurmctl.Node, []slurmctl.Partition, error)
	Config(ctx context.Context) (slurmctl.Config, error)
	Cancel(ctx context.Context, ids ...slurmctl.JobID) error
	Glance(ctx context.Context, ids ...slurmctl.JobID) ([]slurmctl.Job, error)
	BatchScript(ctx context.Context, id slurmctl.JobID) (string, error)
}

// lookError is a look at the cluster that failed.
type lookError struct{ error }

func (e lookError) Unwrap() error { return e.error }

// lookTime bounds the queries before a submission. If Slurm does not answer, sbatch reports it.
const lookTime = 10 * time.Second

// place is a partition that a job may run in.
type place struct {
	partition slurmctl.Partition
	nodes     []slurmctl.Node // of it that the job may have
	usable    int             // largest number at once
	with      string          // what they have to have
}

// places returns the partitions that the options name, or the default one, with the nodes that
// --exclude, --constraint, and the resources wanted leave. It leaves unknown names to sbatch.
func (l layers) places(ctx context.Context, cluster Cluster, wanted gres) ([]place, error) {
	nodes, partitions, err := cluster.Nodes(ctx)
	if err != nil {
		return nil, lookError{err}
	}
	var names []string
	if o, given := l.last("partition"); given {
		names = strings.Split(o.Value, ",")
	}
	excluded, err := l.nodeNames("exclude")
	if err != nil {
		return nil, err
	}
	constraint, err := l.constraint()
	if err != nil {
		return nil, err
	}
	allowed := map[string]slurmctl.Node{}
	for _, n := range nodes {
		if constraint.Met(n.Features) && wanted.onNode(n) {
			allowed[n.Name] = n
		}
	}
	with := ""
	if len(wanted.perNode) > 0 {
		with = " with " + slurmctl.JoinGRES(wanted.perNode)
	}
	var found []place
	for _, p := range partitions {
		if len(names) > 0 && !slices.Contains(names, p.Name) || len(names) == 0 && !p.Default {
			continue
		}
		var may []slurmctl.Node
		for _, name := range p.Nodes {
			if n, ok := allowed[name]; ok && !slices.Contains(excluded, name) {
				may = append(may, n)
			}
		}
		usable, why := len(may), with
		if p.MaxNodes > 0 && p.MaxNodes < usable {
			usable, why = p.MaxNodes, " (MaxNodes)"
		}
		found = append(found, place{p, may, usable, why})
	}
	return found, nil
}

// nodeNames returns the nodes in an option; none if it names a file.
func (l layers) nodeNames(name string) ([]string, error) {
	o, given := l.last(name)
	if !given || strings.Contains(o.Value, "/") {
		return nil, nil
	}
	nodes, err := slurmctl.ExpandNodes(o.Value)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", o, err)
	}
	slices.Sort(nodes)
	return slices.Compact(nodes), nil
}

// constraint returns the value of --constraint, or an error if the sidecar cannot plan it.
func (l layers) constraint() (slurmctl.Constraint, error) {
	o, _ := l.last("constraint")
	return slurmctl.ParseConstraint(o.Value)
}

// nodeList returns the --nodelist, all nodes that the job may have, or "". To sbatch, it would mean
// nodes that the job must have from its start, so it travels in the marker.
func (l layers) nodeList(profile planner.Profile) (string, error) {
	o, given := l.last("nodelist")
	if given && strings.Contains(o.Value, "/") {
		return "", fmt.Errorf("%s: name the nodes themselves, not a file", o)
	}
	names, err := l.nodeNames("nodelist")
	if err != nil || len(names) == 0 {
		return "", err
	}
	if peak := profile.Peak(); len(names) < peak {
		return "", fmt.Errorf("%s: names %s, the profile goes up to %d", o, plural(len(names), "node"), peak)
	}
	return slurmctl.CompressNodes(names), nil
}

// checkFit rejects a profile that is infeasible everywhere. It returns the time limit, in minutes,
// that all feasible places allow: the job may get into any of them. Without places, it checks
// nothing.
func checkFit(profile planner.Profile, places []place) (allowed int64, err error) {
	if len(places) == 0 {
		return unlimited, nil
	}
	peak, need := profile.Peak(), minutes(profile.Duration())
	var tooSmall, tooShort []string
	fits, allowed := false, int64(unlimited)
	for _, p := range places {
		limit := int64(unlimited)
		if p.partition.MaxTime != slurmctl.Unlimited && p.partition.MaxTime > 0 {
			limit = int64(p.partition.MaxTime / time.Minute)
		}
		switch {
		case peak > p.usable:
			tooSmall = append(tooSmall, fmt.Sprintf("partition %s has %d for this job%s", p.partition.Name, p.usable, p.with))
		case need > limit:
			tooShort = append(tooShort, fmt.Sprintf("partition %s allows %s", p.partition.Name, formatMinutes(limit)))
		default:
			fits, allowed = true, min(allowed, limit)
		}
	}
	switch {
	case fits:
		return allowed, nil
	case len(tooShort) > 0:
		return 0, fmt.Errorf("the profile takes %s, but %s", formatMinutes(need), strings.Join(append(tooShort, tooSmall...), ", "))
	}
	return 0, fmt.Errorf("the profile goes up to %s, but %s", plural(peak, "node"), strings.Join(tooSmall, ", "))
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// driven returns the places in partitions that the site's Evoslurm drives; without partitions, all.
// A job in several partitions is planned only in these. A job in none of them is rejected: it would
// never start.
func driven(places []place, partitions []string) (in []place, out []string, err error) {
	if len(partitions) == 0 || len(places) == 0 {
		return places, nil, nil
	}
	for _, p := range places {
		if slices.Contains(partitions, p.partition.Name) {
			in = append(in, p)
		} else {
			out = append(out, p.partition.Name)
		}
	}
	if len(in) == 0 {
		return nil, nil, fmt.Errorf("partition %s has no evolving jobs here: choose --partition=%s", strings.Join(out, ","), strings.Join(partitions, " or "))
	}
	return in, out, nil
}
