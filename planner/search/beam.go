package search

import (
	"math"
	"math/bits"

	"github.com/evoslurm/evoslurm/planner/internal/exact"
)

// beam is a beam search for a short schedule without expansion. It places jobs in the order of
// their starts, each as early as it fits but not before the job placed last. It keeps the most
// promising partial schedules of every depth.
//
// With starts in order, nodes that are free before the last start stay free: they are wasted for
// good. Nodes that are free later are likely to stay free where few are free. The guide weighs both
// against the area already placed.
type beam struct {
	shapes   []shape
	gaps     []gap // free at the start
	capacity float64
	origin   int64   // no job starts earlier
	area     float64 // of all jobs
	budget   *budget

	nodes, next []beamNode
	heap        []beamChild
	trail       []beamTrail
	starts      []int64
}

// beamGuide controls how partial schedules are compared.
type beamGuide struct {
	curve float64 // 0 … 1: how soon free nodes count as usable
	steep bool    // prefer more strongly schedules that have placed much
}

// beamNode is a partial schedule.
type beamNode struct {
	gaps    []gap    // from last on
	placed  []uint64 // set of jobs
	last    int64    // latest start
	lastJob int
	end     int64 // latest completion so far
	trail   int32
	dead    float64 // node-seconds free before last
	area    float64 // node-seconds of the jobs placed
}

// beamChild is a partial schedule with one more job, not yet built.
type beamChild struct {
	guide float64 // smaller is better
	start int64
	node  int32
	job   int32
}

// beamTrail records how a node was reached.
type beamTrail struct {
	parent, job int32
	start       int64
}

// run searches with width partial schedules per depth for a schedule that ends before limit. It
// leaves the jobs' starts in b.starts and returns the completion, or false if there is none or the
// budget ended. window bounds how many unplaced jobs, in list order, are tried next. It tries at
// most width × jobs × window placements.
func (b *beam) run(width, window int, limit int64, g beamGuide) (int64, bool) {
	jobs := len(b.shapes)
	words := (jobs + 63) / 64
	b.trail = b.trail[:0]
	b.nodes = b.nodes[:0]
	root := b.grow(&b.nodes, words)
	clear(root.placed)
	root.gaps = append(root.gaps[:0], b.gaps...)
	root.last, root.lastJob, root.end, root.trail, root.dead, root.area = b.origin, -1, b.origin, -1, 0, 0
	// At most this much may stay free before limit. It is rounded, like all node-seconds here: the
	// search may therefore miss a schedule, but it never claims that there is no better one.
	slack := freeArea(b.gaps, b.origin, limit-1) - b.area
	inverse := 1 / b.capacity

	// When the budget is spent, a few partial schedules are followed to the end.
	narrow := max(1, min(4, 1000/jobs))
	for depth := range jobs {
		b.heap = b.heap[:0]
		for n := range b.nodes {
			node := &b.nodes[n]
			if n >= narrow && b.budget.spent() {
				break
			}
			tried := 0
		candidates:
			for w, placed := range node.placed {
				open := ^placed
				if w == words-1 && jobs&63 != 0 {
					open &= 1<<(jobs&63) - 1
				}
				for ; open != 0; open &= open - 1 {
					if tried == window {
						break candidates
					}
					tried++
					k := w<<6 + bits.TrailingZeros64(open)
					j := &b.shapes[k]
					start := place(node.gaps, j, max(node.last, j.submit))
					if start == node.last && k < node.lastJob {
						continue // the other order of two equal starts
					}
					end := start + j.duration
					if end >= limit {
						continue
					}
					// Σ free before start, and the likely loss from the rest.
					dead, loss := node.assess(j, start, inverse, g.curve)
					if dead > slack {
						continue
					}
					placed := (node.area + j.area) / b.area
					guide := (loss + 1) / (placed * placed)
					if g.steep {
						guide /= math.Sqrt(placed)
					}
					b.offer(beamChild{guide, start, int32(n), int32(k)}, width)
				}
			}
			b.budget.used += int64(tried)
		}
		if len(b.heap) == 0 {
			return 0, false
		}
		if depth == jobs-1 {
			return b.finish(), true
		}
		b.next = b.next[:0]
		for _, c := range b.heap {
			parent, j := &b.nodes[c.node], &b.shapes[c.job]
			node := b.grow(&b.next, words)
			copy(node.placed, parent.placed)
			node.placed[c.job>>6] |= 1 << (c.job & 63)
			node.gaps = occupy(node.gaps, parent.gaps, j, c.start, c.start)
			node.dead = parent.dead + freeArea(parent.gaps, parent.last, c.start)
			node.area = parent.area + j.area
			node.last, node.lastJob = c.start, int(c.job)
			node.end = max(parent.end, c.start+j.duration)
			node.trail = int32(len(b.trail))
			b.trail = append(b.trail, beamTrail{parent.trail, c.job, c.start})
		}
		b.nodes, b.next = b.next, b.nodes
	}
	return b.origin, true
}

