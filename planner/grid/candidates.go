package grid

import (
	"encoding/binary"
	"math/bits"
	"slices"
)

// candidates holds the places that have what a class of patterns needs around its pivot. As long as
// a plan only grows, all other places can be skipped.
type candidates struct {
	looked  int     // number of grid words already searched
	list    []int32 // coarse: words; otherwise cells, each for itself and the next seven
	sources int     // number of coarse candidates already searched
	visits  int     // visits of the list since dead candidates were dropped
}

const (
	gridClasses  = sidesKinds * (gridLevels + 1) * gridRuns * (gridLevels + 1) * gridRuns
	coarseLevels = 3  // fine levels per coarse level
	frontier     = 32 // the last words in use change too often to hold candidates
	lookAhead    = 32 // number of words searched first, then twice as many, and so on
	window       = 256
	windowLeft   = 64 // cells of the window before the candidate: bounds are checked once for all
)

// KeepCandidates makes the grid remember where patterns were possible, for plans that only grow.
func (g *Grid) KeepCandidates() {
	if g.found == nil {
		g.found, g.coarse = make([]candidates, gridClasses), make([]candidates, gridClasses)
	}
}

// sample requires that at some cells, relative to the cell of a job's pivot, a number of nodes is
// free: the first and last whole cells of a step, and the most selective one.
type sample struct {
	first, last, best int
	need              uint64 // shade, in each of eight bytes
}

// quick holds one cell of each of four samples.
type quick struct {
	at   [4]uint   // in the window
	need [4]uint64 // nothing for cells outside the window
}

// Eight cells are tested together, each a byte with its highest bit set. Subtracting a shade keeps
// that bit if the shade is not above the cell's.
const (
	eachByte = 0x0101010101010101
	highest  = eachByte << 7
)

// eight returns the eight bytes from index i on. With the low 32 bits of i, which suffice, the
// compiler checks bounds once.
func eight(bytes []uint8, i int) uint64 {
	k := uint(uint32(i))
	return binary.LittleEndian.Uint64(bytes[k : k+8 : k+8])
}

// sample samples some of the cells from first to last. The step covers all of them. Steps with more
// nodes come first.
func (pat *Pattern) sample(first, last int, shade uint8) {
	if len(pat.samples) == gridProbes {
		return
	}
	s := sample{first: first, last: last, best: (first + last) / 2, need: uint64(shade) * eachByte}
	if first == 0 || first == 1 {
		s.best = last // the first cells belong to the pivot's step, whose class already covers them
	}
	i := len(pat.samples)
	pat.samples = append(pat.samples, s)
	for ; i > 0 && pat.samples[i-1].need < s.need; i-- {
		pat.samples[i] = pat.samples[i-1]
	}
	pat.samples[i] = s
	pat.low, pat.high = min(pat.low, first>>6), max(pat.high, last>>6)
}

// candidate runs search among the candidates from word w to before end.
func (g *Grid) candidate(pat *Pattern, w, end int) (int, uint64) {
	known := &g.found[pat.fine.class]
	if known.visits > 4*len(known.list)+lookAhead {
		g.purge(known, &pat.beside)
	}
	i := known.index(64*w, pat.at)
	known.visits -= i
	for ahead := lookAhead; ; ahead *= 2 {
		for i < len(known.list) {
			skip, pass := pat.quick.sampled(known.list[i:], g.free)
			if i += skip; pass == 0 {
				break
			}
			cell := int(known.list[i])
			if cell >= 64*end {
				break
			}
			if cells := g.possible(pat, cell/64, pat.wides(cell/64, pat.all(g.free, cell, pass)<<(cell%64))); cells != 0 {
				pat.at = i
				known.visits += i
				return cell / 64, cells
			}
			i++
		}
		if known.looked >= end {
			pat.at = i
			known.visits += i
			return end, 0
		}
		g.look(known, pat, min(known.looked+ahead, end))
		for ; i < len(known.list) && int(known.list[i]) < 64*w; i++ {
		}
	}
}

// quicken sets the quick samples: the best cells of the first four samples.
func (pat *Pattern) quicken() {
	q := &pat.quick
	*q = quick{}
	for i := range q.at {
		s := &pat.samples[i]
		if at := s.best + windowLeft; at >= 0 && at < window {
			q.at[i], q.need[i] = uint(at), s.need
		}
	}
}

// sampled returns the index of the first candidate from which on eight cells contain some that pass
// the quick samples, as their highest bits; or 0. Stopping earlier within the eight does not pay.
func (q *quick) sampled(list []int32, free []uint8) (int, uint64) {
	a, b, c, d := q.at[0]%window, q.at[1]%window, q.at[2]%window, q.at[3]%window
	for i, cell := range list {
		k := uint(uint32(cell - windowLeft))
		near := (*[window + 8]uint8)(free[k : k+window+8 : k+window+8])
		pass := (binary.LittleEndian.Uint64(near[a:a+8]) - q.need[0]) & (binary.LittleEndian.Uint64(near[b:b+8]) - q.need[1]) &
			(binary.LittleEndian.Uint64(near[c:c+8]) - q.need[2]) & (binary.LittleEndian.Uint64(near[d:d+8]) - q.need[3]) & highest
		if pass != 0 {
			return i, pass
		}
	}
	return len(list), 0
}

