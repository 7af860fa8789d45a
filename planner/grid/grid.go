package grid

import (
	"math/bits"
	"slices"

	"github.com/evoslurm/evoslurm/planner/internal/exact"
	"github.com/evoslurm/evoslurm/planner/timeline"
)

// Grid is a coarse view of a timeline that quickly shows where a job cannot start. Time is cut into
// cells; for every cell it keeps, at several levels of free nodes, whether that many are free
// during the whole cell. A step covers some cells whole wherever in a given cell the job starts; a
// start cell is out of the question if one of them has too few free nodes. With a bit per cell and
// level, 64 start cells are tried at once; with a byte per cell, 8, more exactly.
//
// What the grid accepts may still be impossible, but never the other way round: plans are the same
// with and without it, only faster with it. Unknown cells count as free.
type Grid struct {
	Res      *timeline.Timeline
	capacity int
	origin   int64                 // second at which cell 0 begins
	shift    uint                  // a cell has 1<<shift seconds
	cells    int                   // number of known cells, a multiple of 64
	used     int                   // the cells before this one have been used
	scale    int                   // nodes to 1<<16 shades
	level    [gridShades + 1]uint8 // of every shade
	least    [gridLevels + 1]uint8 // shade of every level
	layers   [gridLevels + 1][gridRuns]layer
	free     []uint8       // of every cell: its shade, with the highest bit set
	steps    []int         // scratch of choose: their levels
	found    []candidates  // per class of patterns; nil if none are kept
	coarse   []candidates  // words with any candidate; found is searched among them
	asked    []*candidates // the candidates in found and coarse that were requested
}

const (
	gridLevels  = 8       // levels of free nodes, each equally selective for as many steps
	gridRuns    = 6       // layer j covers 1<<j cells in a row
	gridShades  = 127     // number of shades of free nodes
	gridUnknown = 255     // the shade of unknown cells
	gridCells   = 1 << 22 // largest number of cells
	gridAhead   = 2048    // number of cells known beyond the last one in use
)

// layer has a bit per cell: whether that many nodes are free in that many cells from this one on.
type layer struct {
	words   []uint64
	cleared int // number of unset bits: the more, the better a filter
}

// Reset makes the grid a view of a timeline, with cells of at most width seconds and levels that
// suit steps with these node counts. It keeps its memory.
func (g *Grid) Reset(res *timeline.Timeline, capacity int, origin, width int64, nodes []int) {
	g.Res, g.capacity, g.origin, g.cells, g.used = res, capacity, origin, 0, 0
	g.shift = uint(bits.Len64(uint64(max(width, 1))) - 1)
	for k := range g.layers {
		for j := range g.layers[k] {
			g.layers[k][j] = layer{words: g.layers[k][j].words[:0]}
		}
	}
	for _, of := range g.asked {
		*of = candidates{list: of.list[:0]}
	}
	g.asked = g.asked[:0]
	g.free = g.free[:0]
	slices.Sort(nodes)
	peak := max(capacity, 1)
	if len(nodes) > 0 {
		peak = nodes[len(nodes)-1]
	}
	g.scale = (gridShades<<16 - 1) / peak
	g.level = [gridShades + 1]uint8{}
	for k := 1; k <= gridLevels; k++ {
		need := peak * k / gridLevels
		if len(nodes) > 0 {
			need = nodes[(k-1)*len(nodes)/gridLevels]
		}
		g.least[k] = g.shade(need)
		for shade := g.least[k]; shade <= gridShades; shade++ {
			g.level[shade] = uint8(k)
		}
	}
}

func (g *Grid) cell(s int64) int64  { return (s - g.origin) >> g.shift }
func (g *Grid) start(c int64) int64 { return g.origin + c<<g.shift }

// shade returns a number of nodes as a byte: the more nodes, the higher.
func (g *Grid) shade(nodes int) uint8 {
	return uint8(max(min((nodes*g.scale+1<<16-1)>>16, gridShades), 0))
}

