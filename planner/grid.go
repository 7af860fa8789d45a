package planner

import "math/bits"

// grid is a coarse view of a timeline that tells quickly where a job cannot
// start. Time is cut into cells; for every cell it keeps, at several levels of
// free nodes, whether that many are free during the whole cell. A step covers
// some cells whole wherever in a given cell the job starts; a start cell is out of
// the question if one of them has too few free nodes. With a bit per cell and
// level, 64 start cells are tried at once.
//
// What the grid lets pass may still be impossible, never the other way round:
// plans are the same with and without it, only faster. Cells that it does not
// know count as free.
type grid struct {
	res      *Timeline
	capacity int
	origin   int64 // second at which cell 0 begins
	shift    uint  // a cell has 1<<shift seconds
	cells    int   // known ones, a multiple of 64
	most     []int64
	level    []uint8 // free level of every cell
	layers   [gridLevels + 1][gridRuns]layer
}

const (
	gridLevels = 32      // level k: at least k/gridLevels of the nodes are free
	gridRuns   = 3       // layer j: in 1, 4 or 8 cells in a row
	gridCells  = 1 << 22 // no more than so many cells
	gridAhead  = 2048    // so many cells are known beyond the last one in use
	gridProbes = 24      // no more than so many probes of a job
	gridSpan   = 48      // with the cells of a group, less than a word
	groupBits  = 2       // a group has 1<<groupBits cells
	groupCells = 1 << groupBits
)

// layer is a bit per cell, and a bit per group of 4 cells: whether one of its
// cells or of the next group's has its bit set.
type layer struct {
	words, near []uint64
	some        []uint64 // a bit per 8 bits of near: whether one of them is set
	cleared     int      // bits of near that are not set: the more, the better a filter
}

// probe says that at a cell offset, relative to the start cell of a job, or at one
// of the span cells after it, a layer's bit must be set.
type probe struct {
	layer  *layer
	offset int // cells
	span   int // cells, at most gridSpan
}

func newGrid(res *Timeline, capacity int, origin, width int64) *grid {
	return &grid{res: res, capacity: capacity, origin: origin, shift: uint(bits.Len64(uint64(max(width, 1))) - 1)}
}

func (g *grid) cell(s int64) int64  { return (s - g.origin) >> g.shift }
func (g *grid) start(c int64) int64 { return g.origin + c<<g.shift }

// levelOf is the level that has at least so many free nodes.
func (g *grid) levelOf(nodes int) int {
	return int(uint64(max(nodes, 0)) * gridLevels / uint64(g.capacity))
}

// probe appends what a step needs that starts after seconds after the start of its
// job, which is anywhere in its cell.
func (g *grid) probe(probes []probe, after int64, step Step) []probe {
	width := int64(1) << g.shift
	first := (after + 2*width - 2) >> g.shift // ceil((after+width-1)/width)
	last := (after + step.Duration) >> g.shift
	level := g.levelOf(step.Nodes)
	if first >= last || level == 0 || last > gridCells || first < -gridCells {
		return probes
	}
	j, run := longestRun(last - first)
	l := &g.layers[level][j]
	for last -= run; ; first += run {
		cell := min(first, last)
		probes = append(probes, probe{l, int(cell), 0})
		if cell == last || len(probes) >= gridProbes {
			return probes
		}
	}
}

// longestRun is the layer with the longest run of at most so many cells.
func longestRun(cells int64) (layer int, run int64) {
	switch {
	case cells >= 8:
		return 2, 8
	case cells >= 4:
		return 1, 4
	}
	return 0, 1
}

// probeAfter appends what a step needs that starts between low and high seconds
// after the pivot.
func (g *grid) probeAfter(probes []probe, low, high int64, step Step) []probe {
	width := int64(1) << g.shift
	first, last := low>>g.shift+1, (high+width-1)>>g.shift+1
	return g.probeSpan(probes, first, last, step.Duration>>g.shift-1, step.Nodes)
}

// probeBefore appends what a step needs that ends between high and low seconds
// before the pivot.
func (g *grid) probeBefore(probes []probe, low, high int64, step Step) []probe {
	width := int64(1) << g.shift
	run := (step.Duration - width + 1) >> g.shift
	return g.probeSpan(probes, -high>>g.shift-run, (width-1-low)>>g.shift-run, run, step.Nodes)
}

func (g *grid) probeSpan(probes []probe, first, last, run int64, nodes int) []probe {
	level := g.levelOf(nodes)
	if run < 1 || level == 0 || last-first > gridSpan || last > gridCells || first < -gridCells || len(probes) >= gridProbes {
		return probes
	}
	j, _ := longestRun(run)
	return append(probes, probe{&g.layers[level][j], int(first), int(last - first)})
}

