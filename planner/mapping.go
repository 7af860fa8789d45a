package planner

import (
	"cmp"
	"fmt"
	"math/bits"
	"slices"

	"github.com/evoslurm/evoslurm/planner/internal/exact"
)

// NodeBusy is a node that others use during [Start, End): a running job, a reservation, or an
// outage.
type NodeBusy struct {
	Node       int   // 0 … nodes-1
	Start, End int64 // seconds; End Forever for no end
}

// MappedJob is a placed job that needs node IDs.
type MappedJob struct {
	Placement
	Held    []int   // nodes that it holds already at Start
	Driver  int     // node that is never freed before the end; -1 if none; or Lowest
	Prefer  []int   // preferred among otherwise equal nodes, to keep plans stable
	Release []int   // freed first at the first shrink, by the application's choice
	Was     [][]int // see PoolJob
}

// Lowest means that the driver is the lowest node that the job will start on, where Slurm runs its
// batch script.
const Lowest = -2

// MapError means that a job finds no nodes that stay free for as long as it needs them, although
// enough are free at every single second.
type MapError struct {
	Job, Step  int   // indices from 0
	At, Until  int64 // seconds between which the nodes are needed
	Node       int   // node that is free for too short a time; -1 if there are simply too few nodes
	Start, End int64 // busy interval of that node that is in the way
}

func (e *MapError) Error() string {
	if e.Node < 0 {
		return fmt.Sprintf("job %d, step %d: too few free nodes at second %d", e.Job+1, e.Step+1, e.At)
	}
	return fmt.Sprintf("job %d, step %d: node %d, wanted during [%d, %d), is busy during [%d, %d)",
		e.Job+1, e.Step+1, e.Node, e.At, e.Until, e.Start, e.End)
}

// MapNodes turns node counts into node IDs (RR-7205, Algorithm 1): for every job and step, the
// sorted IDs of its nodes. It keeps RR-7205's conditions. Every step has as many nodes as placed
// (C2). No node is in use twice (C3). A job gives up only nodes that it chooses: a growth keeps all
// nodes, and a shrink keeps a subset with the driver (C4).
//
// It visits the boundaries in time order, releases first. The report takes any free nodes. Here,
// nodes have a future: a growth takes nodes whose free windows are as tight as possible but last as
// long as the node is held, and a shrink frees the nodes whose windows end first.
//
// If a job's Held nodes clash with busy, or a job finds too few nodes, the error is a *MapError;
// malformed input returns another error. With B boundaries, n nodes, and b busy intervals, it takes
// O((B + b) log (B + b)). A boundary takes O(n/64 + k) for the k nodes that the job has and
// prefers, and O(w log w) for the w free nodes that are busy later. Equal input gives equal output.
// Lists of the result may share memory.
func MapNodes(nodes int, busy []NodeBusy, jobs []MappedJob) ([][][]int, error) {
	return mapNodes(nodes, busy, jobs, nil)
}

// mapNodes does what MapNodes does, with an eye to the network unless near is nil.
func mapNodes(nodes int, busy []NodeBusy, jobs []MappedJob, near *nearness) ([][][]int, error) {
	m, err := newMapper(nodes, busy, jobs)
	if err != nil {
		return nil, err
	}
	m.near = near
	for _, e := range m.events() {
		steps := jobs[e.job].Steps
		m.nodes.advance(e.at)
		if e.step < len(steps) && len(m.held[e.job]) < steps[e.step].Nodes {
			err = m.grow(e)
		} else {
			err = m.shrink(e)
		}
		if err != nil {
			return nil, err
		}
		if e.step < len(steps) {
			m.result[e.job][e.step] = m.held[e.job]
		}
	}
	return m.result, nil
}

const free = -1 // owner of a node that no job holds

