package couple

import (
	"slices"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
)

// Assign returns the nodes of each component: want[i] nodes of those that the job has, if these are enough for all. had
// holds what each component had before. A component keeps as many of its nodes as it wants; others are free for components
// that lack nodes, in their order. O(nodes).
func Assign(had [][]string, want []int, have []string) [][]string {
	free := msg.SetOf(have)
	all := make([][]string, len(want))
	for i := range want {
		for _, n := range had[i] {
			if len(all[i]) < want[i] && free[n] {
				all[i] = append(all[i], n)
				delete(free, n)
			}
		}
	}
	rest := slices.DeleteFunc(slices.Clone(have), func(n string) bool { return !free[n] })
	for i := range want {
		n := min(want[i]-len(all[i]), len(rest))
		all[i], rest = append(all[i], rest[:n]...), rest[n:]
	}
	return all
}

// Spare lists the nodes that components do not need any more when each wants so many, those of no component first. bound
// holds nodes that the job cannot give back. O(nodes).
func Spare(had [][]string, want []int, have, bound []string) []string {
	left := msg.SetOf(have)
	var spare []string
	for i := range want {
		var mine []string
		for _, n := range had[i] {
			if left[n] {
				mine = append(mine, n)
				delete(left, n)
			}
		}
		free := msg.Without(mine, bound)
		n := min(max(len(mine)-want[i], 0), len(free))
		spare = append(spare, free[len(free)-n:]...)
	}
	none := slices.DeleteFunc(msg.Without(have, bound), func(n string) bool { return !left[n] })
	return append(none, spare...)
}

// Handed lists the nodes that one component gives to another. O(nodes).
func Handed(had, gets [][]string) []string {
	of := map[string]int{}
	for i, nodes := range had {
		for _, n := range nodes {
			of[n] = i
		}
	}
	var handed []string
	for i, nodes := range gets {
		for _, n := range nodes {
			if was, had := of[n]; had && was != i {
				handed = append(handed, n)
			}
		}
	}
	return handed
}
