package state

import "slices"

// Assign records which nodes each component has.
func Assign(j *Job, nodes [][]string) {
	j.Components = slices.Clone(j.Components)
	for i := range j.Components {
		j.Components[i].Nodes = nodes[i]
	}
}
