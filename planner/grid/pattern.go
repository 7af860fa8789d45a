package grid

import (
	"encoding/binary"
	"math/bits"

	"github.com/evoslurm/evoslurm/planner/internal/exact"
	"github.com/evoslurm/evoslurm/planner/profile"
)

// Pattern describes what the grid must have around a job's pivot, the second at which one of its steps
// begins.
type Pattern struct {
	Pivot     int      // index of the step
	beside    pair     // what must be free just before and just after the pivot
	fine      sides    // what must be free just before and just after the pivot
	coarse    sides    // the same, with fewer nodes
	probes    []probe  // for steps at a known distance, the best filters first
	wide      []probe  // for steps that expansion moves
	samples   []sample // for the same as probes; at least 4, those with most nodes first
	quick     quick    // of them
	needsAt   int      // a cell relative to the pivot's
	needs     []uint8  // the shades that the cells from there on must have
	at        int      // last candidate that passed, in the list of candidates
	low, high int      // from word low to before high, no probe or sample reads unknown cells
}

// sides describes what must be free just before and just after a pivot.
type sides struct {
	left, right probe
	class       int // equal for equal sides
}

// probe requires that a layer's bit is set at an offset relative to the cell of a job's pivot, or
// at one of the span cells after it.
type probe struct {
	words   []uint64 // of the layer
	cleared int      // of the layer
	word    int      // the offset in whole words
	bit     uint     // the rest of the offset, in cells
	span    int      // cells, at most gridSpan
}

const (
	gridProbes = 24  // largest number of probes per job
	gridNeeds  = 256 // number of cells with known needs
	gridSpan   = 48  // less than a word
)

func newProbe(l *layer, offset, span int64) probe {
	return probe{l.words, l.cleared, int(offset >> 6), uint(offset & 63), int(span)}
}

// at returns the cells of word w that pass. All cells read must be known, and span 0.
func (p *probe) at(w int) uint64 {
	return cellsAt(p.words, w+p.word, p.bit)
}

// cellsAt returns 64 cells from bit on of word k on. As in eight, 32 bits of k suffice.
func cellsAt(words []uint64, k int, bit uint) uint64 {
	i := uint(uint32(k))
	two := words[i : i+2 : i+2]
	return two[0]>>(bit&63) | two[1]<<1<<((63-bit)&63)
}

// pass returns the cells of word w that pass.
func (p *probe) pass(w int) uint64 {
	k := w + p.word
	here, next := word(p.words, k), word(p.words, k+1)
	low := here>>p.bit | next<<1<<(63-p.bit)
	if p.span == 0 {
		return low
	}
	return spread(low, next>>p.bit|word(p.words, k+2)<<1<<(63-p.bit), p.span)
}

// word returns a word of a set; all words outside are set.
func word(set []uint64, k int) uint64 {
	if k < 0 || k >= len(set) {
		return ^uint64(0)
	}
	return set[k]
}

// spread sets a bit of low where it or one of the span bits after it, the next ones
// in high, is set.
func spread(low, high uint64, span int) uint64 {
	for by := 1; span > 0; by *= 2 {
		by = min(by, span)
		low |= low>>by | high<<(64-by)
		high |= high >> by
		span -= by
	}
	return low
}

// Clear removes the pattern's pivot.
func (pat *Pattern) Clear() {
	pat.Pivot, pat.probes, pat.wide, pat.samples, pat.needs = -1, pat.probes[:0], pat.wide[:0], pat.samples[:0], pat.needs[:0]
	pat.low, pat.high, pat.at = 0, 0, 0 // words, of samples
}

