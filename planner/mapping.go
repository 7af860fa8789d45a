package planner

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// NodeBusy is a node that others use during [Start, End): a running job, a
// reservation, an outage.
type NodeBusy struct {
	Node       int   // 0 … nodes-1
	Start, End int64 // seconds; End Forever: without end
}

// MappedJob is a placed job for which node IDs are to be found.
type MappedJob struct {
	Placement
	Held    []int // nodes that it holds already at Start
	Driver  int   // the node that is never freed before the end; -1: none; or Lowest
	Prefer  []int // taken first when otherwise equal, to keep plans stable
	Release []int // freed first at the first shrink: the application's choice
}

// Lowest as a driver is the lowest of the nodes that the job will start on: where
// Slurm runs its batch script.
const Lowest = -2

// MapError says that a job finds no nodes that stay free for as long as it needs
// them, though there are enough at every single second.
type MapError struct {
	Job, Step  int   // indices from 0
	At, Until  int64 // seconds from and until which the nodes are needed
	Node       int   // one that is free for too short a time; -1: there are simply too few nodes
	Start, End int64 // the busy interval of that node that gets in the way
}

func (e *MapError) Error() string {
	if e.Node < 0 {
		return fmt.Sprintf("job %d, step %d: too few free nodes at second %d", e.Job+1, e.Step+1, e.At)
	}
	return fmt.Sprintf("job %d, step %d: node %d, wanted during [%d, %d), is busy during [%d, %d)",
		e.Job+1, e.Step+1, e.Node, e.At, e.Until, e.Start, e.End)
}

// MapNodes turns node counts into node IDs (RR-7205, Algorithm 1): for every job
// and every step the sorted IDs of its nodes. It keeps RR-7205's conditions: every
// step has as many nodes as placed (C2), no node is in use twice (C3), and a job
// gives up only what it chooses: a growth keeps all nodes, a shrink keeps a
// subset with the driver (C4).
//
// It goes through the boundaries in time order, releases first. The report takes
// any free nodes; here nodes have a future, so a growth takes those whose free
// window is the tightest that lasts for as long as the node will be held, and a
// shrink frees those whose window ends first.
//
// A job whose Held nodes clash with busy, or that finds too few nodes, gives a
// *MapError; malformed input another error. With B boundaries, n nodes and b busy
// intervals it takes O(b log b + B·n log n). Equal input gives equal output.
func MapNodes(nodes int, busy []NodeBusy, jobs []MappedJob) ([][][]int, error) {
	return MapNodesOn(nil, nodes, busy, jobs)
}

// MapNodesOn is MapNodes on a cluster where switches[n] is the (leaf) switch of
// node n: among nodes that are otherwise equal, a growth takes those that let the
// job span few switches, and a shrink gives up the switches where it has fewest.
func MapNodesOn(switches []int, nodes int, busy []NodeBusy, jobs []MappedJob) ([][][]int, error) {
	if switches != nil && len(switches) != nodes {
		return nil, fmt.Errorf("switches of %d nodes, there are %d", len(switches), nodes)
	}
	m, err := newMapper(nodes, busy, jobs)
	if err != nil {
		return nil, err
	}
	m.switches = switches
	for _, e := range m.events() {
		if e.step < len(jobs[e.job].Steps) && len(m.held[e.job]) < jobs[e.job].Steps[e.step].Nodes {
			err = m.grow(e)
		} else {
			err = m.shrink(e)
		}
		if err != nil {
			return nil, err
		}
		if e.step < len(jobs[e.job].Steps) {
			m.result[e.job][e.step] = slices.Sorted(slices.Values(m.held[e.job]))
		}
	}
	return m.result, nil
}

const free = -1 // owner of a node that no job holds

type mapper struct {
	jobs   []MappedJob
	busy   [][]NodeBusy // per node, ascending, disjoint
	owner  []int        // job that holds the node, or free
	wanted []int        // job that prefers the node, or free
	held   [][]int      // nodes of every job
	driver []int        // of every job; Lowest until it has started
	shrunk []bool       // the job has had its first shrink
	bounds [][]int64    // Boundaries of every job
	result [][][]int

	switches   []int       // of every node; nil: not known
	candidates []candidate // scratch
}

// candidate is a node with the second until which it is free.
type candidate struct {
	node   int
	window int64
	rank   int // the smaller, the sooner taken
	apart  int // the smaller, the sooner taken among equal ranks
}

// boundary is the begin of a job's step, or its end (step is the number of steps).
type boundary struct {
	at        int64
	job, step int
	grows     bool
}