type mapper struct {
	jobs   []MappedJob
	nodes  freeNodes
	prefer [][]int   // per job, ascending
	held   [][]int   // nodes per job, ascending
	driver []int     // per job; Lowest until it has started
	shrunk []bool    // the job has had its first shrink
	bounds [][]int64 // Boundaries per job
	result [][][]int
	near   *nearness // nil: the network does not matter

	memory []int // for lists of nodes
	block  int   // how much of it was made at once

	// Scratch of one boundary.
	until  []int64     // releases
	brief  []candidate // free nodes that are busy later, tightest windows first
	taken  []bool      // entries of brief already taken
	chosen []int
	ranks  []int8
}

// candidate is a node with the second until which it is free.
type candidate struct {
	node   int
	window int64
	rank   int // lower ranks are taken first
}

// order compares two nodes with equal windows.
func (a candidate) order(b candidate) int {
	return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(a.node, b.node))
}

// boundary is the start of a job's step, or its end (step is then the number of steps).
type boundary struct {
	at        int64
	job, step int
	grows     bool
}

func newMapper(nodes int, busy []NodeBusy, jobs []MappedJob) (*mapper, error) {
	m := &mapper{
		jobs:   jobs,
		prefer: make([][]int, len(jobs)),
		held:   make([][]int, len(jobs)),
		driver: make([]int, len(jobs)),
		shrunk: make([]bool, len(jobs)),
		bounds: make([][]int64, len(jobs)),
		result: make([][][]int, len(jobs)),
	}
	check := func(n int) error {
		if n < 0 || n >= nodes {
			return fmt.Errorf("node %d is not within 0 … %d", n, nodes-1)
		}
		return nil
	}
	byNode, err := busyByNode(nodes, busy)
	if err != nil {
		return nil, err
	}
	m.nodes = newFreeNodes(byNode)
	holder := make(map[int]int)
	for j, job := range jobs {
		m.bounds[j] = job.Boundaries()
		m.driver[j] = job.Driver
		m.result[j] = make([][]int, len(job.Steps))
		for _, n := range job.Held {
			if err := check(n); err != nil {
				return nil, fmt.Errorf("job %d holds: %w", j+1, err)
			}
			if other, ok := holder[n]; ok {
				return nil, fmt.Errorf("job %d holds node %d, which job %d holds too", j+1, n, other+1)
			}
			holder[n] = j
			m.nodes.take(n)
		}
		m.held[j] = sorted(job.Held)
		for _, n := range job.Prefer {
			if err := check(n); err != nil {
				return nil, fmt.Errorf("job %d prefers: %w", j+1, err)
			}
			m.nodes.wanted.add(n)
		}
		m.prefer[j] = sorted(job.Prefer)
	}
	return m, nil
}

// sorted returns the list itself if it is sorted.
func sorted(list []int) []int {
	if slices.IsSorted(list) {
		return list
	}
	return slices.Sorted(slices.Values(list))
}

