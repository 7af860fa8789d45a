package couple

import (
	"slices"
	"strings"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/slurm"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// wanted returns how many nodes each component has in a step, from 1.
func wanted(j *state.Job, step int) []int {
	want := make([]int, len(j.Components))
	for i, c := range j.Components {
		want[i] = c.Sizes[step-1]
	}
	return want
}

// had returns the nodes that each component has had so far.
func had(j *state.Job) [][]string {
	all := make([][]string, len(j.Components))
	for i, c := range j.Components {
		all[i] = c.Nodes
	}
	return all
}

// Present returns the nodes of each component in the job's current step, or nil for a job that has none.
func Present(j *state.Job) [][]string {
	if len(j.Components) == 0 || !j.Runs() {
		return nil
	}
	return Assign(had(j), wanted(j, j.Step), j.Nodes())
}

// Follow saves which nodes the components of each job have now.
func Follow(c *state.Core) {
	for _, j := range c.Active {
		has := Present(j)
		if has == nil || slices.EqualFunc(had(j), has, slices.Equal) {
			continue
		}
		state.Assign(j, has)
		c.Save(j)
		c.Event(j, "components", map[string]any{"step": j.Step, "nodes": inWords(j.Components)})
	}
}

// Leaving lists the nodes that the job should give back when its current step ends, the first of them first: those that no
// component needs in the next step. It returns nil for a job without components, if no node leaves, or if the job can only
// give back whole companions: then the newest go, and components get nodes of the older ones.
func Leaving(j *state.Job) []string {
	has := Present(j)
	if has == nil || j.Last() || !j.Mode.ResizesInPart {
		return nil
	}
	leave := len(j.Nodes()) - j.Profile[j.Step].Nodes
	if leave <= 0 {
		return nil
	}
	bound := []string{j.BatchHost}
	if at := slurm.Pinned(j); at != "" {
		bound = append(bound, at)
	}
	spare := Spare(has, wanted(j, j.Step+1), j.Nodes(), bound)
	return spare[:min(leave, len(spare))]
}

// Handing lists the nodes that change from one component to another when the next step has these nodes.
func Handing(j *state.Job, next []string) []string {
	has := Present(j)
	if has == nil || j.Last() {
		return nil
	}
	return Handed(has, Assign(has, wanted(j, j.Step+1), next))
}

// Misplaced reports whether the plan takes nodes at the end of the current step that components need.
func Misplaced(j *state.Job) bool {
	leaving, next := Leaving(j), j.Next()
	return next != nil && len(msg.Without(leaving, msg.Without(j.Nodes(), next.Nodes))) > 0
}

// Check checks that each node of the job has at most one component, and that no component lacks nodes that the job has.
func Check(j *state.Job, bad func(j *state.Job, format string, args ...any)) {
	if len(j.Components) == 0 || !j.Runs() {
		return
	}
	seen, all := msg.Set{}, 0
	for i, want := range wanted(j, j.Step) {
		nodes := j.Components[i].Nodes
		if len(msg.Without(nodes, j.Nodes())) > 0 || len(nodes) > want {
			bad(j, "component %s has %v of %v, and wants %d", j.Components[i].Name, nodes, j.Nodes(), want)
		}
		for _, n := range nodes {
			if seen[n] {
				bad(j, "%s is in two components", n)
			}
			seen[n] = true
		}
		all += want
	}
	if len(seen) != min(all, len(j.Nodes())) {
		bad(j, "components have %d of %d nodes, and want %d", len(seen), len(j.Nodes()), all)
	}
}

// inWords returns components with their nodes in words.
func inWords(all []row.Component) string {
	words := make([]string, len(all))
	for i, c := range all {
		words[i] = c.Name + " " + slurmctl.CompressNodes(c.Nodes)
		if len(c.Nodes) == 0 {
			words[i] = c.Name + " none"
		}
	}
	return strings.Join(words, ", ")
}