func newMapper(nodes int, busy []NodeBusy, jobs []MappedJob) (*mapper, error) {
	m := &mapper{
		jobs:   jobs,
		owner:  make([]int, nodes),
		wanted: make([]int, nodes),
		held:   make([][]int, len(jobs)),
		driver: make([]int, len(jobs)),
		shrunk: make([]bool, len(jobs)),
		bounds: make([][]int64, len(jobs)),
		result: make([][][]int, len(jobs)),
	}
	for n := range nodes {
		m.owner[n], m.wanted[n] = free, free
	}
	check := func(n int) error {
		if n < 0 || n >= nodes {
			return fmt.Errorf("node %d is not within 0 … %d", n, nodes-1)
		}
		return nil
	}
	var err error
	if m.busy, err = busyByNode(nodes, busy); err != nil {
		return nil, err
	}
	for j, job := range jobs {
		m.bounds[j] = job.Boundaries()
		m.driver[j] = job.Driver
		m.result[j] = make([][]int, len(job.Steps))
		for _, n := range job.Held {
			if err := check(n); err != nil {
				return nil, fmt.Errorf("job %d holds: %w", j+1, err)
			}
			if m.owner[n] != free {
				return nil, fmt.Errorf("job %d holds node %d, which job %d holds too", j+1, n, m.owner[n]+1)
			}
			m.owner[n] = j
		}
		m.held[j] = slices.Clone(job.Held)
		for _, n := range job.Prefer {
			if err := check(n); err != nil {
				return nil, fmt.Errorf("job %d prefers: %w", j+1, err)
			}
			if m.wanted[n] == free {
				m.wanted[n] = j
			}
		}
	}
	return m, nil
}

// busyByNode sorts intervals by node and time and joins those that touch.
func busyByNode(nodes int, busy []NodeBusy) ([][]NodeBusy, error) {
	byNode := make([][]NodeBusy, nodes)
	for _, b := range busy {
		if b.Node < 0 || b.Node >= nodes {
			return nil, fmt.Errorf("busy node %d is not within 0 … %d", b.Node, nodes-1)
		}
		if b.Start < b.End {
			byNode[b.Node] = append(byNode[b.Node], b)
		}
	}
	for n, list := range byNode {
		slices.SortFunc(list, func(a, b NodeBusy) int {
			return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.End, b.End))
		})
		joined := list[:0]
		for _, b := range list {
			if k := len(joined) - 1; k >= 0 && b.Start <= joined[k].End {
				joined[k].End = max(joined[k].End, b.End)
			} else {
				joined = append(joined, b)
			}
		}
		byNode[n] = joined
	}
	return byNode, nil
}

// events lists all boundaries in time order, releases before acquisitions, then
// in list order.
func (m *mapper) events() []boundary {
	var events []boundary
	for j, job := range m.jobs {
		before := len(job.Held)
		for k := range len(job.Steps) + 1 {
			after := 0
			if k < len(job.Steps) {
				after = job.Steps[k].Nodes
			}
			events = append(events, boundary{at: m.bounds[j][k], job: j, step: k, grows: after > before})
			before = after
		}
	}
	slices.SortStableFunc(events, func(a, b boundary) int {
		if c := cmp.Compare(a.at, b.at); c != 0 || a.grows == b.grows {
			return c
		}
		if a.grows {
			return 1
		}
		return -1
	})
	return events
}

// next is the busy interval of node n that is going on at second t, or the next
// one. There is none where the second result is false.
func (m *mapper) next(n int, t int64) (NodeBusy, bool) {
	list := m.busy[n]
	i, _ := slices.BinarySearchFunc(list, t, func(b NodeBusy, t int64) int {
		if b.End <= t {
			return -1
		}
		return 1
	})
	if i == len(list) {
		return NodeBusy{}, false
	}
	return list[i], true
}

// window is the second until which node n is not busy, t or earlier if it is at t.
func (m *mapper) window(n int, t int64) int64 {
	if b, ok := m.next(n, t); ok {
		return b.Start
	}
	return Forever
}

// releases gives, for the nodes of a job's step, until when each is held if the
// job frees the latest taken first: descending, one per node.
func (m *mapper) releases(j, step int) []int64 {
	steps, bounds := m.jobs[j].Steps, m.bounds[j]
	count := steps[step].Nodes
	until := make([]int64, count)
	low := count
	for k := step + 1; low > 0; k++ {
		after := 0
		if k < len(steps) {
			after = steps[k].Nodes
		}
		for ; low > after; low-- {
			until[low-1] = bounds[k]
		}
	}
	return until
}

