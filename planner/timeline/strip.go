package timeline

import (
	"slices"

	"github.com/evoslurm/evoslurm/planner/internal/exact"
	"github.com/evoslurm/evoslurm/planner/profile"
)

// Strip is a timeline for few changes: two sorted arrays, searched from where the
// last search ended. Below some hundred changes it beats a tree.
type Strip struct {
	at   []int64 // seconds at which the number of nodes in use changes, from dawn on, and Forever
	used []int64 // from then until the next
	here int     // where the last search ended
}

// Reset puts the given nodes in use (spans in time order, disjoint), with room for that many more
// changes.
func (s *Strip) Reset(busy []Span, changes int) {
	if room := 2*len(busy) + changes + 2; cap(s.at) < room {
		memory := make([]int64, 2*room)
		s.at, s.used = memory[:0:room], memory[room:room:2*room]
	}
	s.at, s.used, s.here = append(s.at[:0], exact.Dawn), append(s.used[:0], 0), 0
	for _, b := range busy {
		if last := len(s.at) - 1; s.at[last] == b.Start {
			s.used[last] = int64(b.Nodes)
		} else {
			s.at, s.used = append(s.at, b.Start), append(s.used, int64(b.Nodes))
		}
		if b.End != exact.Forever {
			s.at, s.used = append(s.at, b.End), append(s.used, 0)
		}
	}
	s.at = append(s.at, exact.Forever)
}

// index returns the stretch at second t.
func (s *Strip) index(t int64) int {
	i := s.here
	for s.at[i] > t {
		i--
	}
	for s.at[i+1] <= t {
		i++
	}
	s.here = i
	return i
}

// EarliestFree is Timeline.EarliestFree.
func (s *Strip) EarliestFree(from int64, nodes int, duration int64, capacity int) int64 {
	limit := int64(capacity - nodes)
	for i := s.index(from); ; i++ {
		if s.used[i] > limit {
			if from = s.at[i+1]; from == exact.Forever {
				return exact.Forever
			}
		} else if end := s.at[i+1]; end == exact.Forever || end-duration >= from {
			return from
		}
	}
}

func (s *Strip) FirstAtMost(from int64, limit int) int64 {
	for i := s.index(from); i < len(s.used); i++ {
		if s.used[i] <= int64(limit) {
			return max(s.at[i], from)
		}
	}
	return exact.Forever
}

func (s *Strip) FirstAbove(t0, t1 int64, limit int) int64 {
	if t0 >= t1 {
		return exact.Forever
	}
	for i := s.index(t0); i < len(s.used) && s.at[i] < t1; i++ {
		if s.used[i] > int64(limit) {
			return max(s.at[i], t0)
		}
	}
	return exact.Forever
}

func (s *Strip) LastAbove(t0, t1 int64, limit int) int64 {
	last := t0
	if t0 >= t1 {
		return last
	}
	for i := s.index(t0); i < len(s.used) && s.at[i] < t1; i++ {
		if s.used[i] > int64(limit) {
			last = s.at[i+1]
		}
	}
	return min(last, t1)
}

// Add puts a scheduled EP in use.
func (s *Strip) Add(p profile.Placement) {
	first := s.index(p.Start)
	// Count the changes that are new, and find the stretch at the end.
	last, bound, more := first, p.Start, 0
	for k := 0; ; k++ {
		for s.at[last+1] <= bound {
			last++
		}
		if s.at[last] != bound {
			more++
		}
		if k == len(p.Steps) {
			break
		}
		bound += p.Steps[k].Duration
	}
	// Move what comes after, and write the rest from behind.
	at, used := slices.Grow(s.at, more)[:len(s.at)+more], slices.Grow(s.used, more)[:len(s.used)+more]
	s.at, s.used = at, used
	copy(at[last+1+more:], at[last+1:])
	copy(used[last+1+more:], used[last+1:])
	i, to, added := last, last+more, int64(0)
	for k := len(p.Steps); ; k-- {
		for at[i] > bound {
			at[to], used[to] = at[i], used[i]+added
			i--
			to--
		}
		at[to], used[to] = bound, used[i]+added
		to--
		if at[i] == bound {
			i--
		}
		if k == 0 {
			return
		}
		added = int64(p.Steps[k-1].Nodes)
		bound -= p.Steps[k-1].Duration
	}
}

// AsOne returns the first second ≥ start at which a profile fits whose steps move together.
// Windows of the hardest step are looked for, and in each the other steps are tried.
func (s *Strip) AsOne(capacity int, p profile.Profile, start int64) int64 {
	at, used := s.at[:len(s.used)+1], s.used
	hardest, after, sum := 0, int64(0), int64(0) // it starts after seconds after the first
	for i := range p {
		if p[i].Nodes > p[hardest].Nodes {
			hardest, after = i, sum
		}
		sum += p[i].Duration
	}
	limit, duration := int64(capacity-p[hardest].Nodes), p[hardest].Duration
	from := start + after
	window := 0 // the stretch at from
	if at[s.here] <= from {
		window = s.here
	}
	for at[window+1] <= from {
		window++
	}
	for {
		for ; window < len(used); window++ {
			end := at[window+1]
			if used[window] > limit {
				from = end
			}
			if end-duration >= from {
				break
			}
		}
		if window == len(used) {
			return exact.Forever
		}
		if start = from - after; start > exact.Horizon {
			return exact.Forever
		}
		first := window // the stretch at start
		for at[first] > start {
			first--
		}
		possible := s.asOneAt(capacity, p, first, start)
		if possible == start {
			s.here = first
			return start
		}
		if possible > exact.Horizon {
			return exact.Forever
		}
		from = possible + after
		for at[window+1] <= from {
			window++
		}
	}
}

// asOneAt is Timeline.AsOne, given the stretch at start; it looks no further than the
// first step that does not fit.
func (s *Strip) asOneAt(capacity int, p profile.Profile, i int, start int64) int64 {
	at, used := s.at[:len(s.used)+1], s.used
	earliest, after := start, int64(0)
	for _, step := range p {
		limit := int64(capacity - step.Nodes)
		end := start + after + step.Duration
		for {
			// Branches that cannot be foreseen cost more than all the rest: there are none
			// for what is free.
			until := at[i+1]
			possible := until - after
			if used[i] <= limit {
				possible = start
			}
			earliest = max(earliest, possible)
			if until >= end {
				if until == end {
					i++
				}
				break
			}
			i++
		}
		if earliest > start {
			return earliest
		}
		after += step.Duration
	}
	return start
}