// extend makes the cells before cell known; they are free at first.
func (g *grid) extend(cell int64) {
	for int64(g.cells) < cell && g.cells < gridCells {
		for k := range g.layers {
			for j := range g.layers[k] {
				l := &g.layers[k][j]
				if len(l.words)%groupCells == 0 {
					l.near = append(l.near, ^uint64(0))
				}
				if len(l.words)%32 == 0 {
					l.some = append(l.some, ^uint64(0))
				}
				l.words = append(l.words, ^uint64(0))
			}
		}
		for range 64 {
			g.level = append(g.level, gridLevels)
		}
		g.cells += 64
	}
}

// update looks again at [start, end), where the timeline has changed.
func (g *grid) update(start, end int64) {
	if end > horizon || g.cell(start) >= gridCells {
		return
	}
	from, to := max(g.cell(start), 0), min(g.cell(end-1)+1, gridCells)
	if from >= to {
		return
	}
	if to > int64(g.cells)-gridAhead/2 {
		g.extend(to + gridAhead) // plans grow at their end: let searches stay among known cells
	}
	g.most = g.most[:0]
	for range to - from {
		g.most = append(g.most, 0)
	}
	g.res.walk(g.start(from), g.start(to), func(a, b int64, nodes int) {
		for c := g.cell(a); c <= g.cell(b-1); c++ {
			g.most[c-from] = max(g.most[c-from], int64(nodes))
		}
	})
	low, high := gridLevels, 0 // levels that changed: low < k ≤ high
	for i, most := range g.most {
		c := int(from) + i
		was, is := int(g.level[c]), g.levelOf(g.capacity-int(most))
		g.level[c] = uint8(is)
		if is == was {
			continue
		}
		bit := uint64(1) << (c % 64)
		for k := is + 1; k <= was; k++ {
			g.layers[k][0].words[c/64] &^= bit
		}
		for k := was + 1; k <= is; k++ {
			g.layers[k][0].words[c/64] |= bit
		}
		low, high = min(low, is, was), max(high, is, was)
	}
	firstWord, lastWord := int(max(from-8, 0))/64, int(to-1)/64
	for k := low + 1; k <= high; k++ {
		g.renew(k, firstWord, lastWord)
	}
}

// renew works out the layers of a level from its first one, for some words.
func (g *grid) renew(k, first, last int) {
	one, four, eight := &g.layers[k][0], &g.layers[k][1], &g.layers[k][2]
	next := word(one.words, last+1)
	next2 := next & (next>>1 | 1<<63)   // two in a row; what is yet further away only
	next4 := next2 & (next2>>2 | 3<<62) // matters to bits that the shifts below drop
	after1, after4, after8 := groups(next), groups(word(four.words, last+1)), groups(word(eight.words, last+1))
	for w := last; w >= first; w-- {
		run := one.words[w]
		run2 := run & (run>>1 | next<<63)
		run4 := run2 & (run2>>2 | next2<<62)
		run8 := run4 & (run4>>4 | next4<<60)
		next, next2, next4 = run, run2, run4
		four.words[w], eight.words[w] = run4, run8
		after1, after4, after8 = one.renewNear(w, after1), four.renewNear(w, after4), eight.renewNear(w, after8)
	}
	if first > 0 {
		one.renewNear(first-1, after1)
		four.renewNear(first-1, after4)
		eight.renewNear(first-1, after8)
	}
}

// renewNear renews the groups of word w, given those of the next word, and gives
// those of w itself.
func (l *layer) renewNear(w int, after uint64) uint64 {
	here := groups(l.words[w])
	at := uint(w%groupCells) * (64 / groupCells)
	const all = 1<<(64/groupCells) - 1
	near := here | here>>1 | after<<(64/groupCells-1)&all
	was := l.near[w/groupCells] >> at & all
	l.near[w/groupCells] ^= (was ^ near) << at
	l.cleared += bits.OnesCount64(was) - bits.OnesCount64(near)
	some := uint64(0)
	if near&0xff != 0 {
		some |= 1
	}
	if near>>8 != 0 {
		some |= 2
	}
	l.some[w/32] = l.some[w/32]&^(3<<(w%32*2)) | some<<(w%32*2)
	return here
}

// groups has a bit for each of the groups of a word that is not empty.
func groups(w uint64) uint64 {
	w |= w >> 1
	w |= w >> 2
	w &= 0x1111111111111111 // and now the 16 bits together
	w = (w | w>>3) & 0x0303030303030303
	w = (w | w>>6) & 0x000f000f000f000f
	w = (w | w>>12) & 0x000000ff000000ff
	return (w | w>>24) & 0xffff
}

