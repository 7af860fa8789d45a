package place

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
)

// Part holds one cluster's share of a job that is split.
type Part struct {
	Offer      int   // index of the cluster's offer
	Nodes      int   // nodes there
	Components []int // indices of the components that run there; nil where sizes are free
}

// Spread places a job on as few clusters as it can, on nodes that are idle now. components holds the
// nodes of each component. ClusterMin keeps components whole: it fills the cluster with the most idle
// nodes with the largest components that fit, then the next cluster. FlexibleClusterMin fills clusters
// in the same order with as many nodes as they have, whatever the sizes of the components. As many idle
// nodes come by completion, then as given. The offers' Need does not matter.
//
// Without room for the whole job parts is nil, and why says so: the job must wait. The order is
// greedy: for components that stay whole, a smaller number of clusters may exist. A policy that does
// not split jobs is an error. It takes O(n log n + n m) for n clusters and m components.
func Spread(policy Policy, components []int, offers []Offer) (parts []Part, why string, err error) {
	if !policy.Splits() {
		return nil, "", fmt.Errorf("placement policy %q does not split a job", policy)
	}
	if err := check(offers); err != nil {
		return nil, "", err
	}
	total, err := sum(components)
	if err != nil {
		return nil, "", err
	}
	order := sorted(offers, func(a, b *Offer) int { return cmp.Or(cmp.Compare(b.Free, a.Free), cmp.Compare(a.End, b.End)) })
	if policy == FlexibleClusterMin {
		parts = flexible(total, offers, order)
	} else {
		parts = whole(components, offers, order)
	}
	if parts == nil {
		return nil, fmt.Sprintf("no room for %d nodes on %s", total, clusters(len(offers))), nil
	}
	return parts, fmt.Sprintf("%d nodes fit on %s", total, clusters(len(parts))), nil
}

// sum returns the nodes of all components.
func sum(components []int) (total int, err error) {
	if len(components) == 0 {
		return 0, errors.New("a job without components")
	}
	for i, n := range components {
		if n < 1 || total > math.MaxInt-n {
			return 0, fmt.Errorf("component %d has %d nodes", i, n)
		}
		total += n
	}
	return total, nil
}

func clusters(n int) string {
	if n == 1 {
		return "one cluster"
	}
	return fmt.Sprintf("%d clusters", n)
}

func flexible(left int, offers []Offer, order []int) (parts []Part) {
	for _, o := range order {
		n := min(left, offers[o].Free)
		if n == 0 {
			break
		}
		parts, left = append(parts, Part{Offer: o, Nodes: n}), left-n
	}
	if left > 0 {
		return nil
	}
	return parts
}

func whole(components []int, offers []Offer, order []int) (parts []Part) {
	left := make([]int, len(components)) // indices, the largest first
	for i := range left {
		left[i] = i
	}
	slices.SortStableFunc(left, func(a, b int) int { return cmp.Compare(components[b], components[a]) })
	for _, o := range order {
		part := Part{Offer: o}
		left = slices.DeleteFunc(left, func(c int) bool {
			fits := components[c] <= offers[o].Free-part.Nodes
			if fits {
				part.Nodes, part.Components = part.Nodes+components[c], append(part.Components, c)
			}
			return fits
		})
		if part.Nodes > 0 {
			parts = append(parts, part)
		}
	}
	if len(left) > 0 {
		return nil
	}
	return parts
}