// assess returns the free node-seconds before start, and those plus the likely unused rest once j
// is placed.
func (n *beamNode) assess(j *shape, start int64, inverse, curve float64) (dead, loss float64) {
	gaps := n.gaps
	k := 0
	dead = n.dead
	t := n.last
	for gaps[k+1].start <= start {
		dead += float64(max(gaps[k].free, 0)) * float64(gaps[k+1].start-t)
		k++
		t = gaps[k].start
	}
	dead += float64(max(gaps[k].free, 0)) * float64(start-t)
	loss = dead
	t = start
	for i := range j.steps {
		step := &j.steps[i]
		end := start + step.end
		for {
			next := min(gaps[k+1].start, end)
			loss += lost(gaps[k].free-step.nodes, inverse, curve) * float64(next-t)
			t = next
			if gaps[k+1].start <= t {
				k++
			}
			if t == end {
				break
			}
		}
	}
	for t < n.end {
		next := min(gaps[k+1].start, n.end)
		loss += lost(gaps[k].free, inverse, curve) * float64(next-t)
		t = next
		k++
	}
	return dead, loss
}

// lost estimates how many of the free nodes will not be used.
func lost(free int64, inverse, curve float64) float64 {
	f := float64(free)
	x := f * inverse
	return f * (1 - x) * (1 - curve*x)
}

// offer keeps the width best children: a heap with the worst on top.
func (b *beam) offer(c beamChild, width int) {
	if len(b.heap) < width {
		b.heap = append(b.heap, c)
		for i := len(b.heap) - 1; i > 0; {
			up := (i - 1) / 2
			if b.heap[up].guide >= b.heap[i].guide {
				break
			}
			b.heap[up], b.heap[i] = b.heap[i], b.heap[up]
			i = up
		}
		return
	}
	if c.guide >= b.heap[0].guide {
		return
	}
	i := 0
	for {
		down := 2*i + 1
		if down >= width {
			break
		}
		if down+1 < width && b.heap[down+1].guide > b.heap[down].guide {
			down++
		}
		if b.heap[down].guide <= c.guide {
			break
		}
		b.heap[i] = b.heap[down]
		i = down
	}
	b.heap[i] = c
}

// grow adds a node to a layer and keeps the memory of earlier ones.
func (b *beam) grow(layer *[]beamNode, words int) *beamNode {
	if n := len(*layer); n < cap(*layer) {
		*layer = (*layer)[:n+1]
	} else {
		*layer = append(*layer, beamNode{})
	}
	node := &(*layer)[len(*layer)-1]
	if len(node.placed) != words {
		node.placed = make([]uint64, words)
	}
	return node
}

// finish takes the best complete schedule among the children of the last layer.
func (b *beam) finish() int64 {
	best, found := exact.Forever, 0
	for i, c := range b.heap {
		if end := max(b.nodes[c.node].end, c.start+b.shapes[c.job].duration); end < best {
			best, found = end, i
		}
	}
	c := b.heap[found]
	b.starts[c.job] = c.start
	for t := b.nodes[c.node].trail; t >= 0; t = b.trail[t].parent {
		b.starts[b.trail[t].job] = b.trail[t].start
	}
	return best
}

// freeArea returns the free node-seconds of [from, to).
func freeArea(gaps []gap, from, to int64) (area float64) {
	k := 0
	for gaps[k+1].start <= from {
		k++
	}
	for ; gaps[k].start < to; k++ {
		area += float64(max(gaps[k].free, 0)) * float64(min(gaps[k+1].start, to)-max(gaps[k].start, from))
	}
	return area
}
