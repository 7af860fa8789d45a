package grid

import (
	"math/bits"

	"github.com/evoslurm/evoslurm/planner/profile"
)

// side holds consecutive steps on one side of a pivot.
type side struct {
	duration int64 // seconds
	level    int   // the level of the fewest nodes
}

// Kinds of sides.
const (
	apart      = iota // the pivot's cell belongs to neither side
	pivotLeft         // it belongs to the left side
	pivotRight        // it belongs to the right side
	long              // left is a later part of the right side's steps
	longer            // a still later part
	sidesKinds
)

// PivotGroup is the largest number of steps on one side of a pivot.
const PivotGroup = 4

// The number of whole cells that steps cover beside the pivot's cell, wherever in it the pivot is.
func (g *Grid) cellsLeft(seconds int64) int64  { return (seconds - 1<<g.shift + 1) >> g.shift }
func (g *Grid) cellsRight(seconds int64) int64 { return seconds>>g.shift - 1 }

// room returns from how many cells on that many have a level.
func (g *Grid) room(level int, cells int64) int {
	if cells < 1 {
		return g.cells
	}
	run, _ := longestRun(cells)
	return g.cells - g.layers[level][run].cleared
}

// Choose picks as the pivot the start of the step that is likely to leave the least to search. Up
// to group steps before it, and from it on, follow each other without a gap.
func (g *Grid) Choose(pat *Pattern, p profile.Profile, group int) {
	levels := g.steps[:0]
	for i := range p {
		levels = append(levels, g.levelOf(p[i].Nodes))
	}
	g.steps = levels
	settled := g.used/64 - frontier
	weigh := g.found != nil && settled > frontier*8
	var before, after side
	least := -1
	for i := range p {
		left, right := side{}, side{p[i].Duration, levels[i]} // those with the least room
		if i > 0 {
			left = side{p[i-1].Duration, levels[i-1]}
		}
		leftRoom, rightRoom := g.cells, g.cells
		all := side{level: gridLevels}
		for k := i; k < min(i+group, len(p)) && levels[k] > 0; k++ {
			all.duration += p[k].Duration
			all.level = min(all.level, levels[k])
			if room := g.room(all.level, g.cellsRight(all.duration)); room < rightRoom {
				right, rightRoom = all, room
			}
		}
		all = side{level: gridLevels}
		for k := i - 1; k >= max(i-group, 0) && levels[k] > 0; k-- {
			all.duration += p[k].Duration
			all.level = min(all.level, levels[k])
			if room := g.room(all.level, g.cellsLeft(all.duration)); room < leftRoom {
				left, leftRoom = all, room
			}
		}
		cost := leftRoom * rightRoom
		if weigh {
			cost = g.cost(g.beside(i, left, right), cost, settled)
		}
		if least < 0 || cost < least {
			least, pat.Pivot, before, after = cost, i, left, right
		}
	}
	g.around(pat, g.beside(pat.Pivot, before, after))
}

// cost estimates the work to search the candidates of a class, in quarters of a candidate: the
// existing candidates, or those expected for a product of free cells, and the words not yet
// searched.
func (g *Grid) cost(around pair, product, settled int) int {
	known := &g.found[around.class()]
	candidates := product / g.cells / 2
	if known.looked > settled/2 {
		candidates = len(known.list)
	}
	return 4*candidates + max(settled-known.looked, 0)
}

// pair is two sides in terms of the grid.
type pair struct {
	kind                 int
	leftLevel, leftRun   int
	rightLevel, rightRun int
	leftAt, rightAt      int64 // the first cells of the runs, relative to the pivot's
}

// beside returns the pair of a left and a right side; before step 0 there is no left side.
func (g *Grid) beside(step int, before, after side) pair {
	p := pair{leftLevel: before.level, rightLevel: after.level, rightAt: 1}
	left, right := int64(0), g.cellsRight(after.duration)
	if step > 0 {
		if left = g.cellsLeft(before.duration); left >= 0 && right >= 0 {
			// Together they also cover the pivot's cell: at least one of them must.
			if p.leftLevel < p.rightLevel {
				p.kind, left, p.leftAt = pivotLeft, left+1, 1
			} else {
				p.kind, right, p.rightAt = pivotRight, right+1, 0
			}
		}
	}
	if left < 1 {
		p.leftLevel = 0
	}
	if right < 1 {
		p.rightLevel = 0
	}
	var leftCells, rightCells int64
	p.leftRun, leftCells = longestRun(left)
	p.rightRun, rightCells = longestRun(right)
	if p.leftAt -= leftCells; step == 0 && right >= 2*rightCells {
		// Nothing is to the left of a first step: use a later part of it instead.
		p.kind, p.leftLevel, p.leftRun, p.leftAt = long, p.rightLevel, p.rightRun, 1+rightCells
		if right >= 4*rightCells {
			p.kind, p.leftAt = longer, 1+3*rightCells
		}
	}
	return p
}

// class returns equal numbers for pairs that read the same bits.
func (p pair) class() int {
	return (((p.kind*(gridLevels+1)+p.leftLevel)*gridRuns+p.leftRun)*(gridLevels+1)+p.rightLevel)*gridRuns + p.rightRun
}

// around sets what must be free around the pattern's pivot.
func (g *Grid) around(pat *Pattern, p pair) {
	at := func(p pair) sides {
		return sides{
			newProbe(&g.layers[p.leftLevel][p.leftRun], p.leftAt, 0),
			newProbe(&g.layers[p.rightLevel][p.rightRun], p.rightAt, 0),
			p.class(),
		}
	}
	pat.beside, pat.fine = p, at(p)
	p.leftLevel -= p.leftLevel % coarseLevels
	p.rightLevel -= p.rightLevel % coarseLevels
	pat.coarse = at(p)
}

// longestRun returns the layer with the longest run of at most so many cells.
func longestRun(cells int64) (layer int, run int64) {
	if cells < 1 {
		return 0, 1
	}
	layer = min(bits.Len64(uint64(cells)), gridRuns) - 1
	return layer, 1 << layer
}

// Only makes the start of step i the pattern's pivot, with the step before it.
func (g *Grid) Only(pat *Pattern, p profile.Profile, i int) {
	var before side
	if i > 0 {
		before = side{p[i-1].Duration, g.levelOf(p[i-1].Nodes)}
	}
	pat.Pivot = i
	g.around(pat, g.beside(i, before, side{p[i].Duration, g.levelOf(p[i].Nodes)}))
}
