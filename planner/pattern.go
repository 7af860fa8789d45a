package planner

import (
	"math/bits"
	"slices"
)

// pattern is what the grid must have around a job's pivot, the second at which one
// of its steps begins.
type pattern struct {
	pivot     int     // index of the step
	fine      sides   // what must be free just before and just after the pivot
	coarse    sides   // likewise, with fewer nodes
	probes    []probe // for steps at a known distance; at least 3, the best filters first
	wide      []probe // for steps that expansion moves
	low, high int     // from word low to before high no probe looks at cells that are not known
}

// sides are what must be free just before and just after a pivot.
type sides struct {
	left, right probe
	class       int // equal for equal sides
}

// probe says that at an offset, relative to the cell of a job's pivot, or at one of
// the span cells after it, a layer's bit must be set.
type probe struct {
	words   []uint64 // of the layer
	cleared int      // of the layer
	word    int      // the offset in whole words
	bit     uint     // and the rest of it, in cells
	span    int      // cells, at most gridSpan
}

// candidates are the words of the grid with cells that have both sides of a class. As
// long as a plan only grows, what is not among them need not be looked at again.
type candidates struct {
	looked int // so many words have been looked at
	words  []int32
}

const (
	gridProbes   = 24 // no more than so many probes of a job
	gridSpan     = 48 // less than a word
	gridClasses  = sidesKinds * (gridLevels + 1) * gridRuns * (gridLevels + 1) * gridRuns
	coarseLevels = 4  // fine levels to a coarse one
	frontier     = 64 // the last words in use change too often to be candidates
)

// Kinds of sides.
const (
	apart      = iota // the pivot's cell is of neither side
	pivotLeft         // it is of the left one
	pivotRight        // it is of the right one
	long              // left is a later part of the right side's step
	longer            // and yet later
	sidesKinds
)

func newProbe(l *layer, offset, span int64) probe {
	return probe{l.words, l.cleared, int(offset >> 6), uint(offset & 63), int(span)}
}

// at is the cells of word w that pass; all cells that are looked at must be known, and
// span 0.
func (p *probe) at(w int) uint64 {
	k := w + p.word
	return p.words[k]>>(p.bit&63) | p.words[k+1]<<1<<(63-p.bit&63)
}

// pass is the cells of word w that pass.
func (p *probe) pass(w int) uint64 {
	k := w + p.word
	here, next := word(p.words, k), word(p.words, k+1)
	low := here>>p.bit | next<<1<<(63-p.bit)
	if p.span == 0 {
		return low
	}
	return spread(low, next>>p.bit|word(p.words, k+2)<<1<<(63-p.bit), p.span)
}

// word is a word of a set; all outside are set.
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

// clear makes the pattern one without a pivot.
func (pat *pattern) clear() {
	pat.pivot, pat.probes, pat.wide = -1, pat.probes[:0], pat.wide[:0]
}

// around makes the pattern's pivot the begin of a step, with the step before it (nil:
// none), which holds its nodes until then; unless the pattern has a better pivot.
func (g *grid) around(pat *pattern, pivot int, before *Step, step Step) {
	// Steps cover so many whole cells beside that of the pivot, wherever in it that is.
	left, right := int64(0), step.Duration>>g.shift-1
	leftLevel, rightLevel := 0, g.levelOf(step.Nodes)
	leftAt, rightAt := int64(0), int64(1)
	kind := apart
	if before != nil {
		left, leftLevel = (before.Duration-1<<g.shift+1)>>g.shift, g.levelOf(before.Nodes)
		if left >= 0 && right >= 0 { // together they cover that cell too: one of them at least
			if leftLevel < rightLevel {
				left, leftAt, kind = left+1, 1, pivotLeft
			} else {
				right, rightAt, kind = right+1, 0, pivotRight
			}
		}
	}
	if left < 1 {
		leftLevel = 0
	}
	if right < 1 {
		rightLevel = 0
	}
	i, leftRun := longestRun(left)
	k, rightRun := longestRun(right)
	if leftAt -= leftRun; before == nil && right >= 2*rightRun {
		// Nothing is to the left of a first step: look at a later part of it instead.
		leftLevel, i, leftAt, kind = rightLevel, k, 1+rightRun, long
		if right >= 4*rightRun {
			leftAt, kind = 1+3*rightRun, longer
		}
	}
	l, r := &g.layers[leftLevel][i], &g.layers[rightLevel][k]
	if pat.pivot >= 0 && (g.cells-l.cleared)*(g.cells-r.cleared) >= (g.cells-pat.fine.left.cleared)*(g.cells-pat.fine.right.cleared) {
		return
	}
	at := func(leftLevel, rightLevel int) sides {
		return sides{
			newProbe(&g.layers[leftLevel][i], leftAt, 0),
			newProbe(&g.layers[rightLevel][k], rightAt, 0),
			(((kind*(gridLevels+1)+leftLevel)*gridRuns+i)*(gridLevels+1)+rightLevel)*gridRuns + k,
		}
	}
	pat.pivot, pat.fine = pivot, at(leftLevel, rightLevel)
	pat.coarse = at(leftLevel/coarseLevels*coarseLevels, rightLevel/coarseLevels*coarseLevels)
}

