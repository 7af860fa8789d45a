package sim

import (
	"cmp"
	"context"
	"math"
	"slices"

	"github.com/evoslurm/evoslurm/adapter/internal/energy"
	"github.com/evoslurm/evoslurm/adapter/lab/outcome"
	"github.com/evoslurm/evoslurm/adapter/lab/workload"
)

// never is later than everything.
const never = math.MaxInt64

// powerPolicy decides when nodes go off and when they come up.
type powerPolicy struct {
	name, series string
	after        int64 // seconds without a job, before a node goes off; or never
	gap          int64 // it stays up if it has a planned use within this time
	reserve      int   // nodes kept awake without a planned use
	plans        bool  // boots a node ahead of its planned use, not only when a job takes it
	declared     int   // percent of the jobs that are known before they can start
}

// powered simulates nodes that are switched off, under conservative backfilling in order of submission. A plan gives each
// waiting job its nodes, and is made again at every event. Nodes that are awake are preferred.
type powered struct {
	powerPolicy
	boot, shutdown int64 // how long these take

	now     int64
	meter   *energy.Meter
	nodes   []poweredNode
	queue   []*poweredJob
	active  []*poweredJob
	jobs    []*poweredJob // still to come
	last    int64         // when the last job ended
	started []poweredJob  // for the figures
	boots   int
	watch   func(now int64, node int, s energy.State, busy bool) // for tests; may be nil
}

// poweredNode is a node.
type poweredNode struct {
	job  *poweredJob // nil: none
	ends int64       // of its boot or shutdown
	uses []use       // planned
}

type use struct{ from, to int64 }

// poweredJob is a job that was submitted.
type poweredJob struct {
	workload.GreenJob
	known int64 // since when
	start int64 // as planned, or since its nodes are awake
	nodes []int
}

func (j *poweredJob) end() int64 { return j.start + j.Length }

// simulate runs the jobs until all have ended, and at least until a time.
func (p *powered) simulate(ctx context.Context, nodes int, jobs []*poweredJob, until int64) error {
	p.meter, p.nodes, p.jobs = energy.NewMeter(nodes), make([]poweredNode, nodes), jobs
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		p.turn()
		p.plan()
		p.begin()
		p.wake()
		p.sleep()
		next, idle := p.next(), len(p.jobs)+len(p.queue)+len(p.active) == 0
		if end := max(until, p.last); idle && next >= end {
			p.meter.Stop(end)
			return nil
		}
		p.now = next
	}
}

// set changes the state of a node.
func (p *powered) set(node int, s energy.State) {
	p.meter.Set(node, s, p.now)
	if p.watch != nil {
		p.watch(p.now, node, s, p.nodes[node].job != nil)
	}
}

// turn does what is due: boots, shutdowns, starts, ends, and submissions.
func (p *powered) turn() {
	for i := range p.nodes {
		switch n := &p.nodes[i]; {
		case p.meter.State(i) == energy.Boot && n.ends <= p.now:
			p.set(i, energy.Idle)
		case p.meter.State(i) == energy.Shutdown && n.ends <= p.now:
			p.set(i, energy.Off)
		}
	}
	p.active = slices.DeleteFunc(p.active, func(j *poweredJob) bool {
		if j.start <= p.now && p.meter.State(j.nodes[0]) == energy.Idle {
			p.each(j, energy.Busy)
		}
		if j.end() > p.now {
			return false
		}
		for _, i := range j.nodes {
			p.nodes[i].job = nil
		}
		p.each(j, energy.Idle)
		p.last = p.now
		return true
	})
	for len(p.jobs) > 0 && p.jobs[0].known <= p.now {
		p.queue, p.jobs = append(p.queue, p.jobs[0]), p.jobs[1:]
	}
}

func (p *powered) each(j *poweredJob, s energy.State) {
	for _, i := range j.nodes {
		p.set(i, s)
	}
}

// ready returns when a node can be a job's.
func (p *powered) ready(i int) int64 {
	n, boot := &p.nodes[i], p.boot
	if !p.plans {
		boot = 0 // the job takes the node, and then waits for it
	}
	switch s := p.meter.State(i); {
	case n.job != nil:
		return n.job.start + n.job.Limit
	case s == energy.Boot:
		return n.ends
	case s == energy.Shutdown:
		return n.ends + boot
	case s == energy.Off:
		return p.now + boot
	}
	return p.now
}

// plan gives each waiting job its start and nodes.
func (p *powered) plan() {
	for i := range p.nodes {
		p.nodes[i].uses = p.nodes[i].uses[:0]
	}
	if len(p.queue) == 0 {
		return
	}
	ready := make([]int64, len(p.nodes))
	for i := range ready {
		ready[i] = p.ready(i)
	}
	times := slices.Clone(ready)
	for _, j := range p.queue {
		times = append(times, j.Submit)
		slices.Sort(times)
		times = slices.Compact(times)
		for _, t := range times {
			if t < j.Submit {
				continue
			}
			if free := p.free(ready, t, t+j.Limit); len(free) >= j.Nodes {
				j.start, j.nodes = t, free[:j.Nodes]
				break
			}
		}
		times = append(times, j.start+j.Limit)
		for _, i := range j.nodes {
			p.nodes[i].uses = append(p.nodes[i].uses, use{j.start, j.start + j.Limit})
		}
	}
}