// next is the first second ≥ s whose cell passes all probes; if there is none
// before until, it is some second from until on.
func (g *grid) next(s int64, probes []probe, until int64) int64 {
	from := g.cell(s)
	if from < 0 || from >= int64(g.cells) || len(probes) == 0 || probes[0].span > 0 {
		return s
	}
	low, high := 0, 0
	for _, p := range probes {
		low, high = min(low, p.offset), max(high, p.offset+p.span)
	}
	first := int(from >> groupBits)              // groups:
	known := (g.cells-high)>>groupBits - 64 - 64 // up to here no probe leads out of the known cells
	begin := max(first, (63-low)>>groupBits)     // from here on
	exact := probes[:1]
	for len(exact) < len(probes) && probes[len(exact)].span == 0 {
		exact = probes[:len(exact)+1]
	}
	a, b, c := &exact[0], &exact[1%len(exact)], &exact[2%len(exact)]
	last := g.cells >> groupBits
	if until <= horizon {
		last = int(min(int64(last), g.cell(until)>>groupBits+1))
	}
	group := first
	slow := func(end int) (cell int64) {
		for ; group < end; group++ {
			if cell := g.check(group, from, probes, false); cell >= 0 {
				return cell
			}
		}
		return -1
	}
	ahead := a.offset >> groupBits // groups from a start to the best filter's bit
	if cell := slow(min((max(begin, -ahead)+ahead+7)&^7-ahead, last)); cell >= 0 {
		return max(s, g.start(cell))
	}
	// Look at 8 start groups at a time, but only where the best filter has a bit
	// set, and there at three filters together: it is cheaper than to guess which
	// one fails.
	fastEnd := min(known, last)
	for w := (group + ahead) >> 9; group < fastEnd; w++ {
		some := a.layer.some[w]
		if w == (group+ahead)>>9 {
			some &= ^uint64(0) << ((group + ahead) >> 3 & 63)
		}
		for ; some != 0; some &= some - 1 {
			at := (w<<6+bits.TrailingZeros64(some))<<3 - ahead
			if at >= fastEnd {
				break
			}
			near := inside(a.layer.near, at+ahead) & inside(b.layer.near, at+b.offset>>groupBits) &
				inside(c.layer.near, at+c.offset>>groupBits) & 0xff
			if near == 0 {
				continue
			}
			if cell := g.few(at, near, from, probes); cell >= 0 {
				return max(s, g.start(cell))
			}
		}
		group = (w+1)<<9 - ahead
	}
	group = min(group, max(fastEnd, first))
	if cell := slow(last); cell >= 0 {
		return max(s, g.start(cell))
	}
	return max(s, g.start(int64(last)<<groupBits))
}

// few is the first cell that passes all probes in those of the 8 groups from at on
// that are left; -1 if there is none.
func (g *grid) few(at int, left uint64, from int64, probes []probe) int64 {
	for i := 3; i < len(probes) && left != 0; i++ {
		p := &probes[i]
		near := inside(p.layer.near, at+p.offset>>groupBits)
		if p.span > 0 {
			near = spread(near, (p.span+groupCells-1)>>groupBits)
		}
		left &= near
	}
	for ; left != 0; left &= left - 1 {
		if cell := g.check(at+bits.TrailingZeros64(left), from, probes, true); cell >= 0 {
			return cell
		}
	}
	return -1
}

// inside is the 64 bits from bit i on, all in the set.
func inside(set []uint64, i int) uint64 {
	k, by := uint(i)>>6, uint(i)&63
	return set[k]>>by | set[k+1]<<1<<(63-by)
}

// check is the first cell of a group, not before from, that passes all probes; -1
// if none does. No probe leads out of the known cells, or known is false.
func (g *grid) check(group int, from int64, probes []probe, known bool) int64 {
	pass := uint64(1<<groupCells - 1)
	if int64(group) == from>>groupBits {
		pass &= pass << (from % groupCells)
	}
	for i := range probes {
		p := &probes[i]
		var set uint64
		if cell := group<<groupBits + p.offset; known {
			set = inside(p.layer.words, cell)
		} else {
			set = ahead(p.layer.words, cell)
		}
		if p.span > 0 {
			set = spread(set, p.span)
		}
		if pass &= set; pass == 0 {
			return -1
		}
	}
	return int64(group<<groupBits + bits.TrailingZeros64(pass))
}

// spread sets a bit where it or one of the span bits after it is set.
func spread(set uint64, span int) uint64 {
	for by := 1; span > 0; by *= 2 {
		by = min(by, span)
		set |= set >> by
		span -= by
	}
	return set
}

// ahead is the 64 bits from bit i on; bits outside are set.
func ahead(set []uint64, i int) uint64 {
	k, by := i>>6, uint(i&63)
	if uint(k+1) < uint(len(set)) && k >= 0 {
		return set[k]>>by | set[k+1]<<1<<(63-by)
	}
	return word(set, k)>>by | word(set, k+1)<<1<<(63-by)
}

// sortProbes puts the best filters first, but no layer twice before the others.
func sortProbes(probes []probe) {
	for i := 1; i < len(probes); i++ {
		for k := i; k > 0 && probes[k].layer.cleared > probes[k-1].layer.cleared; k-- {
			probes[k], probes[k-1] = probes[k-1], probes[k]
		}
	}
	w := 1
	for i := 1; i < len(probes); i++ {
		if probes[i].layer != probes[w-1].layer {
			probes[w], probes[i] = probes[i], probes[w]
			w++
		}
	}
}

// word is a word of a set; all outside are set.
func word(set []uint64, k int) uint64 {
	if k < 0 || k >= len(set) {
		return ^uint64(0)
	}
	return set[k]
}
