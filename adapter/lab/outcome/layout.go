package outcome

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
)

// Range is the nodes from First to Last, numbered from 0.
type Range struct{ First, Last int }

// Block is a job's nodes for a period.
type Block struct {
	Job        int // in the outcome
	Start, End int64
	Range
}

// Layout places jobs on nodes: on the shortest run of free nodes that suffices, otherwise on the
// longest runs. Jobs keep their nodes and release the latest first. The counts of an outcome always
// suffice; the real nodes are unknown. Blocks are in order of their ends. If more nodes are in use
// than the machine has, the error names the first job without a place. O(n log n + n · free
// pieces).
func (r *Run) Layout() ([]Block, error) {
	type change struct {
		at   int64
		by   int // nodes
		job  int32
		size int32
	}
	var all []change
	for i := range r.Jobs {
		last := 0
		j := &r.Jobs[i]
		for k, s := range j.Sizes {
			if k+1 < len(j.Sizes) && j.Sizes[k+1].At == s.At || s.At == j.End {
				continue // empty period
			}
			if s.Nodes != last {
				all = append(all, change{s.At, s.Nodes - last, int32(i), int32(k)})
			}
			last = s.Nodes
		}
		if last > 0 && j.End >= 0 {
			all = append(all, change{j.End, -last, int32(i), int32(len(j.Sizes))})
		}
	}
	slices.SortFunc(all, func(a, b change) int { // releases first
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(min(a.by, 0), min(b.by, 0)), cmp.Compare(a.job, b.job), cmp.Compare(a.size, b.size))
	})
	free := []Range{{0, r.Nodes - 1}}
	type piece struct {
		Range
		since int64
	}
	has := make(map[int32][]piece)
	var blocks []Block
	for k := 0; k < len(all); k++ {
		c := all[k]
		pieces := has[c.job]
		for n := -c.by; n > 0; { // its last nodes
			if len(pieces) == 0 {
				return nil, fmt.Errorf("job %q gives back nodes that it does not have", r.Jobs[c.job].ID)
			}
			p := &pieces[len(pieces)-1]
			back := Range{max(p.First, p.Last-n+1), p.Last}
			n -= back.Last - back.First + 1
			if c.at > p.since {
				blocks = append(blocks, Block{int(c.job), p.since, c.at, back})
			}
			free = put(free, back)
			if p.Last = back.First - 1; p.Last < p.First {
				pieces = pieces[:len(pieces)-1]
			}
		}
		for n := c.by; n > 0; {
			if len(free) == 0 {
				return nil, fmt.Errorf("at second %d jobs have more than %d nodes together; job %q has no place", c.at, r.Nodes, r.Jobs[c.job].ID)
			}
			k := fits(free, n)
			got := Range{free[k].First, min(free[k].Last, free[k].First+n-1)}
			n -= got.Last - got.First + 1
			pieces = append(pieces, piece{got, c.at})
			if free[k].First = got.Last + 1; free[k].First > free[k].Last {
				free = slices.Delete(free, k, k+1)
			}
		}
		if len(pieces) == 0 {
			delete(has, c.job)
		} else {
			has[c.job] = pieces
		}
	}
	end := r.Makespan()
	for _, job := range slices.Sorted(maps.Keys(has)) { // jobs that have not ended
		for _, p := range has[job] {
			if end > p.since {
				blocks = append(blocks, Block{int(job), p.since, end, p.Range})
			}
		}
	}
	return blocks, nil
}

// fits returns the shortest sufficient run of free nodes, otherwise the longest; of equal ones, the
// lowest.
func fits(free []Range, n int) int {
	best, length := -1, 0
	for i, f := range free {
		l := f.Last - f.First + 1
		if l == n {
			return i
		}
		if best < 0 || l > n && (length < n || l < length) || l < n && l > length {
			best, length = i, l
		}
	}
	return best
}

// put returns nodes back.
func put(free []Range, back Range) []Range {
	i, _ := slices.BinarySearchFunc(free, back.First, func(f Range, first int) int { return cmp.Compare(f.First, first) })
	before, after := i > 0 && free[i-1].Last+1 == back.First, i < len(free) && free[i].First == back.Last+1
	switch {
	case before && after:
		free[i-1].Last = free[i].Last
		return slices.Delete(free, i, i+1)
	case before:
		free[i-1].Last = back.Last
	case after:
		free[i].First = back.First
	default:
		return slices.Insert(free, i, back)
	}
	return free
}