// busyByNode sorts intervals by node and time and joins adjacent ones.
func busyByNode(nodes int, busy []NodeBusy) ([][]NodeBusy, error) {
	byNode, count := make([][]NodeBusy, nodes), make([]int, nodes)
	for _, b := range busy {
		if b.Node < 0 || b.Node >= nodes {
			return nil, fmt.Errorf("busy node %d is not within 0 … %d", b.Node, nodes-1)
		}
		count[b.Node]++
	}
	all := make([]NodeBusy, len(busy)) // every node's list is a part of it
	for n, k := range count {
		byNode[n], all = all[:0:k], all[k:]
	}
	for _, b := range busy {
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
	total := 0
	for _, bounds := range m.bounds {
		total += len(bounds)
	}
	events := make([]boundary, 0, total)
	for j, bounds := range m.bounds {
		steps, before := m.jobs[j].Steps, len(m.jobs[j].Held)
		for k, at := range bounds {
			after := 0
			if k < len(steps) {
				after = steps[k].Nodes
			}
			events = append(events, boundary{at: at, job: j, step: k, grows: after > before})
			before = after
		}
	}
	slices.SortFunc(events, func(a, b boundary) int {
		switch {
		case a.at != b.at:
			return cmp.Compare(a.at, b.at)
		case a.grows != b.grows && a.grows:
			return 1
		case a.grows != b.grows:
			return -1
		case a.job != b.job:
			return cmp.Compare(a.job, b.job)
		}
		return cmp.Compare(a.step, b.step)
	})
	return events
}

// list returns an empty list with capacity for that many nodes.
func (m *mapper) list(most int) []int {
	if len(m.memory) < most {
		m.block = min(max(2*m.block, 1<<7), 1<<12)
		m.memory = make([]int, max(most, m.block))
	}
	list := m.memory[:0:most]
	m.memory = m.memory[most:]
	return list
}

// releases returns how long each of the nodes of a job's step is held if the job frees the latest
// taken first: descending, one per node.
func (m *mapper) releases(j, step int) []int64 {
	steps, bounds := m.jobs[j].Steps, m.bounds[j]
	low := steps[step].Nodes
	m.until = slices.Grow(m.until[:0], low)[:low]
	for k := step + 1; low > 0; k++ {
		after := 0
		if k < len(steps) {
			after = steps[k].Nodes
		}
		for ; low > after; low-- {
			m.until[low-1] = bounds[k]
		}
	}
	return m.until
}

// earliest returns, ascending, how long each of a step's nodes is held at least: like releases, but
// with later nodes replacing the current ones.
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
	m.brief = m.brief[:0]
	m.nodes.brief(func(n int) {
		m.brief = append(m.brief, candidate{n, m.nodes.until[n], m.rank(n, e.job)})
	})
	slices.SortFunc(m.brief, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(a.window, b.window), a.order(b))
	})
	open, ok := m.open(e)
	if ok {
		ok = m.nearest(e, open) || m.tightest(e.job, open, -1)
	}
	if !ok && !m.longest(e) {
		return &MapError{Job: e.job, Step: e.step, At: e.at, Until: e.at + 1, Node: -1}
	}
	if m.driver[e.job] == Lowest {
		m.aboveDriver(e)
		m.driver[e.job] = slices.Min(m.chosen)
	}
	slices.Sort(m.chosen)
	before := m.held[e.job]
	held := m.list(len(before) + len(m.chosen))
	for _, n := range m.chosen {
		m.nodes.take(n)
		for len(before) > 0 && before[0] < n {
			held, before = append(held, before[0]), before[1:]
		}
		held = append(held, n)
	}
	m.held[e.job] = append(held, before...)
	return m.lasts(e)
}

// aboveDriver makes sure that the lowest of the nodes that a job starts on is free until its end.
// If not, it chooses another driver, and the other nodes above it. If that is impossible, the
// choice stays.
func (m *mapper) aboveDriver(e boundary) {
	end := m.bounds[e.job][len(m.jobs[e.job].Steps)]
	if m.nodes.until[slices.Min(m.chosen)] >= end {
		return
	}
	chosen := slices.Clone(m.chosen)
	driver := candidate{node: free}
	m.chosen = m.chosen[:0]
	if m.takeLasting(e.job, 1, -1) {
		driver = candidate{m.chosen[0], Forever, m.rank(m.chosen[0], e.job)}
	}
	for _, c := range m.brief {
		if c.window >= end && (driver.node == free || c.order(driver) < 0) {
			driver = c
		}
	}
	if driver.node != free {
		if open, ok := m.open(e); ok && m.tightest(e.job, open[1:], driver.node) { // the driver is freed last
			m.chosen = append(m.chosen, driver.node)
			return
		}
	}
	m.chosen = chosen
}

