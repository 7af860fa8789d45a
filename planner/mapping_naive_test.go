package planner

import (
	"cmp"
	"math"
	"slices"

	"github.com/evoslurm/evoslurm/planner/internal/exact"
)

// naiveMapper maps like MapNodes, but looks at all nodes and sorts all free ones at every growth.
type naiveMapper struct {
	*mapper // only for the unchanged releases and earliest
	busy    [][]NodeBusy
	owner   []int // job that holds the node, or free
}

func naiveMapNodes(nodes int, busy []NodeBusy, jobs []MappedJob) ([][][]int, error) {
	all, err := newMapper(nodes, busy, jobs)
	if err != nil {
		return nil, err
	}
	m := naiveMapper{mapper: all, owner: slices.Repeat([]int{free}, nodes)}
	m.busy, _ = busyByNode(nodes, busy)
	for j, job := range jobs {
		for _, n := range job.Held {
			m.owner[n] = j
		}
	}
	for _, e := range m.events() {
		held, steps := m.held[e.job], jobs[e.job].Steps
		switch {
		case e.step < len(steps) && len(held) < steps[e.step].Nodes:
			chosen := m.grow(e)
			if chosen == nil {
				return nil, &MapError{Job: e.job, Step: e.step, At: e.at, Until: e.at + 1, Node: -1}
			}
			held = slices.Concat(held, chosen)
		case e.step < len(steps):
			held = m.freed(e)[len(held)-steps[e.step].Nodes:]
			m.shrunk[e.job] = m.shrunk[e.job] || len(held) < len(m.held[e.job])
		default:
			held = nil
		}
		for n, j := range m.owner {
			if slices.Contains(held, n) {
				m.owner[n] = e.job
			} else if j == e.job {
				m.owner[n] = free
			}
		}
		m.held[e.job] = slices.Sorted(slices.Values(held))
		if e.step == len(steps) {
			continue
		}
		if err := m.lasts(e); err != nil {
			return nil, err
		}
		m.result[e.job][e.step] = m.held[e.job]
	}
	return m.result, nil
}

// next returns the node's current or next busy interval at second t.
func (m naiveMapper) next(n int, t int64) NodeBusy {
	for _, b := range m.busy[n] {
		if b.End > t {
			return b
		}
	}
	return NodeBusy{n, Forever, Forever}
}

func (m naiveMapper) candidate(n int, e boundary) candidate {
	c := candidate{n, m.next(n, e.at).Start, 1}
	if slices.Contains(m.jobs[e.job].Prefer, n) {
		c.rank = 0
	} else if slices.ContainsFunc(m.jobs, func(j MappedJob) bool { return slices.Contains(j.Prefer, n) }) {
		c.rank = 2
	}
	return c
}

// candidates returns the free nodes, tightest windows first.
func (m naiveMapper) candidates(e boundary) (all []candidate) {
	for n, owner := range m.owner {
		if c := m.candidate(n, e); owner == free && c.window > e.at {
			all = append(all, c)
		}
	}
	slices.SortFunc(all, func(a, b candidate) int { return cmp.Or(cmp.Compare(a.window, b.window), a.order(b)) })
	return all
}

func (m naiveMapper) grow(e boundary) []int {
	all := m.candidates(e)
	missing := m.jobs[e.job].Steps[e.step].Nodes - len(m.held[e.job])
	open, ok := m.open(e)
	chosen := []int(nil)
	if ok {
		chosen = tightest(all, open)
	}
	if chosen == nil {
		if missing > len(all) {
			return nil
		}
		longest := slices.Clone(all)
		slices.SortFunc(longest, func(a, b candidate) int { return cmp.Or(cmp.Compare(b.window, a.window), a.order(b)) })
		for _, c := range longest[:missing] {
			chosen = append(chosen, c.node)
		}
	}
	if m.driver[e.job] == Lowest {
		end := m.jobs[e.job].End()
		lasting := slices.DeleteFunc(slices.Clone(all), func(c candidate) bool { return c.window < end })
		if m.next(slices.Min(chosen), e.at).Start < end && len(lasting) > 0 && ok {
			lowest := slices.MinFunc(lasting, candidate.order).node
			above := slices.DeleteFunc(slices.Clone(all), func(c candidate) bool { return c.node <= lowest })
			if others := tightest(above, open[1:]); others != nil {
				chosen = append(others, lowest)
			}
		}
		m.driver[e.job] = slices.Min(chosen)
	}
	return chosen
}

// tightest returns each release the first candidate that lasts until then; nil if there is none.
func tightest(all []candidate, open []int64) []int {
	chosen := []int{}
	for _, until := range open {
		i := slices.IndexFunc(all, func(c candidate) bool { return c.window >= until })
		if i < 0 {
			return nil
		}
		chosen = append(chosen, all[i].node)
		all = slices.Delete(slices.Clone(all), i, i+1)
	}
	return chosen
}

// open returns the releases that the held nodes leave open, descending.
func (m naiveMapper) open(e boundary) ([]int64, bool) {
	until := slices.Clone(m.releases(e.job, e.step))
	for _, c := range m.windows(e) {
		i := slices.IndexFunc(until, func(u int64) bool { return u <= c.window || c.rank > 0 })
		if i < 0 {
			return nil, false
		}
		until = slices.Delete(until, i, i+1)
	}
	return until, true
}

// windows returns a job's nodes by their windows, the driver last.
func (m naiveMapper) windows(e boundary) (held []candidate) {
	for _, n := range m.held[e.job] {
		c := candidate{node: n, window: m.next(n, e.at).Start}
		if n == m.driver[e.job] {
			c.rank = 1
		}
		held = append(held, c)
	}
	slices.SortFunc(held, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(a.window, b.window), cmp.Compare(a.node, b.node))
	})
	return held
}

func (m naiveMapper) lasts(e boundary) error {
	until := m.earliest(e.job, e.step)
	for i, c := range m.windows(e) {
		if c.rank > 0 {
			until[i] = m.jobs[e.job].End()
		}
		if c.window < until[i] {
			b := m.next(c.node, e.at)
			return &MapError{Job: e.job, Step: e.step, At: e.at, Until: until[i], Node: c.node, Start: b.Start, End: b.End}
		}
	}
	return nil
}

// freed returns a job's nodes in the order in which it frees them.
func (m naiveMapper) freed(e boundary) (nodes []int) {
	var order []candidate
	for _, n := range m.held[e.job] {
		c := m.candidate(n, e)
		if !m.shrunk[e.job] && slices.Contains(m.jobs[e.job].Release, n) {
			c.window = exact.Dawn
		}
		if n == m.driver[e.job] {
			c.window, c.rank = Forever, math.MinInt
		}
		order = append(order, c)
	}
	slices.SortFunc(order, func(a, b candidate) int { return cmp.Or(cmp.Compare(a.window, b.window), b.order(a)) })
	for _, c := range order {
		nodes = append(nodes, c.node)
	}
	return nodes
}