// earliest gives, ascending, until when each of a step's nodes is held at least:
// as releases, but with nodes that were taken later staying for those of now.
func (m *mapper) earliest(j, step int) []int64 {
	steps, bounds := m.jobs[j].Steps, m.bounds[j]
	until := make([]int64, 0, steps[step].Nodes)
	for k := step + 1; len(until) < cap(until); k++ {
		after := 0
		if k < len(steps) {
			after = steps[k].Nodes
		}
		for n := steps[k-1].Nodes; n > after && len(until) < cap(until); n-- {
			until = append(until, bounds[k])
		}
	}
	return until
}

// grow takes nodes for step e.step of job e.job until it has as many as placed.
func (m *mapper) grow(e boundary) error {
	m.candidates = m.candidates[:0]
	for n, owner := range m.owner {
		if owner != free {
			continue
		}
		if w := m.window(n, e.at); w > e.at {
			m.candidates = append(m.candidates, candidate{node: n, window: w, rank: m.rank(n, e.job)})
		}
	}
	m.gather(e)
	slices.SortFunc(m.candidates, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(a.window, b.window), a.order(b))
	})
	chosen, ok := m.tightest(e)
	if !ok {
		chosen, ok = m.longest(e)
	}
	if !ok {
		return &MapError{Job: e.job, Step: e.step, At: e.at, Until: e.at + 1, Node: -1}
	}
	if m.driver[e.job] == Lowest {
		chosen = m.aboveDriver(e, chosen)
		m.driver[e.job] = slices.Min(chosen)
	}
	for _, n := range chosen {
		m.owner[n] = e.job
	}
	m.held[e.job] = append(m.held[e.job], chosen...)
	return m.lasts(e)
}

// aboveDriver makes sure that the lowest of the nodes that a job starts on is free
// until its end: it is chosen anew if not, and the others above it. The choice stays
// where that cannot be.
func (m *mapper) aboveDriver(e boundary, chosen []int) []int {
	end := m.bounds[e.job][len(m.jobs[e.job].Steps)]
	if m.window(slices.Min(chosen), e.at) >= end {
		return chosen
	}
	var driver *candidate
	for i := range m.candidates {
		if c := &m.candidates[i]; c.window >= end && (driver == nil || cmp.Or(cmp.Compare(c.rank, driver.rank), cmp.Compare(c.node, driver.node)) < 0) {
			driver = c
		}
	}
	if driver == nil {
		return chosen
	}
	lowest := driver.node
	m.candidates = slices.DeleteFunc(m.candidates, func(c candidate) bool { return c.node <= lowest })
	slices.SortFunc(m.candidates, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(a.window, b.window), a.order(b))
	})
	open, ok := m.open(e)
	if !ok {
		return chosen
	}
	others, ok := m.tightestFor(open[1:]) // the driver is freed last
	if !ok {
		return chosen
	}
	return append(others, lowest)
}

// tightest chooses candidates so that the nodes taken last can be freed first.
// From the latest release to the earliest, each gets the tightest window that
// suffices: what is left over suffices for the following ones too.
func (m *mapper) tightest(e boundary) (chosen []int, ok bool) {
	open, ok := m.open(e)
	if !ok {
		return nil, false
	}
	return m.tightestFor(open)
}

// tightestFor chooses one candidate for each release; they are descending.
func (m *mapper) tightestFor(open []int64) (chosen []int, ok bool) {
	taken := make([]bool, len(m.candidates))
	i := 0
	for k, until := range open {
		if k == 0 || until != open[k-1] {
			i, _ = slices.BinarySearchFunc(m.candidates, until, func(c candidate, until int64) int {
				if c.window < until {
					return -1
				}
				return 1
			})
		}
		for i < len(taken) && taken[i] {
			i++
		}
		if i == len(taken) {
			return nil, false
		}
		taken[i] = true
		chosen = append(chosen, m.candidates[i].node)
	}
	return chosen, true
}

// longest chooses the candidates with the longest windows.
func (m *mapper) longest(e boundary) (chosen []int, ok bool) {
	missing := m.jobs[e.job].Steps[e.step].Nodes - len(m.held[e.job])
	if missing > len(m.candidates) {
		return nil, false
	}
	slices.SortFunc(m.candidates, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(b.window, a.window), a.order(b))
	})
	for _, c := range m.candidates[:missing] {
		chosen = append(chosen, c.node)
	}
	return chosen, true
}

// order compares nodes with equal windows.
func (a candidate) order(b candidate) int {
	return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(a.apart, b.apart), cmp.Compare(a.node, b.node))
}