// all returns which of the eight cells from a cell on pass all samples, one bit each.
func (pat *Pattern) all(free []uint8, cell int, pass uint64) uint64 {
	for i := range pat.samples {
		s := &pat.samples[i]
		pass &= (eight(free, cell+s.first) - s.need) & (eight(free, cell+s.best) - s.need) & (eight(free, cell+s.last) - s.need)
		if pass == 0 {
			return 0
		}
	}
	return pass >> 7 * 0x0102040810204080 >> 56 // a product gathers the bits
}

// look searches for candidates in the words before end, among those of a coarse class.
func (g *Grid) look(known *candidates, pat *Pattern, end int) {
	coarse := &g.coarse[pat.coarse.class]
	if known.looked == 0 {
		g.asked = append(g.asked, known, coarse)
	}
	coarse.lookAll(&pat.coarse, end)
	sources := coarse.list[known.sources:]
	if coarse.looked > end {
		n, _ := slices.BinarySearch(sources, int32(end))
		sources = sources[:n]
	}
	known.sources += len(sources)
	known.looked = end
	var found [64]wordCells
	for len(sources) > 0 {
		part := sources[:min(len(found), len(sources))]
		sources = sources[len(part):]
		for _, f := range found[:pat.fine.sift(part, &found)] {
			for cells := f.cells; cells != 0; {
				k := bits.TrailingZeros64(cells)
				known.list = append(known.list, f.word*64+int32(k))
				cells &^= 255 << (k & 63)
			}
		}
	}
}

// wordCells holds some cells of a word.
type wordCells struct {
	cells uint64
	word  int32
}

// sift finds the cells with both sides in at most 64 words, and returns the number of words that
// have any.
func (s *sides) sift(words []int32, found *[64]wordCells) uint {
	n := uint(0)
	for _, w := range words {
		cells := s.left.at(int(w)) & s.right.at(int(w))
		found[n%64] = wordCells{cells, w}
		n += uint(some(cells))
	}
	return n
}

// lookAll records the words before end with cells that have both sides.
func (c *candidates) lookAll(s *sides, end int) {
	c.looked = max(c.looked, 1) // what lies left of word 0 is unknown
	if c.looked >= end {
		return
	}
	n := len(c.list)
	list := slices.Grow(c.list, end-c.looked)
	list = list[:cap(list)]
	for w := c.looked; w < end; w++ {
		list[n] = int32(w)
		n += some(s.left.at(w) & s.right.at(w))
	}
	c.list, c.looked = list[:n], end
}

// some returns 1 if any bit is set, otherwise 0. It replaces branches that would be mispredicted
// and wait for uncached memory.
func some(bits uint64) int { return int((bits | -bits) >> 63) }

// purge drops candidates that are no longer possible, as far as two samples of each side show.
// Their bytes are read next anyway.
func (g *Grid) purge(known *candidates, p *pair) {
	left, right := uint64(g.least[p.leftLevel])*eachByte, uint64(g.least[p.rightLevel])*eachByte
	a, b := inWindow(p.leftAt, 1<<p.leftRun)
	c, d := inWindow(p.rightAt, 1<<p.rightRun)
	q := quick{[4]uint{a, b, c, d}, [4]uint64{left, left, right, right}}
	known.list, known.visits = q.keep(known.list, g.free), 0
}

// keep returns the candidates that pass the quick samples.
func (q *quick) keep(list []int32, free []uint8) []int32 {
	a, b, c, d := q.at[0]%window, q.at[1]%window, q.at[2]%window, q.at[3]%window
	kept := uint(0)
	for _, cell := range list {
		k := uint(uint32(cell - windowLeft))
		near := (*[window + 8]uint8)(free[k : k+window+8 : k+window+8])
		list[kept] = cell
		kept += uint(some((binary.LittleEndian.Uint64(near[a:a+8]) - q.need[0]) & (binary.LittleEndian.Uint64(near[b:b+8]) - q.need[1]) &
			(binary.LittleEndian.Uint64(near[c:c+8]) - q.need[2]) & (binary.LittleEndian.Uint64(near[d:d+8]) - q.need[3]) & highest))
	}
	return list[:kept]
}

// inWindow returns where in a candidate's window an early and a late cell of a run are.
func inWindow(at, run int64) (early, late uint) {
	return uint(windowLeft + at + run/8), uint(windowLeft + at + run - 1 - run/8)
}

// index returns the first candidate not before a cell, searching from i on.
func (c *candidates) index(cell, i int) int {
	if len(c.list) == 0 || int(c.list[0]) >= cell {
		return 0
	}
	if i == 0 || i > len(c.list) || int(c.list[i-1]) >= cell {
		i, _ = slices.BinarySearch(c.list, int32(cell))
	}
	for i < len(c.list) && int(c.list[i]) < cell {
		i++
	}
	return i
}