// tightest chooses free nodes, one for each release (descending), so that the nodes taken last can
// be freed first. From the latest release to the earliest, each gets the tightest window that
// suffices; the remaining windows then suffice for the remaining releases. It chooses only nodes
// above some ID, and returns false if there are too few.
func (m *mapper) tightest(job int, open []int64, above int) bool {
	m.chosen = m.chosen[:0]
	m.taken = slices.Grow(m.taken[:0], len(m.brief))[:len(m.brief)]
	for i, c := range m.brief {
		m.taken[i] = c.node <= above
	}
	lasting, i := 0, 0
	for k, until := range open {
		if k == 0 || until != open[k-1] {
			i, _ = slices.BinarySearchFunc(m.brief, until, func(c candidate, until int64) int {
				if c.window < until {
					return -1
				}
				return 1
			})
		}
		for i < len(m.taken) && m.taken[i] {
			i++
		}
		if i == len(m.taken) {
			lasting++
			continue
		}
		m.taken[i] = true
		m.chosen = append(m.chosen, m.brief[i].node)
	}
	return m.takeLasting(job, lasting, above)
}

// longest chooses the free nodes with the longest windows.
func (m *mapper) longest(e boundary) bool {
	m.chosen = m.chosen[:0]
	missing := m.jobs[e.job].Steps[e.step].Nodes - len(m.held[e.job])
	if m.takeLasting(e.job, missing, -1) {
		return true
	}
	if missing -= len(m.chosen); missing > len(m.brief) {
		return false
	}
	longest := slices.Clone(m.brief)
	slices.SortFunc(longest, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(b.window, a.window), a.order(b))
	})
	for _, c := range longest[:missing] {
		m.chosen = append(m.chosen, c.node)
	}
	return true
}

// takeLasting chooses count of the free nodes that are never busy again, with IDs above some, in
// order of their ranks. If there are too few, it takes all and returns false.
func (m *mapper) takeLasting(job, count, above int) bool {
	most := len(m.chosen) + count
	prefer := m.prefer[job]
	for i, n := range prefer {
		if len(m.chosen) == most {
			return true
		}
		if n > above && m.nodes.lasting.has(n) && (i == 0 || prefer[i-1] != n) {
			m.chosen = append(m.chosen, n)
		}
	}
	for _, wanted := range []bool{false, true} {
		for w, word := range m.nodes.lasting {
			if wanted {
				word &= m.nodes.wanted[w]
			} else {
				word &^= m.nodes.wanted[w]
			}
			for ; word != 0; word &= word - 1 {
				if len(m.chosen) == most {
					return true
				}
				n := w*64 + bits.TrailingZeros64(word)
				if n > above && !(wanted && m.prefers(job, n)) {
					m.chosen = append(m.chosen, n)
				}
			}
		}
	}
	return len(m.chosen) == most
}

// open returns the releases of e's step that the held nodes leave open, descending; false if a held
// node is free for less than any release.
func (m *mapper) open(e boundary) ([]int64, bool) {
	until := m.releases(e.job, e.step)
	if m.allLast(e.job) {
		return until[len(m.held[e.job]):], true
	}
	// Shortest window first, each takes the latest release that it can reach.
	for _, c := range m.windows(e) {
		if c.node == m.driver[e.job] {
			c.window = Forever // lasts checks it
		}
		i := slices.IndexFunc(until, func(u int64) bool { return u <= c.window })
		if i < 0 {
			return nil, false
		}
		until = slices.Delete(until, i, i+1)
	}
	return until, true
}

// allLast reports whether none of a job's nodes is busy later.
func (m *mapper) allLast(job int) bool {
	for _, n := range m.held[job] {
		if m.nodes.until[n] != Forever {
			return false
		}
	}
	return true
}