// levelOf returns the highest level that needs at most that many free nodes.
func (g *Grid) levelOf(nodes int) int { return int(g.level[g.shade(nodes)]) }

// extend makes the cells before cell known; they start free.
func (g *Grid) extend(cell int64) {
	more := (min(cell, gridCells) - int64(g.cells) + 63) / 64
	if more <= 0 {
		return
	}
	for k := range g.layers {
		for j := range g.layers[k] {
			l := &g.layers[k][j]
			for range more {
				l.words = append(l.words, ^uint64(0))
			}
		}
	}
	g.free = append(g.free, slices.Repeat([]uint8{gridUnknown}, int(more)*64)...)
	g.cells += int(more) * 64
}

// Update rereads [start, end), where the timeline has changed.
func (g *Grid) Update(start, end int64) {
	if end > exact.Horizon || g.cell(start) >= gridCells {
		return
	}
	from, to := max(g.cell(start), 0), min(g.cell(end-1)+1, gridCells)
	if from >= to {
		return
	}
	g.used = max(g.used, int(to))
	if to > int64(g.cells)-gridAhead/2 {
		g.extend(to + gridAhead) // plans grow at their end: let searches stay among known cells
	}
	free := g.free[from:to]
	for c := range free {
		free[c] = gridUnknown
	}
	g.Res.Walk(g.start(from), g.start(to), func(a, b int64, nodes int) {
		shade := g.shade(g.capacity-nodes) | gridUnknown&^gridShades
		cells := free[g.cell(a)-from : g.cell(b-1)-from+1]
		for c := range cells {
			cells[c] = min(cells[c], shade)
		}
	})
	changed := [gridLevels + 1]bool{}
	for w := from / 64; w <= (to-1)/64; w++ {
		var at [16]uint64 // the cells at every level
		first, last := max(from, w*64), min(to, w*64+64)
		for i, shade := range g.free[first:last] {
			at[g.level[shade&gridShades]&15] |= 1 << (uint(first)%64 + uint(i))
		}
		known := ^uint64(0) >> (63 - uint(last-1)%64) &^ (1<<(uint(first)%64) - 1)
		below := uint64(0)
		for k := 1; k <= gridLevels; k++ {
			below |= at[k-1]
			was := g.layers[k][0].words[w]
			is := was&^known | known&^below
			if was != is {
				g.layers[k][0].words[w] = is
				g.layers[k][0].cleared += bits.OnesCount64(was) - bits.OnesCount64(is)
				changed[k] = true
			}
		}
	}
	firstWord, lastWord := int(max(from-1<<(gridRuns-1)+1, 0))/64, int(to-1)/64
	for k := range changed {
		if changed[k] {
			g.renew(k, firstWord, lastWord)
		}
	}
}

// renew computes the layers of a level from its first one, for some words.
func (g *Grid) renew(k, first, last int) {
	l := &g.layers[k]
	next := word(l[0].words, last+1)
	next2 := next & (next>>1 | 1<<63)   // two in a row; what lies further away
	next4 := next2 & (next2>>2 | 3<<62) // matters only to bits that the shifts below drop
	next8 := next4 & (next4>>4 | 15<<60)
	next16 := next8 & (next8>>8 | 255<<56)
	for w := last; w >= first; w-- {
		run := l[0].words[w]
		run2 := run & (run>>1 | next<<63)
		run4 := run2 & (run2>>2 | next2<<62)
		run8 := run4 & (run4>>4 | next4<<60)
		run16 := run8 & (run8>>8 | next8<<56)
		run32 := run16 & (run16>>16 | next16<<48)
		next, next2, next4, next8, next16 = run, run2, run4, run8, run16
		l[1].set(w, run2)
		l[2].set(w, run4)
		l[3].set(w, run8)
		l[4].set(w, run16)
		l[5].set(w, run32)
	}
}

func (l *layer) set(w int, word uint64) {
	l.cleared += bits.OnesCount64(l.words[w]) - bits.OnesCount64(word)
	l.words[w] = word
}
