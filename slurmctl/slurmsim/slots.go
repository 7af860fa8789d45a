package slurmsim

import "slices"

// slot is a time, in seconds, with the nodes that are free then.
type slot struct {
	From, To int64
	Free     nodeSet
	Nodes    int  // number of these nodes
	Opens    bool // the next slot has nodes that this one lacks
}

// stretch is the slots that a job would have from a start to its end.
type stretch struct {
	start       int64
	first, next int // from first to before next
	few         int // the last of them with too few nodes; before first if there is none
	hint        int // the first slot of the next start, probably
}

// stretchTo moves a stretch to a start and end. It looks at a slot only once while these get later.
func (b *backfill) stretchTo(s *stretch, start, end int64, nodes int) {
	if start < s.start {
		*s = stretch{few: -1}
	}
	space, first, few := b.Space, s.first, s.few
	if s.hint > first && space[s.hint-1].To <= start {
		first = s.hint
	}
	for first < len(space) && space[first].To <= start {
		first++
	}
	next := max(first, s.next)
	for ; next < len(space) && space[next].From <= end; next++ {
		if space[next].Nodes < nodes {
			few = next
		}
	}
	s.start, s.first, s.next, s.few = start, first, next, few
}

// failing returns the last slot that rules out all starts from the stretch's up to it, because the
// job would lack nodes. It returns -1 if the stretch has enough nodes, which are then in b.free.
func (b *backfill) failing(s *stretch, nodes int) int {
	if s.few >= s.first {
		return s.few
	}
	first := s.first
	b.free = append(b.free[:0], b.all...)
	for i := first; i < s.next; i++ {
		b.free.and(b.Space[i].Free)
	}
	if b.free.count() >= nodes {
		return -1
	}
	b.free = append(b.free[:0], b.all...)
	for stuck := first; stuck < s.next; stuck++ {
		if b.free.and(b.Space[stuck].Free); b.free.count() >= nodes {
			continue
		}
		b.free = append(b.free[:0], b.all...)
		for i := stuck; i > first; i-- {
			if b.free.and(b.Space[i].Free); b.free.count() < nodes {
				return i
			}
		}
		return first
	}
	return -1
}

// opening returns the first slot from from on whose next slot has nodes that it lacks, or -1. It
// looks as far as the scheduler does: one slot beyond end.
func (b *backfill) opening(from int, end int64) int {
	for i := from; i+1 < len(b.Space); i++ {
		if b.Space[i].Opens && (b.whole || !subset(b.all, b.Space[i+1].Free, b.Space[i].Free)) {
			return i
		}
		if b.Space[i].From > end {
			b.GaveUp = true // a later cycle would look further
			break
		}
	}
	return -1
}

// number counts the nodes of slots.
func (b *backfill) number(from, to int) {
	for i := max(from, 0); i < min(to, len(b.Space)); i++ {
		s := &b.Space[i]
		s.Nodes = s.Free.count()
		s.Opens = i+1 < len(b.Space) && !s.Free.holds(b.Space[i+1].Free)
	}
}

// subset reports whether this slot has all nodes that a job could have in the next slot. Then the
// next slot need not be tried.
func subset(all, next, now nodeSet) bool {
	for i := range all {
		if all[i]&next[i]&^now[i] != 0 {
			return false
		}
	}
	return true
}

// clashes reports whether other jobs have these nodes at that time.
func (b *backfill) clashes(set nodeSet, from, to int64) bool {
	for i := range b.Space {
		if s := &b.Space[i]; s.To > from && s.From < to && !s.Free.holds(set) {
			return true
		}
	}
	return false
}

// copied returns a copy of a set that lasts for a cycle.
func (b *backfill) copied(s nodeSet) nodeSet {
	n := len(b.words)
	b.words = append(b.words, s...)
	return nodeSet(b.words[n:len(b.words):len(b.words)])
}

// reserve keeps nodes for a time (_add_reservation).
func (b *backfill) reserve(set nodeSet, from, to int64) {
	from = max(from, b.Space[0].From)
	to = max(to, from+b.Step)
	cut := func(i int, at int64) { // splits slot i there
		rest := b.Space[i]
		rest.From, rest.Free = at, b.copied(rest.Free)
		b.Space[i].To = at
		b.Space = slices.Insert(b.Space, i+1, rest)
		b.Slots++
	}
	i := 0
	for ; i < len(b.Space); i++ {
		if b.Space[i].To > from {
			cut(i, from)
			break
		}
		if b.Space[i].To == from {
			break
		}
	}
	changed := i - 1
	defer func() { b.number(changed, i+2) }()
	for i++; i < len(b.Space); i++ {
		if to < b.Space[i].To {
			cut(i, to)
		}
		b.Space[i].Free.minus(set)
		if to == b.Space[i].To {
			return
		}
	}
}