// gather orders the candidates by switch: first those where e's job has nodes, most
// first; then, until enough are found, the switch with the fewest candidates that
// are enough, or else the one with the most.
func (m *mapper) gather(e boundary) {
	if m.switches == nil {
		return
	}
	held, found := make(map[int]int), make(map[int]int)
	for _, n := range m.held[e.job] {
		held[m.switches[n]]++
	}
	for _, c := range m.candidates {
		found[m.switches[c.node]]++
	}
	missing := m.jobs[e.job].Steps[e.step].Nodes - len(m.held[e.job])
	apart := make(map[int]int)
	for len(apart) < len(found) {
		best, any := 0, false
		for s := range found {
			if _, done := apart[s]; !done && (!any || sooner(s, best, held, found, missing)) {
				best, any = s, true
			}
		}
		missing -= found[best]
		apart[best] = len(apart)
	}
	for i := range m.candidates {
		m.candidates[i].apart = apart[m.switches[m.candidates[i].node]]
	}
}

// sooner tells whether to take nodes of switch a before those of switch b.
func sooner(a, b int, held, found map[int]int, missing int) bool {
	enoughA, enoughB := found[a] >= missing, found[b] >= missing
	switch {
	case held[a] != held[b]:
		return held[a] > held[b]
	case enoughA != enoughB:
		return enoughA
	case found[a] != found[b]:
		return (found[a] < found[b]) == enoughA
	}
	return a < b
}

// open are the releases of e's step that the nodes held already leave open,
// descending; false if one of those is free for less than any release.
func (m *mapper) open(e boundary) ([]int64, bool) {
	until := m.releases(e.job, e.step)
	// The shortest window first, each takes the latest release that it can last to.
	for _, c := range m.windows(e) {
		if c.node == m.driver[e.job] {
			c.window = Forever // lasts looks after it
		}
		i := slices.IndexFunc(until, func(u int64) bool { return u <= c.window })
		if i < 0 {
			return nil, false
		}
		until = slices.Delete(until, i, i+1)
	}
	return until, true
}

// windows are the nodes that e's job holds, the driver last and the others by
// the second until which they are free.
func (m *mapper) windows(e boundary) []candidate {
	held := make([]candidate, 0, len(m.held[e.job]))
	for _, n := range m.held[e.job] {
		c := candidate{node: n, window: m.window(n, e.at)}
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

// lasts checks that all nodes of e's job stay free until the job can free them.
func (m *mapper) lasts(e boundary) error {
	until := m.earliest(e.job, e.step)
	for i, c := range m.windows(e) {
		if c.rank > 0 {
			until[i] = m.bounds[e.job][len(m.jobs[e.job].Steps)]
		}
		if c.window < until[i] {
			b, _ := m.next(c.node, e.at)
			return &MapError{Job: e.job, Step: e.step, At: e.at, Until: until[i], Node: c.node, Start: b.Start, End: b.End}
		}
	}
	return nil
}

// rank orders nodes with equal windows: those that the job prefers, those that
// nobody does, those that another job prefers.
func (m *mapper) rank(n, job int) int {
	switch m.wanted[n] {
	case job:
		return 0
	case free:
		return 1
	}
	if slices.Contains(m.jobs[job].Prefer, n) {
		return 0
	}
	return 2
}

// shrink frees nodes until the job has as many as its step e.step, or none at
// its end: the application's choice first, then the shortest windows.
func (m *mapper) shrink(e boundary) error {
	job := m.jobs[e.job]
	keep := 0
	if e.step < len(job.Steps) {
		keep = job.Steps[e.step].Nodes
	}
	if excess := len(m.held[e.job]) - keep; excess > 0 {
		order := make([]candidate, 0, len(m.held[e.job]))
		beside := make(map[int]int) // nodes that the job has on a switch
		if m.switches != nil {
			for _, n := range m.held[e.job] {
				beside[m.switches[n]]++
			}
		}
		for _, n := range m.held[e.job] {
			c := candidate{node: n, window: m.window(n, e.at), rank: m.rank(n, e.job)}
			if m.switches != nil {
				c.apart = -beside[m.switches[n]]
			}
			switch {
			case n == m.driver[e.job]:
				c.window, c.rank = Forever, math.MinInt // never before the end
			case !m.shrunk[e.job] && slices.Contains(job.Release, n):
				c.window = math.MinInt64
			}
			order = append(order, c)
		}
		slices.SortFunc(order, func(a, b candidate) int {
			return cmp.Or(cmp.Compare(a.window, b.window), b.order(a))
		})
		m.held[e.job] = m.held[e.job][:0]
		for i, c := range order {
			if i < excess {
				m.owner[c.node] = free
			} else {
				m.held[e.job] = append(m.held[e.job], c.node)
			}
		}
		m.shrunk[e.job] = true
	}
	if keep == 0 {
		return nil
	}
	return m.lasts(e)
}
