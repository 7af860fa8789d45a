package request

import "github.com/evoslurm/evoslurm/planner"

// Sizes returns the nodes of a profile's steps.
func Sizes(p planner.Profile) []int {
	sizes := make([]int, len(p))
	for i, step := range p {
		sizes[i] = step.Nodes
	}
	return sizes
}
