package planner

import (
	"cmp"
	"math/bits"
	"slices"

	"github.com/evoslurm/evoslurm/planner/internal/exact"
)

// freeNodes tracks the free nodes at a moment that only advances, and until when each is free.
type freeNodes struct {
	now     int64
	busy    [][]NodeBusy // per node, ascending, disjoint
	turn    []int        // per node, the number of intervals that are over
	until   []int64      // per node, the second until which it is not busy; past if it is busy now
	changes []change     // coming changes, ascending
	held    nodeSet      // by jobs
	wanted  nodeSet      // preferred by some job
	awake   nodeSet      // neither held nor busy
	lasting nodeSet      // awake nodes that are never busy again
}

// change is the second at which others take a node or return it.
type change struct {
	at    int64
	node  int
	takes bool
}

func newFreeNodes(busy [][]NodeBusy) freeNodes {
	f := freeNodes{now: exact.Dawn, busy: busy, turn: make([]int, len(busy)), until: make([]int64, len(busy)), held: newNodeSet(len(busy)),
		wanted: newNodeSet(len(busy)), awake: newNodeSet(len(busy)), lasting: newNodeSet(len(busy))}
	changes := 0
	for _, list := range busy {
		changes += 2 * len(list)
	}
	f.changes = make([]change, 0, changes)
	for n, list := range busy {
		for _, b := range list {
			f.changes = append(f.changes, change{b.Start, n, true}, change{b.End, n, false})
		}
		f.look(n)
		f.awake.add(n)
		if len(list) == 0 {
			f.lasting.add(n)
		}
	}
	slices.SortFunc(f.changes, func(a, b change) int { return cmp.Compare(a.at, b.at) })
	return f
}

// look computes until when a node is not busy.
func (f *freeNodes) look(n int) {
	if b, ok := f.next(n); ok {
		f.until[n] = b.Start
	} else {
		f.until[n] = Forever
	}
}

// next returns the current or next busy interval of a node.
func (f *freeNodes) next(n int) (NodeBusy, bool) {
	if f.turn[n] == len(f.busy[n]) {
		return NodeBusy{}, false
	}
	return f.busy[n][f.turn[n]], true
}

// advance moves to second t.
func (f *freeNodes) advance(t int64) {
	f.now = t
	for len(f.changes) > 0 && f.changes[0].at <= t {
		c := f.changes[0]
		f.changes = f.changes[1:]
		if c.takes {
			f.awake.remove(c.node)
			continue
		}
		f.turn[c.node]++
		f.look(c.node)
		if !f.held.has(c.node) {
			f.wake(c.node)
		}
	}
}

// wake marks a node as free now.
func (f *freeNodes) wake(n int) {
	f.awake.add(n)
	if f.until[n] == Forever {
		f.lasting.add(n)
	}
}

// take gives a node to a job.
func (f *freeNodes) take(n int) {
	f.held.add(n)
	f.awake.remove(n)
	f.lasting.remove(n)
}

// give takes a node back.
func (f *freeNodes) give(n int) {
	f.held.remove(n)
	if f.until[n] > f.now {
		f.wake(n)
	}
}

// brief visits the free nodes that are busy later.
func (f *freeNodes) brief(visit func(n int)) {
	for w, word := range f.awake {
		for word &^= f.lasting[w]; word != 0; word &= word - 1 {
			visit(w*64 + bits.TrailingZeros64(word))
		}
	}
}

// nodeSet is a set of nodes, a bit each.
type nodeSet []uint64

func newNodeSet(nodes int) nodeSet { return make(nodeSet, (nodes+63)/64) }

func (s nodeSet) add(n int)      { s[n/64] |= 1 << (n % 64) }
func (s nodeSet) remove(n int)   { s[n/64] &^= 1 << (n % 64) }
func (s nodeSet) has(n int) bool { return s[n/64]>>(n%64)&1 != 0 }
