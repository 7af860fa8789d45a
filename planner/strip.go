package planner

// strip is a timeline for few changes: two sorted arrays, searched from where the
// last search ended. Below some hundred changes it beats a tree.
type strip struct {
	at   []int64 // seconds at which the number of nodes in use changes, from dawn on
	used []int64 // from then until the next
	here int     // where the last search ended

	newAt, newUsed []int64 // scratch
	until          []int64 // scratch of asOne: starts until which each step fits
}

// occupancy is what fitting asks of a resource EP.
type occupancy interface {
	EarliestFree(from int64, nodes int, duration int64, capacity int) int64
	firstAtMost(from int64, limit int) int64
	firstAbove(t0, t1 int64, limit int) int64
	lastAbove(t0, t1 int64, limit int) int64
}

// reset has the given nodes in use, and room for so many changes more.
func (s *strip) reset(busy []Busy, changes int) {
	if room := 2*len(busy) + changes + 1; cap(s.newAt) < room {
		memory := make([]int64, 4*room)
		s.at, s.used = memory[0:0:room], memory[room:room:2*room]
		s.newAt, s.newUsed = memory[2*room:3*room:3*room], memory[3*room:]
	}
	s.at, s.used, s.here = s.at[:0], s.used[:0], 0
	s.at, s.used = append(s.at, dawn), append(s.used, 0)
	if len(busy) == 0 {
		return
	}
	for _, b := range (Problem{Busy: busy}).Timeline().Steps() {
		if last := len(s.at) - 1; s.at[last] == b.Start {
			s.used[last] = int64(b.Nodes)
		} else {
			s.at, s.used = append(s.at, b.Start), append(s.used, int64(b.Nodes))
		}
		if b.End != Forever {
			s.at, s.used = append(s.at, b.End), append(s.used, 0)
		}
	}
}

// index is the stretch at second t.
func (s *strip) index(t int64) int {
	i := s.here
	for s.at[i] > t {
		i--
	}
	for i+1 < len(s.at) && s.at[i+1] <= t {
		i++
	}
	s.here = i
	return i
}

// end is where stretch i ends.
func (s *strip) end(i int) int64 {
	if i+1 < len(s.at) {
		return s.at[i+1]
	}
	return Forever
}

// EarliestFree is Timeline.EarliestFree.
func (s *strip) EarliestFree(from int64, nodes int, duration int64, capacity int) int64 {
	limit := int64(capacity - nodes)
	for i := s.index(from); ; i++ {
		if s.used[i] > limit {
			if from = s.end(i); from == Forever {
				return Forever
			}
		} else if end := s.end(i); end == Forever || end-duration >= from {
			return from
		}
	}
}

func (s *strip) firstAtMost(from int64, limit int) int64 {
	for i := s.index(from); i < len(s.at); i++ {
		if s.used[i] <= int64(limit) {
			return max(s.at[i], from)
		}
	}
	return Forever
}

func (s *strip) firstAbove(t0, t1 int64, limit int) int64 {
	if t0 >= t1 {
		return Forever
	}
	for i := s.index(t0); i < len(s.at) && s.at[i] < t1; i++ {
		if s.used[i] > int64(limit) {
			return max(s.at[i], t0)
		}
	}
	return Forever
}

func (s *strip) lastAbove(t0, t1 int64, limit int) int64 {
	last := t0
	if t0 >= t1 {
		return last
	}
	for i := s.index(t0); i < len(s.at) && s.at[i] < t1; i++ {
		if s.used[i] > int64(limit) {
			last = s.end(i)
		}
	}
	return min(last, t1)
}

// add puts a scheduled EP in use.
func (s *strip) add(p Placement) {
	first, last := s.index(p.Start), s.index(p.End())
	s.here = first
	m := mergeSteps(s.at[first:last+1], s.used[first:last+1], p, 1, s.newAt, s.newUsed)
	s.at = splice(s.at, first, last+1, s.newAt[:m])
	s.used = splice(s.used, first, last+1, s.newUsed[:m])
}

// splice puts new values in place of those from i to before k.
func splice(list []int64, i, k int, values []int64) []int64 {
	size := len(list) + len(values) - (k - i)
	if size <= cap(list) {
		old := len(list)
		list = list[:max(size, old)]
		copy(list[i+len(values):], list[k:old])
		copy(list[i:], values)
		return list[:size]
	}
	return append(append(append(make([]int64, 0, 2*size), list[:i]...), values...), list[k:]...)
}

// mergeSteps adds a scheduled EP, times sign, to stretches that begin at the
// seconds at, the first of them at or before the EP's start and the last of them
// the one at its end. It writes the new stretches and gives their number, at most
// len(p.Steps)+1 more.
func mergeSteps(at, used []int64, p Placement, sign int64, newAt, newUsed []int64) int {
	i, m := 0, 0
	base := used[0] // in use by others
	bound, added := p.Start, int64(0)
	for k := 0; ; k++ {
		for i < len(at) && at[i] < bound {
			base = used[i]
			newAt[m], newUsed[m] = at[i], base+added
			i++
			m++
		}
		if i < len(at) && at[i] == bound {
			base = used[i]
			i++
		}
		added = 0
		if k < len(p.Steps) {
			added = sign * int64(p.Steps[k].Nodes)
		}
		if m == 0 || newUsed[m-1] != base+added {
			newAt[m], newUsed[m] = bound, base+added
			m++
		}
		if k == len(p.Steps) {
			return m
		}
		bound += p.Steps[k].Duration
	}
}

// asOne places a profile whose steps move together, given when each starts after
// the first and the order in which to try them; it is fitter.asOne on
// flat arrays.
func (s *strip) asOne(capacity int, p Profile, after []int64, order []int, start int64) int64 {
	at, used := s.at, s.used
	s.until = s.until[:0]
	for range p {
		s.until = append(s.until, dawn)
	}
	here := 0 // where the last look was: the next is not far
	for here+1 < len(at) && at[here+1] <= start {
		if here++; here == 4 { // not near the begin
			here = s.index(start)
			break
		}
	}
search:
	for {
		for _, k := range order {
			if start <= s.until[k] {
				continue // known to fit
			}
			from, limit := start+after[k], int64(capacity-p[k].Nodes)
			i := here
			for at[i] > from {
				i--
			}
			for i+1 < len(at) && at[i+1] <= from {
				i++
			}
			here = i
			last := -1
			for until := from + p[k].Duration; i < len(at) && at[i] < until; i++ {
				if used[i] > limit {
					last = i
				}
			}
			if last < 0 {
				s.until[k] = Forever
				if i < len(at) {
					s.until[k] = at[i] - p[k].Duration - after[k]
				}
				continue
			}
			for last++; last < len(at) && used[last] > limit; last++ {
			}
			if last == len(at) {
				return Forever
			}
			start = at[last] - after[k]
			here = last
			continue search
		}
		return start
	}
}
