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

// Minutes returns how long a job with a profile runs, in whole minutes. The jobs of a chain run a step each: the longest
// counts.
func Minutes(p planner.Profile, chain bool) int64 {
	seconds := p.Duration()
	if chain {
		seconds = Longest(p)
	}
	return (seconds + 59) / 60
}

// Longest returns how long a profile's longest step takes, in seconds.
func Longest(p planner.Profile) (seconds int64) {
	for _, step := range p {
		seconds = max(seconds, step.Duration)
	}
	return seconds
}