// windows returns the nodes that e's job holds, the driver last, the others by the second until
// which they are free.
func (m *mapper) windows(e boundary) []candidate {
	held := make([]candidate, 0, len(m.held[e.job]))
	for _, n := range m.held[e.job] {
		c := candidate{node: n, window: m.nodes.until[n]}
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
	if m.allLast(e.job) {
		return nil
	}
	until := m.earliest(e.job, e.step)
	for i, c := range m.windows(e) {
		if c.rank > 0 {
			until[i] = m.bounds[e.job][len(m.jobs[e.job].Steps)]
		}
		if c.window < until[i] {
			b, _ := m.nodes.next(c.node)
			return &MapError{Job: e.job, Step: e.step, At: e.at, Until: until[i], Node: c.node, Start: b.Start, End: b.End}
		}
	}
	return nil
}

// rank orders nodes with equal windows: first those that the job prefers, then those that no job
// prefers, then those that another job prefers.
func (m *mapper) rank(n, job int) int {
	switch {
	case !m.nodes.wanted.has(n):
		return 1
	case m.prefers(job, n):
		return 0
	}
	return 2
}

func (m *mapper) prefers(job, n int) bool {
	_, found := slices.BinarySearch(m.prefer[job], n)
	return found
}

// shrink frees nodes until the job has as many as its step e.step, or none at its end: the
// application's choice first, then the shortest windows.
func (m *mapper) shrink(e boundary) error {
	job, held := &m.jobs[e.job], m.held[e.job]
	if e.step == len(job.Steps) {
		for _, n := range held {
			m.nodes.give(n)
		}
		m.held[e.job] = nil
		return nil
	}
	if excess := len(held) - job.Steps[e.step].Nodes; excess > 0 {
		if m.near != nil && e.at <= m.near.until {
			m.sortHeld(e.job)
			m.leaveSwitches(e.job)
		} else if m.allLast(e.job) && (m.shrunk[e.job] || len(job.Release) == 0) {
			m.rankHeld(e.job)
		} else {
			m.sortHeld(e.job)
		}
		for _, c := range m.brief[:excess] {
			m.nodes.give(c.node)
		}
		kept := m.list(len(held) - excess)
		for _, c := range m.brief[excess:] {
			kept = append(kept, c.node)
		}
		slices.Sort(kept)
		m.held[e.job], m.shrunk[e.job] = kept, true
	}
	return m.lasts(e)
}

// sortHeld puts a job's nodes into brief, in the order in which it frees them.
func (m *mapper) sortHeld(job int) {
	m.brief = m.brief[:0]
	for _, n := range m.held[job] {
		c := candidate{n, m.nodes.until[n], m.rank(n, job)}
		switch {
		case n == m.driver[job]:
			c.window, c.rank = Forever, -1 // never before the end
		case !m.shrunk[job] && slices.Contains(m.jobs[job].Release, n):
			c.window = exact.Dawn
		}
		m.brief = append(m.brief, c)
	}
	slices.SortFunc(m.brief, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(a.window, b.window), b.order(a))
	})
}

// rankHeld is sortHeld where all windows are equal, without comparing.
func (m *mapper) rankHeld(job int) {
	held, prefer := m.held[job], m.prefer[job]
	m.ranks = slices.Grow(m.ranks[:0], len(held))[:len(held)]
	m.brief = m.brief[:0]
	for i := len(held) - 1; i >= 0; i-- {
		n := held[i]
		for len(prefer) > 0 && prefer[len(prefer)-1] > n {
			prefer = prefer[:len(prefer)-1]
		}
		switch {
		case n == m.driver[job]:
			m.ranks[i] = -1
		case !m.nodes.wanted.has(n):
			m.ranks[i] = 1
		case len(prefer) > 0 && prefer[len(prefer)-1] == n:
			m.ranks[i] = 0
		default:
			m.ranks[i] = 2
			m.brief = append(m.brief, candidate{node: n})
		}
	}
	for rank := int8(1); rank >= -1; rank-- {
		for i := len(held) - 1; i >= 0; i-- {
			if m.ranks[i] == rank {
				m.brief = append(m.brief, candidate{node: held[i]})
			}
		}
	}
}
