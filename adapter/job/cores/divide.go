package cores

import (
	"fmt"
	"slices"
	"strconv"
)

// maxShare is the largest share: weights beyond it would only give the others one core each.
const maxShare = 1000

// ParseShare reads the value of --cores.
func ParseShare(text string) (int, error) {
	share, err := strconv.ParseUint(text, 10, 16)
	if err != nil || share < 1 || share > maxShare {
		return 0, fmt.Errorf("--cores=%.40s: want a weight from 1 to %d", text, maxShare)
	}
	return int(share), nil
}

// divide returns which cores each member gets: at least one, and all of them together all cores, in
// proportion to the shares. A member keeps as many as it may of those that it has; it gets further ones close to them.
func divide(shares []int, has [][]int, cores int) ([][]int, error) {
	if len(shares) > cores {
		return nil, fmt.Errorf("the job has %d cores here, and %d evosruns want to share them", cores, len(shares))
	}
	wants := proportions(shares, cores)
	gets := make([][]int, len(shares))
	free := make([]bool, cores)
	for i := range free {
		free[i] = true
	}
	for m := range shares {
		gets[m] = narrowest(has[m], wants[m])
		for _, core := range gets[m] {
			free[core] = false
		}
	}
	for m := range shares {
		for len(gets[m]) < wants[m] {
			core := nearest(free, gets[m])
			if len(gets[m]) == 0 {
				core = narrowest(indices(free), wants[m])[0]
			}
			free[core] = false
			at, _ := slices.BinarySearch(gets[m], core)
			gets[m] = slices.Insert(gets[m], at, core)
		}
	}
	return gets, nil
}

// proportions divides n ≥ len(shares): one for each, and each further one to the share that is
// furthest behind (Sainte-Laguë).
func proportions(shares []int, n int) []int {
	counts := make([]int, len(shares))
	for i := range counts {
		counts[i] = 1
	}
	for range n - len(shares) {
		best := 0
		for i := range shares {
			if shares[i]*(2*counts[best]+1) > shares[best]*(2*counts[i]+1) {
				best = i
			}
		}
		if len(shares) > 0 {
			counts[best]++
		}
	}
	return counts
}

// narrowest returns n of the ascending numbers, or all if there are fewer: those closest together.
func narrowest(numbers []int, n int) []int {
	if len(numbers) <= n {
		return slices.Clone(numbers)
	}
	best := 0
	for i := range len(numbers) - n + 1 {
		if numbers[i+n-1]-numbers[i] < numbers[best+n-1]-numbers[best] {
			best = i
		}
	}
	return slices.Clone(numbers[best : best+n])
}

// nearest returns the free core closest to one of the ascending cores, or -1.
func nearest(free []bool, to []int) int {
	best, distance := -1, len(free)
	for _, core := range to {
		for _, step := range []int{1, -1} {
			for c, d := core+step, 1; c >= 0 && c < len(free) && d < distance; c, d = c+step, d+1 {
				if free[c] {
					best, distance = c, d
					break
				}
			}
		}
	}
	return best
}

func indices(free []bool) (all []int) {
	for i, yes := range free {
		if yes {
			all = append(all, i)
		}
	}
	return all
}
