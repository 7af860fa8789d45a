package submit

import (
	"fmt"
	"slices"
	"strings"

	"github.com/evoslurm/evoslurm/planner"
	"github.com/evoslurm/evoslurm/slurmctl"
)

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
	return slurmctl.ParseConstraint(l.value("constraint"))
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
