package state

import (
	"slices"
	"strings"

	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// Assign records which nodes each component has.
func (j *Job) Assign(nodes [][]string) {
	j.Components = slices.Clone(j.Components)
	for i := range j.Components {
		j.Components[i].Nodes = nodes[i]
	}
}

// ComponentsText returns components with their nodes in words.
func ComponentsText(all []row.Component) string {
	words := make([]string, len(all))
	for i, c := range all {
		words[i] = c.Name + " " + slurmctl.CompressNodes(c.Nodes)
		if len(c.Nodes) == 0 {
			words[i] = c.Name + " none"
		}
	}
	return strings.Join(words, ", ")
}
