package submit

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/evoslurm/evoslurm/adapter/internal/getopt"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// place is a partition that a job may run in.
type place struct {
	partition slurmctl.Partition
	nodes     []slurmctl.Node // of it that the job may have
	usable    int             // largest number at once
	with      string          // what they have to have
}

// why returns how many nodes a job may have in it.
func (p place) why() string {
	return fmt.Sprintf("partition %s has %d for this job%s", p.partition.Name, p.usable, p.with)
}

// places returns the partitions that the options name, or the default one, with the nodes that
// --exclude, --nodelist, --constraint, the sockets, cores, and threads, and the resources wanted leave. It leaves unknown names to sbatch.
func (l layers) places(nodes []slurmctl.Node, partitions []slurmctl.Partition, wanted gres) ([]place, error) {
	constraint, err := l.constraint()
	if err != nil {
		return nil, err
	}
	listed, mayHave, err := l.mayHave()
	if err != nil {
		return nil, err
	}
	layout, ofLayout := l.layout()
	allowed := map[string]slurmctl.Node{}
	for _, n := range nodes {
		if constraint.Met(n.Features) && n.Layout.Has(layout) && wanted.onNode(n) && mayHave(n.Name) {
			allowed[n.Name] = n
		}
	}
	with := withWanted(wanted, ofLayout)
	if listed {
		with += " of --nodelist"
	}
	if constraint.Alternatives() != nil {
		with += ", all of the same alternative of --constraint=" + l.value("constraint")
	}
	var found []place
	for _, p := range l.partitions(partitions) {
		var may []slurmctl.Node
		for _, name := range p.Nodes {
			if n, ok := allowed[name]; ok {
				may = append(may, n)
			}
		}
		usable, why := together(may, constraint.Alternatives()), with
		if p.MaxNodes > 0 && p.MaxNodes < usable {
			usable, why = p.MaxNodes, " (MaxNodes)"
		}
		found = append(found, place{p, may, usable, why})
	}
	return found, nil
}

// withWanted says which resources and options leave a job few nodes.
func withWanted(wanted gres, options []getopt.Option) string {
	var all []string
	if len(wanted.perNode) > 0 {
		all = append(all, slurmctl.JoinGRES(wanted.perNode))
	}
	for _, o := range options {
		all = append(all, o.String())
	}
	if len(all) == 0 {
		return ""
	}
	return " with " + strings.Join(all, " and ")
}

// onFabrics counts only nodes of the same fabric, and of the same one of some features: Slurm gives a job no others together.
func (p *place) onFabrics(fabrics [][]string, either []string) {
	of := map[string]int{}
	for i, fabric := range fabrics {
		for _, name := range fabric {
			of[name] = i + 1
		}
	}
	parts := make([][]slurmctl.Node, len(fabrics)+1)
	for _, n := range p.nodes {
		parts[of[n.Name]] = append(parts[of[n.Name]], n)
	}
	most := 0
	for _, part := range parts[1:] {
		most = max(most, together(part, either))
	}
	if most < p.usable {
		p.usable, p.with = most, p.with+" below the same topmost switch (topology.conf)"
	}
}

// mayHave returns which nodes --exclude and --nodelist leave to the job, and whether there is a --nodelist.
func (l layers) mayHave() (listed bool, allows func(node string) bool, err error) {
	excluded, err := l.nodeNames("exclude")
	if err != nil {
		return false, nil, err
	}
	list, err := l.nodeNames("nodelist")
	return list != nil, func(node string) bool {
		return !slices.Contains(excluded, node) && (list == nil || slices.Contains(list, node))
	}, err
}

// together returns the largest number of nodes that have the same one of some features, or how many there are without features.
func together(nodes []slurmctl.Node, either []string) (most int) {
	if either == nil {
		return len(nodes)
	}
	for _, f := range either {
		n := 0
		for _, node := range nodes {
			if slices.Contains(node.Features, f) {
				n++
			}
		}
		most = max(most, n)
	}
	return most
}

// partitions returns those partitions that the options name, or the default one.
func (l layers) partitions(all []slurmctl.Partition) (wanted []slurmctl.Partition) {
	o, given := l.last("partition")
	names := strings.Split(o.Value, ",")
	for _, p := range all {
		if given && slices.Contains(names, p.Name) || !given && p.Default {
			wanted = append(wanted, p)
		}
	}
	return wanted
}

// checkFit rejects a job that no place can run: its nodes and its time limit must fit in the same one. It returns the
// places in which both fit, and the time limit, in minutes, that all of these allow: the job may get into any of them.
// Without places, it checks nothing.
func checkFit(r submission, places []place) (fitting []place, allowed int64, err error) {
	peak, took := r.request.Claimed().Peak(), r.takes()
	need, least, longest := r.needMinutes(), int64(unlimited), int64(0)
	var tooSmall, tooShort []string
	for _, p := range places {
		limit := int64(unlimited)
		if p.partition.MaxTime != slurmctl.Unlimited && p.partition.MaxTime > 0 {
			limit = int64(p.partition.MaxTime / time.Minute)
		}
		switch {
		case peak > p.usable:
			tooSmall = append(tooSmall, p.why())
		case need > limit:
			tooShort, longest = append(tooShort, fmt.Sprintf("partition %s allows %s", p.partition.Name, formatMinutes(limit))), max(longest, limit)
		default:
			fitting, least = append(fitting, p), min(least, limit)
		}
	}
	switch against := strings.Join(append(tooShort, tooSmall...), ", "); {
	case len(fitting) > 0 || len(places) == 0:
		return fitting, least, nil
	case len(tooShort) == 0:
		return nil, 0, fmt.Errorf("the profile goes up to %s, but %s", plural(peak, "node"), against)
	case took <= longest:
		o, _ := r.options.last("time")
		return nil, 0, fmt.Errorf("%s: the profile goes up to %s, but %s: give --time=%s or less, or none", o, plural(peak, "node"), against, formatMinutes(longest))
	case len(tooSmall) > 0:
		return nil, 0, fmt.Errorf("the profile takes %s and goes up to %s, but %s: choose one partition, and a shorter or smaller profile for it", formatMinutes(took), plural(peak, "node"), against)
	default:
		return nil, 0, fmt.Errorf("the profile takes %s, but %s", formatMinutes(took), against)
	}
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