// Probe looks for a step that starts after seconds after the pivot, which is anywhere
// in its cell.
func (g *Grid) Probe(pat *Pattern, after int64, step profile.Step) {
	width := int64(1) << g.shift
	first := (after + 2*width - 2) >> g.shift // ceil((after+width-1)/width)
	last := (after + step.Duration) >> g.shift
	level := g.levelOf(step.Nodes)
	if first >= last || level == 0 || last > gridCells || first < -gridCells {
		return
	}
	pat.sample(int(first), int(last-1), g.shade(step.Nodes))
	j, run := longestRun(last - first)
	l := &g.layers[level][j]
	for last -= run; len(pat.probes) < gridProbes; first += run {
		cell := min(first, last)
		pat.probes = append(pat.probes, newProbe(l, cell, 0))
		if cell == last {
			return
		}
	}
}

// ProbeAfter looks for a step that starts between low and high seconds after the
// pivot.
func (g *Grid) ProbeAfter(pat *Pattern, low, high int64, step profile.Step) {
	width := int64(1) << g.shift
	first, last := low>>g.shift+1, (high+width-1)>>g.shift+1
	g.probeSpan(pat, first, last, step.Duration>>g.shift-1, step.Nodes)
}

// ProbeBefore looks for a step that ends between high and low seconds before the
// pivot.
func (g *Grid) ProbeBefore(pat *Pattern, low, high int64, step profile.Step) {
	width := int64(1) << g.shift
	run := (step.Duration - width + 1) >> g.shift
	g.probeSpan(pat, -high>>g.shift-run, (width-1-low)>>g.shift-run, run, step.Nodes)
}

func (g *Grid) probeSpan(pat *Pattern, first, last, run int64, nodes int) {
	level := g.levelOf(nodes)
	if run < 1 || level == 0 || last-first > gridSpan || last > gridCells || first < -gridCells || len(pat.wide) >= gridProbes {
		return
	}
	j, _ := longestRun(run)
	pat.wide = append(pat.wide, newProbe(&g.layers[level][j], first, last-first))
}

// Demand sets what every cell must have that some steps in a row cover. The first step starts after
// seconds after the pivot. In a cell where one step ends and the next begins, the smaller of
// both counts.
func (g *Grid) Demand(pat *Pattern, after int64, steps profile.Profile) {
	if cap(pat.needs) == 0 {
		pat.needs = make([]uint8, gridNeeds+16)
	}
	needs := pat.needs[:gridNeeds+16]
	width := int64(1) << g.shift
	first := (after + 2*width - 2) >> g.shift  // as in probe
	end, least := 0, uint64(gridShades)        // end is after the last whole cell of a step; least counts the steps since
	fill := func(from, to int, shade uint64) { // writes up to 7 cells more, which the next steps overwrite
		for ; from < to; from += 8 {
			binary.LittleEndian.PutUint64(needs[from:], shade*eachByte)
		}
	}
	for _, s := range steps {
		shade := uint64(g.shade(s.Nodes))
		least = min(least, shade)
		from := int(min((after+2*width-2)>>g.shift-first, gridNeeds))
		after += s.Duration
		to := int(min(after>>g.shift-first, gridNeeds))
		if from < to {
			fill(end, from, least)
			fill(from, to, shade)
			end, least = to, shade
		}
	}
	fill(end, end+1, 0)
	pat.needsAt, pat.needs = int(first), needs[:(end+7)&^7]
}

// possible drops the first cells of word w until one has what the pattern demands.
func (g *Grid) possible(pat *Pattern, w int, cells uint64) uint64 {
	for ; cells != 0; cells &= cells - 1 {
		at := w*64 + bits.TrailingZeros64(cells) + pat.needsAt
		if at < 0 || at+len(pat.needs) > len(g.free) || suffice(g.free[at:], pat.needs) {
			break
		}
	}
	return cells
}

// suffice reports whether every shade reaches its need.
func suffice(free, needs []uint8) bool {
	for len(needs) >= 8 && len(free) >= 8 {
		if (binary.LittleEndian.Uint64(free)-binary.LittleEndian.Uint64(needs))&highest != highest {
			return false
		}
		free, needs = free[8:], needs[8:]
	}
	return true
}