// probe looks for a step that starts after seconds after the pivot, which is anywhere
// in its cell.
func (g *grid) probe(pat *pattern, after int64, step Step) {
	width := int64(1) << g.shift
	first := (after + 2*width - 2) >> g.shift // ceil((after+width-1)/width)
	last := (after + step.Duration) >> g.shift
	level := g.levelOf(step.Nodes)
	if first >= last || level == 0 || last > gridCells || first < -gridCells {
		return
	}
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

// probeAfter looks for a step that starts between low and high seconds after the
// pivot.
func (g *grid) probeAfter(pat *pattern, low, high int64, step Step) {
	width := int64(1) << g.shift
	first, last := low>>g.shift+1, (high+width-1)>>g.shift+1
	g.probeSpan(pat, first, last, step.Duration>>g.shift-1, step.Nodes)
}

// probeBefore looks for a step that ends between high and low seconds before the
// pivot.
func (g *grid) probeBefore(pat *pattern, low, high int64, step Step) {
	width := int64(1) << g.shift
	run := (step.Duration - width + 1) >> g.shift
	g.probeSpan(pat, -high>>g.shift-run, (width-1-low)>>g.shift-run, run, step.Nodes)
}

func (g *grid) probeSpan(pat *pattern, first, last, run int64, nodes int) {
	level := g.levelOf(nodes)
	if run < 1 || level == 0 || last-first > gridSpan || last > gridCells || first < -gridCells || len(pat.wide) >= gridProbes {
		return
	}
	j, _ := longestRun(run)
	pat.wide = append(pat.wide, newProbe(&g.layers[level][j], first, last-first))
}

// sort puts the best filters first.
func (pat *pattern) sort() {
	probes := pat.probes
	for i := 1; i < len(probes); i++ {
		for k := i; k > 0 && probes[k].cleared > probes[k-1].cleared; k-- {
			probes[k], probes[k-1] = probes[k-1], probes[k]
		}
	}
}

// ready ends the making of a pattern.
func (g *grid) ready(pat *pattern) {
	for len(pat.probes) < 3 {
		pat.probes = append(pat.probes, pat.fine.left)
	}
	first, last := -1, 0
	for i := range pat.probes {
		first, last = min(first, pat.probes[i].word), max(last, pat.probes[i].word)
	}
	pat.low, pat.high = -first, g.cells/64-last-1
}

// next is the first second ≥ s kind cell passes the pattern; if there is none
// before until, it is some second from until on.
func (g *grid) next(s int64, pat *pattern, until int64) int64 {
	from := g.cell(s)
	if from < 0 || from >= int64(g.cells) {
		return s
	}
	end := g.cells / 64
	if until <= horizon {
		end = int(min(int64(end), g.cell(until)/64+1))
	}
	w, cells := g.search(pat, from, end)
	if cells == 0 {
		return max(s, g.start(int64(end)*64))
	}
	return max(s, g.start(int64(w*64+bits.TrailingZeros64(cells))))
}

// search is the first word before end with cells, from cell from on, that pass the
// pattern, and these cells.
func (g *grid) search(pat *pattern, from int64, end int) (w int, cells uint64) {
	w = int(from / 64)
	if cells = pat.test(w, pat.fine.at(w)&(^uint64(0)<<(from%64))); cells != 0 {
		return w, cells
	}
	w++
	if settled := min(g.used/64-frontier, pat.high, end); g.found != nil && w >= pat.low && w < settled {
		if w, cells = g.candidate(pat, w, settled); cells != 0 {
			return w, cells
		}
		w = settled
	}
	for w < end {
		if w, cells = pat.fine.scan(w, end); cells == 0 {
			break
		}
		if cells = pat.test(w, cells); cells != 0 {
			return w, cells
		}
		w++
	}
	return end, 0
}

// candidate is search among the candidates from word w to before end.
func (g *grid) candidate(pat *pattern, w, end int) (int, uint64) {
	known, coarse := &g.found[pat.fine.class], &g.found[pat.coarse.class]
	left, right, a, b, c := &pat.fine.left, &pat.fine.right, &pat.probes[0], &pat.probes[1], &pat.probes[2]
	from := known.index(w)
	list := known.words[from:]
	kept := 0 // of list, in its place: what has been taken since goes
	for i, word := range list {
		w := int(word)
		if w >= end {
			kept += copy(list[kept:], list[i:])
			break
		}
		// The sides and three filters together: it is cheaper than to guess which fails.
		sides := left.at(w) & right.at(w)
		list[kept] = word
		if sides != 0 {
			kept++
		}
		if cells := sides & a.at(w) & b.at(w) & c.at(w); cells != 0 {
			if cells = pat.test(w, cells); cells != 0 {
				if kept <= i {
					kept += copy(list[kept:], list[i+1:])
					known.words = known.words[:from+kept]
				}
				return w, cells
			}
		}
	}
	known.words = known.words[:from+kept]
	if known.looked >= end {
		return end, 0
	}
	from = known.looked
	coarse.look(&pat.coarse, end)
	for _, word := range coarse.words[coarse.index(from):] {
		here := int(word)
		if here >= end {
			break
		}
		sides := left.at(here) & right.at(here)
		if sides == 0 {
			continue
		}
		if here >= w {
			if cells := pat.test(here, sides); cells != 0 {
				return here, cells
			}
		}
		if known != coarse {
			known.words, known.looked = append(known.words, int32(here)), here+1
		}
	}
	known.looked = end
	return end, 0
}

// look notes the words before end with cells that have both sides.
func (c *candidates) look(s *sides, end int) {
	c.looked = max(c.looked, 1) // what is to the left of word 0 is not known
	for {
		here, cells := s.scan(c.looked, end)
		if c.looked = max(c.looked, here); cells == 0 {
			return
		}
		c.words = append(c.words, int32(here))
		c.looked++
	}
}

// index is the first of the candidates not before word w.
func (c *candidates) index(w int) int {
	if len(c.words) == 0 || w <= int(c.words[0]) {
		return 0
	}
	i, _ := slices.BinarySearch(c.words, int32(w))
	return i
}

// at is the cells of word w that have both sides.
func (s *sides) at(w int) uint64 { return s.left.pass(w) & s.right.pass(w) }

// scan is the first word from w to before end that has cells with both sides, and
// these cells; or end.
func (s *sides) scan(w, end int) (int, uint64) {
	l, r := &s.left, &s.right // their words are w-1 and w, or w and w+1
	for ; w < end; w++ {
		if w == 0 || w+1 >= len(l.words) {
			if cells := s.at(w); cells != 0 {
				return w, cells
			}
		} else if cells := l.at(w) & r.at(w); cells != 0 {
			return w, cells
		}
	}
	return end, 0
}

// test is those of the cells of word w that pass all probes.
func (pat *pattern) test(w int, cells uint64) uint64 {
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
	for i := range pat.wide {
		if cells == 0 {
			return 0
		}
		cells &= pat.wide[i].pass(w)
	}
	return cells
}
