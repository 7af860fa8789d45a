package submit

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/evoslurm/evoslurm/planner"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// refusals lists the options that an evolving job cannot have, with the remedy.
var refusals = map[string]string{
	"gpus-per-socket":      "GPUs per socket cannot be planned yet: give --gpus-per-node",
	"ntasks-per-gpu":       "tasks per GPU cannot be planned yet: give --ntasks-per-node",
	"ntasks-per-tres":      "tasks per GPU cannot be planned yet: give --ntasks-per-node",
	"tres-per-task":        "resources per task cannot be planned yet: give --gres or --gpus-per-node, and --cpus-per-task",
	"clusters":             "an evolving job belongs to the cluster whose Evoslurm plans it",
	"cluster-constraint":   "an evolving job belongs to the cluster whose Evoslurm plans it",
	"contiguous":           "the nodes of a growth cannot be neighbours of those that a job has: give --switches=1 on a site with a tree of switches, or name the nodes with --nodelist",
	"segment":              noSegments,
	"spread-segments":      noSegments,
	"consolidate-segments": noSegments,
	"nodefile":             "name the nodes with --nodelist",
	"use-min-nodes":        "the profile says the nodes",
	"oversubscribe":        "an evolving job has whole nodes",
	"time-min":             "the profile says the time, and Slurm must not shorten it",
	"deadline":             "the start of an evolving job is planned by Evoslurm, which knows no deadlines yet",
	"external":             "an evolving job is a batch job",
}

const noSegments = "a growth has no segments: leave the option out, and each step gets the fewest blocks that are free"

// refuse looks for what cannot be planned, or contradicts the profile.
func (l layers) refuse(profile planner.Profile) error {
	first := profile[0].Nodes
	_, switches := l.last("switches")
	for _, o := range l.all() {
		if o.Name == "prefer" && switches {
			return fmt.Errorf("%s: a start cannot wait for few switches and preferred features: leave out --switches, or give --constraint in place of --prefer", o)
		}
		if o.Name == "clusters" && (l.target != "" || l.ownCluster()) {
			continue
		}
		if reason, refused := refusals[o.Name]; refused {
			return fmt.Errorf("%s: %s", o, reason)
		}
		switch o.Name {
		case "exclusive":
			if o.HasValue && !strings.EqualFold(o.Value, "exclusive") {
				return fmt.Errorf("%s: an evolving job has whole nodes", o)
			}
		case "nodes":
			if !sameNodes(o.Value, first) {
				return fmt.Errorf("%s: the profile says the nodes, %d in the first step; leave the option out", o, first)
			}
		}
	}
	if err := l.refuseLicenses(); err != nil {
		return err
	}
	return l.refuseTasks(first)
}

// refuseLicenses refuses counts of licences that Slurm takes for none or cuts, and what a plan cannot count. sbatch itself
// rejects names that it does not know.
func (l layers) refuseLicenses() error {
	o, given := l.last("licenses")
	if !given {
		return nil
	}
	if _, err := slurmctl.ParseLicenses(o.Value); err != nil {
		return fmt.Errorf("%s: %w", o, err)
	}
	return nil
}

// ownCluster reports whether all clusters that apply are this one. Slurm has their names in lower case.
func (l layers) ownCluster() bool {
	o, _ := l.last("clusters")
	return l.cluster != "" && !slices.ContainsFunc(strings.Split(o.Value, ","), func(name string) bool { return !strings.EqualFold(name, l.cluster) })
}

// refuseTasks refuses a task count below the node count, to which sbatch would
// lower the nodes.
func (l layers) refuseTasks(first int) error {
	o, given := l.last("ntasks")
	if !given {
		return nil
	}
	n, err := strconv.Atoi(strings.TrimSpace(o.Value))
	if err == nil && n < first {
		return fmt.Errorf("%s: fewer tasks than the %d nodes of the first step; --ntasks-per-node goes with any number of nodes", o, first)
	}
	return nil // sbatch itself rejects what is not a number
}

// sameNodes reports whether a value of sbatch's --nodes asks for just n nodes.
func sameNodes(value string, n int) bool {
	low, high, isRange := strings.Cut(value, "-")
	if !isRange {
		high = low
	}
	want := strconv.Itoa(n)
	return strings.TrimSpace(low) == want && strings.TrimSpace(high) == want
}

// Refused returns the names of the options that an evolving job cannot have.
func Refused() []string { return slices.Sorted(maps.Keys(refusals)) }