// free returns the nodes that are free within [from, to), those to prefer first.
func (p *powered) free(ready []int64, from, to int64) (free []int) {
	for i := range p.nodes {
		if ready[i] <= from && !slices.ContainsFunc(p.nodes[i].uses, func(u use) bool { return u.from < to && from < u.to }) {
			free = append(free, i)
		}
	}
	slices.SortStableFunc(free, func(a, b int) int { return cmp.Compare(p.meter.State(a), p.meter.State(b)) })
	return free
}

// begin starts the jobs whose time has come, or lets them take nodes that must boot.
func (p *powered) begin() {
	p.queue = slices.DeleteFunc(p.queue, func(j *poweredJob) bool {
		if j.start > p.now {
			return false
		}
		for _, i := range j.nodes {
			n := &p.nodes[i]
			n.job, n.uses = j, n.uses[1:]
			if p.meter.State(i) == energy.Off {
				p.up(i)
			}
			if p.meter.State(i) == energy.Boot {
				j.start = max(j.start, n.ends)
			}
		}
		if j.start == p.now {
			p.each(j, energy.Busy)
		}
		p.active, p.started = append(p.active, j), append(p.started, *j)
		return true
	})
}

func (p *powered) up(node int) {
	p.set(node, energy.Boot)
	p.nodes[node].ends = p.now + p.boot
	p.boots++
}

// firstUse returns when the node's first planned use begins.
func (p *powered) firstUse(node int) int64 {
	first := int64(never)
	for _, u := range p.nodes[node].uses {
		first = min(first, u.from)
	}
	return first
}

// wake boots nodes whose planned use is due.
func (p *powered) wake() {
	for i := range p.nodes {
		if p.plans && p.meter.State(i) == energy.Off && p.firstUse(i)-p.boot <= p.now {
			p.up(i)
		}
	}
}

// sleep switches nodes off, or on for the reserve.
func (p *powered) sleep() {
	if p.after == never {
		return
	}
	spare := -p.reserve
	for i := range p.nodes {
		if s := p.meter.State(i); (s == energy.Idle || s == energy.Boot) && p.unused(i) {
			spare++
		}
	}
	for i := len(p.nodes) - 1; i >= 0 && spare > 0; i-- {
		if p.meter.State(i) == energy.Idle && p.unused(i) && p.now-p.meter.Since(i) >= p.after {
			p.set(i, energy.Shutdown)
			p.nodes[i].ends = p.now + p.shutdown
			spare--
		}
	}
	for i := 0; i < len(p.nodes) && spare < 0; i++ {
		if p.meter.State(i) == energy.Off && p.unused(i) {
			p.up(i)
			spare++
		}
	}
}

// unused reports whether the node has no job, and no planned use soon.
func (p *powered) unused(node int) bool {
	return p.nodes[node].job == nil && p.firstUse(node)-p.now > p.gap
}

// next returns when something is due.
func (p *powered) next() int64 {
	next := int64(never)
	at := func(t int64) {
		if t > p.now {
			next = min(next, t)
		}
	}
	if len(p.jobs) > 0 {
		at(p.jobs[0].known)
	}
	for _, j := range p.queue {
		at(j.start)
	}
	for _, j := range p.active {
		at(j.start)
		at(j.end())
	}
	for i := range p.nodes {
		switch s := p.meter.State(i); {
		case s == energy.Boot || s == energy.Shutdown:
			at(p.nodes[i].ends)
		case s == energy.Off && p.plans && len(p.nodes[i].uses) > 0:
			at(p.firstUse(i) - p.boot)
		case s == energy.Idle && p.after != never:
			at(p.meter.Since(i) + p.after)
		}
	}
	return next
}

// clairvoyant returns the node-seconds, and the number of boots, with the least energy for jobs that start at these times. In each
// gap, a node goes off if that takes less energy.
func (e Green) clairvoyant(w energy.Watts, nodes int, jobs []poweredJob, until int64) (total energy.Seconds, boots int) {
	uses := make([]outcome.Use, len(jobs))
	for i, j := range jobs {
		uses[i] = outcome.Use{From: j.start, To: j.end(), Nodes: j.Nodes}
		total[energy.Busy] += int64(j.Nodes) * j.Length
	}
	for _, g := range outcome.Gaps(nodes, until, uses) {
		boot := e.Boot
		if g.Last {
			boot = 0
		}
		spent := w.Gap(g.Length, e.Shutdown, boot)
		if spent[energy.Boot] > 0 {
			boots += g.Nodes
		}
		total.Add(spent, g.Nodes)
	}
	return total, boots
}