// Sort puts the best filters first.
func (pat *Pattern) Sort() {
	probes := pat.probes
	for i := 1; i < len(probes); i++ {
		for k := i; k > 0 && probes[k].cleared > probes[k-1].cleared; k-- {
			probes[k], probes[k-1] = probes[k-1], probes[k]
		}
	}
}

// Ready ends the making of a pattern.
func (g *Grid) Ready(pat *Pattern) {
	for len(pat.samples) < 4 {
		pat.samples = append(pat.samples, sample{})
	}
	pat.quicken()
	first, last := min(pat.low, -1), pat.high
	for i := range pat.probes {
		first, last = min(first, pat.probes[i].word), max(last, pat.probes[i].word)
	}
	pat.low, pat.high = -first, g.cells/64-last-1
}

// Next returns the first second ≥ s whose cell passes the pattern. If there is none before until,
// it returns some second from until on.
func (g *Grid) Next(s int64, pat *Pattern, until int64) int64 {
	from := g.cell(s)
	if from < 0 || from >= int64(g.cells) {
		return s
	}
	end := g.cells / 64
	if until <= exact.Horizon {
		end = int(min(int64(end), g.cell(until)/64+1))
	}
	w, cells := g.search(pat, from, end)
	if cells == 0 {
		return max(s, g.start(int64(end)*64))
	}
	return max(s, g.start(int64(w*64+bits.TrailingZeros64(cells))))
}

// search returns the first word before end with cells, from cell from on, that pass the pattern,
// and these cells.
func (g *Grid) search(pat *Pattern, from int64, end int) (w int, cells uint64) {
	w = int(from / 64)
	if cells = g.possible(pat, w, pat.test(w, pat.fine.at(w)&(^uint64(0)<<(from%64)))); cells != 0 {
		return w, cells
	}
	w++
	if settled := min(g.used/64-frontier, pat.high-1, end); g.found != nil && w >= pat.low && w < settled {
		if w, cells = g.candidate(pat, w, settled); cells != 0 {
			return w, cells
		}
		w = settled
	}
	for w < end {
		if w, cells = pat.fine.scan(w, end); cells == 0 {
			break
		}
		if cells = g.possible(pat, w, pat.test(w, cells)); cells != 0 {
			return w, cells
		}
		w++
	}
	return end, 0
}

// at returns the cells of word w that have both sides.
func (s *sides) at(w int) uint64 { return s.left.pass(w) & s.right.pass(w) }

// scan returns the first word from w to before end that has cells with both sides, and these cells;
// or end.
func (s *sides) scan(w, end int) (int, uint64) {
	left, leftAt, leftBit := s.left.words, s.left.word, s.left.bit
	right, rightAt, rightBit := s.right.words, s.right.word, s.right.bit
	// It reads words from w-1 up to w+1 or w+2.
	for known := min(end, len(left)-1-max(leftAt, 0)); ; w++ {
		for ; 0 < w && w < known; w++ {
			if cells := cellsAt(left, w+leftAt, leftBit) & cellsAt(right, w+rightAt, rightBit); cells != 0 {
				return w, cells
			}
		}
		if w >= end {
			return end, 0
		}
		if cells := s.at(w); cells != 0 {
			return w, cells
		}
	}
}

// test returns the given cells of word w that pass all probes.
func (pat *Pattern) test(w int, cells uint64) uint64 {
	if pat.low <= w && w < pat.high {
		for i := range pat.probes {
			if cells &= pat.probes[i].at(w); cells == 0 {
				return 0
			}
		}
	} else {
		for i := range pat.probes {
			cells &= pat.probes[i].pass(w)
		}
	}
	return pat.wides(w, cells)
}

// wides returns the given cells of word w that pass the probes of steps that expansion moves.
func (pat *Pattern) wides(w int, cells uint64) uint64 {
	for i := range pat.wide {
		if cells == 0 {
			break
		}
		cells &= pat.wide[i].pass(w)
	}
	return cells
}
