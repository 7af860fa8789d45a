package submit

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/evoslurm/evoslurm/adapter/internal/getopt"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// gres is the generic resources of every node in every step.
type gres struct {
	perNode []slurmctl.GRES
	total   []slurmctl.GRES // of --gpus, on each node; nil: that is not given
}

// gres reads --gres, --gpus-per-node, --gpus-per-task, and --gpus. A total for the job counts for
// the first step and must be equal on each of its nodes.
func (l layers) gres(first int) (g gres, err error) {
	if g.perNode, err = l.gresPerNode(); err != nil {
		return g, err
	}
	o, given := l.last("gpus")
	if !given {
		return g, nil
	}
	if g.total, err = gpus(o); err != nil {
		return g, err
	}
	for i := range g.total {
		if g.total[i].Count%int64(first) != 0 {
			return g, fmt.Errorf("%s: does not divide by the %s of the first step: give --gpus-per-node", o, plural(first, "node"))
		}
		g.total[i].Count /= int64(first)
	}
	if len(g.perNode) == 0 {
		g.perNode = g.total
	} else if !slurmctl.HasGRES(g.perNode, g.total) || !slurmctl.HasGRES(g.total, gpusOf(g.perNode)) {
		return g, fmt.Errorf("%s: is not what the nodes of the first step have by the other options: leave it out", o)
	}
	return g, nil
}

// gresPerNode reads --gres, --gpus-per-node, and --gpus-per-task.
func (l layers) gresPerNode() (perNode []slurmctl.GRES, err error) {
	if o, given := l.last("gres"); given {
		if perNode, err = slurmctl.ParseGRES(o.Value); err == nil {
			err = slurmctl.CheckWhole(perNode)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", o, err)
		}
	}
	if o, given := l.last("gpus-per-node"); given {
		some, err := gpus(o)
		if err != nil {
			return nil, err
		}
		perNode = append(perNode, some...)
	}
	if o, given := l.last("gpus-per-task"); given && len(perNode) == 0 {
		return l.gpusOfTasks(o)
	}
	return perNode, nil
}

// gpusOfTasks returns what --gpus-per-task asks for on each node.
func (l layers) gpusOfTasks(o getopt.Option) ([]slurmctl.GRES, error) {
	some, err := gpus(o)
	if err != nil {
		return nil, err
	}
	tasks, err := strconv.Atoi(strings.TrimSpace(l.value("ntasks-per-node")))
	if err != nil || tasks < 1 {
		return nil, fmt.Errorf("%s: the tasks on a node must be known: give --ntasks-per-node, or --gpus-per-node instead", o)
	}
	for i := range some {
		some[i].Count *= int64(tasks)
	}
	return some, nil
}

// gpus reads "2" and "a100:2,v100:1".
func gpus(o getopt.Option) ([]slurmctl.GRES, error) {
	var items []string
	for item := range strings.SplitSeq(o.Value, ",") {
		items = append(items, "gpu:"+strings.TrimSpace(item))
	}
	all, err := slurmctl.ParseGRES(strings.Join(items, ","))
	if err != nil || o.Value == "" {
		return nil, errors.Join(fmt.Errorf("%s: no number of GPUs", o), err)
	}
	return all, nil
}

func gpusOf(all []slurmctl.GRES) []slurmctl.GRES {
	var found []slurmctl.GRES
	for _, g := range all {
		if g.Name == "gpu" {
			found = append(found, g)
		}
	}
	return found
}

// options returns the options to add for sbatch, for a job with that many nodes: the total for the
// job follows from its nodes.
func (g gres) options(nodes int) []string {
	if g.total == nil {
		return nil
	}
	write := func(option string, times int) string {
		var items []string
		for _, r := range g.total {
			text := strconv.FormatInt(r.Count*int64(times), 10)
			if r.Type != "" {
				text = r.Type + ":" + text
			}
			items = append(items, text)
		}
		return option + "=" + strings.Join(items, ",")
	}
	return []string{write("--gpus", nodes), write("--gpus-per-node", 1)}
}

// onNode reports whether a node has them.
func (g gres) onNode(n slurmctl.Node) bool {
	if len(g.perNode) == 0 {
		return true
	}
	has, err := slurmctl.ParseGRES(n.GRES)
	return err == nil && slurmctl.HasGRES(has, g.perNode)
}
