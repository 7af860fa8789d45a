package machine

import (
	"cmp"
	"container/heap"
	"context"
	"fmt"
	"slices"

	"github.com/evoslurm/evoslurm/planner"
)

// Scheduler decides which jobs start, and the sizes of running jobs.
type Scheduler interface {
	// Schedule is called when something has changed. It inspects the machine and calls Start, Grow,
	// Shrink, and Kill.
	Schedule(*Machine)
}

// Options controls how a machine runs.
type Options struct {
	// Every calls the scheduler at every single event, not once a second, also at the points of
	// malleable jobs, before they act on earlier requests.
	Every  bool
	Period int64 // seconds between additional calls; 0 for none
	Until  int64 // the second at which the run ends, whatever still runs; 0 for the end of the last job
	Watch  func(*Machine)
}

// Machine is the state of a simulation, as schedulers see it.
type Machine struct {
	Nodes   int
	Now     int64
	Free    int    // nodes neither in use nor promised
	Queue   []*Run // waiting jobs, in order of submission
	Running []*Run // running jobs, in order of start

	runs    []*Run
	events  events
	order   int64
	changed bool // since the last call of the scheduler
	err     error
}

// Run is a job in a simulation.
type Run struct {
	*Job
	Number     int // in order of submission, from 0
	Start, End int64
	Size       int // nodes in use
	Held       int // nodes kept for it while it waits
	Phase      int
	Failed     bool // killed

	Area           int64 // node-seconds in use
	Grown, Shrunk  int   // number of changes
	GrownBy, ShrBy int   // sum of the nodes in these changes
	ShortFor       int64 // seconds without the nodes of the current phase

	done     float64 // work of the phase done at second since
	since    int64
	point    int // points of the phase passed
	gives    []gift
	grows    int   // nodes reserved for its next growth
	growAt   int64 // time of the growth, if not at a point
	epoch    int   // of its current event
	began    bool
	finished bool
	reached  int64             // second of its last point, at which it can change
	asks     []planner.Profile // see profiles
}

// gift is nodes that a job must release, for a certain job or for all.
type gift struct {
	nodes int
	to    *Run
	at    int64 // if not at a point
}

// Simulate runs jobs on a machine until all have ended.
func Simulate(ctx context.Context, nodes int, jobs []Job, s Scheduler, o Options) ([]*Run, error) {
	if nodes < 1 {
		return nil, fmt.Errorf("%d nodes", nodes)
	}
	jobs = slices.Clone(jobs)
	slices.SortStableFunc(jobs, func(a, b Job) int { return cmp.Compare(a.Submit, b.Submit) })
	for i := range jobs {
		if err := jobs[i].Validate(nodes); err != nil {
			return nil, fmt.Errorf("job %d: %w", i+1, err)
		}
	}
	m := &Machine{Nodes: nodes, Free: nodes}
	m.Wake(0)
	next, tick, calls, idle := 0, o.Period, 0, 0
	call := func() {
		m.changed = false
		s.Schedule(m)
		if o.Watch != nil {
			o.Watch(m)
		}
		calls++
	}
	for m.err == nil {
		if calls%1024 == 1023 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if len(m.Running) == 0 && len(m.Queue) == 0 && next == len(jobs) {
			return m.runs, nil
		}
		at := int64(-1)
		if next < len(jobs) {
			at = jobs[next].Submit
		}
		m.events.skip()
		if len(m.events) > 0 && (at < 0 || m.events[0].at < at) {
			at = m.events[0].at
		}
		if at >= 0 || len(m.Running) > 0 {
			idle = 0
		} else if idle++; o.Period == 0 || idle > len(m.Queue)+1 {
			return nil, fmt.Errorf("job %d never starts", m.Queue[0].Number+1)
		}
		if o.Period > 0 && (at < 0 || tick < at) {
			at = tick
		}
		if o.Until > 0 && (at < 0 || at >= o.Until) {
			m.Now = o.Until
			for _, r := range m.Running {
				r.advance(m.Now)
			}
			return m.runs, nil
		}
		m.Now = at
		// One second: events reached, jobs that arrive, and the clock.
		for len(m.events) > 0 && m.events[0].at == at && m.err == nil {
			e := heap.Pop(&m.events).(event)
			if e.run == nil {
				m.changed = true
				continue
			}
			if e.epoch != e.run.epoch {
				continue
			}
			ended := m.step(e.run, o.Every, call)
			if o.Every && ended {
				call()
			}
		}
		for ; next < len(jobs) && jobs[next].Submit == at; next++ {
			m.submit(&jobs[next])
			if o.Every {
				call()
			}
		}
		if o.Period > 0 && tick == at {
			tick += o.Period
			call()
		}
		for again := 0; !o.Every && m.changed && again < 3; again++ { // the scheduler may use what it has freed
			call()
		}
	}
	return nil, m.err
}

// Submit adds a job now.
func (m *Machine) Submit(j Job) *Run {
	j.Submit = m.Now
	if err := j.Validate(m.Nodes); err != nil {
		m.fail("job %d: %v", len(m.runs)+1, err)
	}
	return m.submit(&j)
}

func (m *Machine) submit(j *Job) *Run {
	r := &Run{Job: j, Number: len(m.runs)}
	m.runs = append(m.runs, r)
	m.Queue = append(m.Queue, r)
	m.changed = true
	return r
}

// fail records the first mistake of a scheduler.
func (m *Machine) fail(format string, args ...any) {
	if m.err == nil {
		m.err = fmt.Errorf("second %d: "+format, append([]any{m.Now}, args...)...)
	}
}

// Bounds returns the sizes that the job may have now.
func (r *Run) Bounds() (least, most int) { return r.bounds(r.Phase) }

// Assigned returns the job's size once all decisions are carried out.
func (r *Run) Assigned() int {
	n := r.Size + r.grows
	for _, g := range r.gives {
		n -= g.nodes
	}
	return n
}

// Reserved returns how many nodes the job gets with its next change.
func (r *Run) Reserved() int { return r.grows }

// Changing reports whether a decided change of the job is still to come.
func (r *Run) Changing() bool { return r.grows > 0 || len(r.gives) > 0 }

// Short returns how many nodes the job lacks to continue; it waits for them with the nodes that it
// has.
func (r *Run) Short() int {
	if least, _ := r.Bounds(); r.began && !r.finished && r.Size < least {
		return least - r.Size
	}
	return 0
}

// Start starts a waiting job, first on the nodes kept for it.
func (m *Machine) Start(r *Run, nodes int) {
	least, most := r.Bounds()
	i := slices.Index(m.Queue, r)
	if i < 0 || nodes < least || nodes > most || nodes < r.Held || nodes-r.Held > m.Free {
		m.fail("job %d cannot start on %d nodes", r.Number+1, nodes)
		return
	}
	m.Queue = slices.Delete(m.Queue, i, i+1)
	m.Running = append(m.Running, r)
	m.Free -= nodes - r.Held
	r.Held, r.Size, r.Start, r.since, r.began = 0, nodes, m.Now, m.Now, true
	m.plan(r)
}

// Grow gives a running job free nodes with its next change.
func (m *Machine) Grow(r *Run, nodes int) {
	_, most := r.Bounds()
	if !r.began || r.finished || nodes < 1 || nodes > m.Free+r.leaving() || r.Assigned()+nodes > most ||
		!r.Kind.Resizable() && nodes > r.Short() {
		m.fail("job %d cannot grow by %d nodes", r.Number+1, nodes)
		return
	}
	for nodes > 0 && len(r.gives) > 0 && r.gives[len(r.gives)-1].to == nil { // it keeps nodes that it should have released
		last := &r.gives[len(r.gives)-1]
		kept := min(nodes, last.nodes)
		nodes -= kept
		if last.nodes -= kept; last.nodes == 0 {
			r.gives = r.gives[:len(r.gives)-1]
		}
	}
	if nodes == 0 {
		m.plan(r)
		return
	}
	m.Free -= nodes
	r.grows += nodes
	r.growAt = m.Now + r.GrowDelay
	if r.Short() > 0 || m.free(r) && r.GrowDelay == 0 {
		m.change(r)
	}
	m.plan(r)
}

// Shrink takes nodes from a running job with its next change, for a waiting job or (nil) for all.
func (m *Machine) Shrink(r *Run, nodes int, to *Run) {
	least, _ := r.Bounds()
	if !r.began || r.finished || !r.Kind.Resizable() || nodes < 1 || r.Assigned()-nodes < least || to != nil && to.began {
		m.fail("job %d cannot shrink by %d nodes", r.Number+1, nodes)
		return
	}
	if back := min(nodes, r.grows); back > 0 { // nodes that it has not got yet
		r.grows -= back
		nodes -= back
		m.pass(back, to)
	}
	if nodes > 0 {
		r.gives = append(r.gives, gift{nodes, to, m.Now + r.Grace})
		if m.free(r) && r.Grace == 0 {
			m.change(r)
		}
	}
	m.plan(r)
}

// Hold makes a job whose phase comes too early wait until it grows, with the nodes of the phase
// before.
func (m *Machine) Hold(r *Run) {
	if !r.began || r.finished || r.Phase == 0 || r.done > 0 {
		m.fail("job %d cannot be held", r.Number+1)
		return
	}
	before, _ := r.bounds(r.Phase - 1)
	for _, g := range r.gives {
		r.Size -= g.nodes
		m.pass(g.nodes, g.to)
	}
	m.pass(r.grows+max(r.Size-before, 0), nil)
	r.Size, r.grows, r.gives = min(r.Size, before), 0, nil
	m.plan(r)
}

// Kill ends a running job as failed.
func (m *Machine) Kill(r *Run) {
	if !r.began || r.finished {
		m.fail("job %d cannot be killed", r.Number+1)
		return
	}
	r.advance(m.Now)
	r.Failed = true
	m.finish(r)
}

// Progress returns the share of a job's work that is done, 0 … 1.
func (m *Machine) Progress(r *Run) float64 {
	if r.began && !r.finished {
		r.advance(m.Now)
	}
	done, all := r.done, 0.
	for i, p := range r.Phases {
		if all += p.Work; i < r.Phase {
			done += p.Work
		}
	}
	return done / all
}

// leftOfPhase returns how many more seconds the current phase takes on n nodes.
func (m *Machine) leftOfPhase(r *Run, n int) int64 {
	r.advance(m.Now)
	p := &r.Phases[r.Phase]
	return max(ceil((p.Work-r.done)/p.Speed[n]), 1)
}

// Left returns how many seconds a job takes to its end on size nodes or, if it declares its phases,
// on the nodes of each phase.
func (m *Machine) Left(r *Run, size int) int64 {
	if r.began && !r.finished {
		r.advance(m.Now)
	}
	var seconds int64
	for i := r.Phase; i < len(r.Phases); i++ {
		p, n := &r.Phases[i], size
		if r.Kind.declares() && i > r.Phase {
			least, most := r.bounds(i)
			n = min(max(n, least), most)
		}
		work := p.Work
		if i == r.Phase {
			work -= r.done
		}
		seconds += max(ceil(work/p.Speed[n]), 1)
	}
	return seconds
}

// atAnyTime reports whether the job need not wait for a point.
func (r *Run) atAnyTime() bool { return r.Phases[r.Phase].Points == 0 }

// free reports whether the job can change now.
func (m *Machine) free(r *Run) bool { return r.atAnyTime() || r.Phase > 0 && r.reached == m.Now }

func (r *Run) leaving() (nodes int) {
	for _, g := range r.gives {
		if g.to == nil {
			nodes += g.nodes
		}
	}
	return nodes
}

// pass hands nodes over.
func (m *Machine) pass(nodes int, to *Run) {
	m.changed = true
	if to != nil && !to.began {
		to.Held += nodes
	} else {
		m.Free += nodes
	}
}

// change carries out the due changes of a job.
func (m *Machine) change(r *Run) {
	r.advance(m.Now)
	size, point := r.Size, !r.atAnyTime()
	kept := r.gives[:0]
	for _, g := range r.gives {
		if point || g.at <= m.Now {
			r.Size -= g.nodes
			m.pass(g.nodes, g.to)
		} else {
			kept = append(kept, g)
		}
	}
	r.gives = kept
	if r.grows > 0 && (point || r.growAt <= m.Now || r.Short() > 0) {
		r.Size += r.grows
		r.grows = 0
	}
	switch {
	case r.Size > size:
		r.Grown++
		r.GrownBy += r.Size - size
	case r.Size < size:
		r.Shrunk++
		r.ShrBy += size - r.Size
	}
}

// slack is how many seconds rounding may delay a part of the work; ceil allows for half.
const slack = 2e-6

// rate returns the work done per second.
func (r *Run) rate() float64 {
	if r.Short() > 0 {
		return 0
	}
	return r.Phases[r.Phase].Speed[r.Size]
}

// advance brings the job to second now.
func (r *Run) advance(now int64) {
	seconds := now - r.since
	if seconds <= 0 || r.finished {
		return
	}
	r.since = now
	r.Area += int64(r.Size) * seconds
	if r.Short() > 0 {
		r.ShortFor += seconds
		return
	}
	r.done += float64(r.rate() * float64(seconds)) // no fused multiply-add: the same on every processor
}

// step handles what a running job has reached: a change, a point, the end of a phase. It reports
// whether the job has ended.
func (m *Machine) step(r *Run, every bool, call func()) bool {
	r.advance(m.Now)
	p := &r.Phases[r.Phase]
	if r.done >= p.Work-float64(slack*r.rate()) && r.Short() == 0 {
		if r.Phase+1 == len(r.Phases) {
			m.finish(r)
			return true
		}
		r.Phase++
		r.done, r.point, r.reached = 0, 0, m.Now
		m.changed = true
		m.change(r)
		m.bound(r)
		if every {
			call()
		}
	} else {
		if p.Points > 1 && r.reach() {
			if every {
				call()
			}
		}
		m.change(r)
	}
	if !r.finished {
		m.plan(r)
	}
	return false
}

// bound releases the nodes that a new phase cannot use.
func (m *Machine) bound(r *Run) {
	_, most := r.Bounds()
	for r.Assigned() > most && r.grows > 0 {
		r.grows--
		m.pass(1, nil)
	}
	if over := r.Assigned() - most; over > 0 {
		r.Size -= over
		r.Shrunk++
		r.ShrBy += over
		m.pass(over, nil)
	}
}

// reach counts the points reached; it reports whether there was any.
func (r *Run) reach() (some bool) {
	p := &r.Phases[r.Phase]
	for r.point+1 < p.Points && r.done >= r.at(r.point+1)-float64(slack*r.rate()) {
		r.point++
		some = true
	}
	return some
}

// at returns the work done at a point of the phase.
func (r *Run) at(point int) float64 {
	p := &r.Phases[r.Phase]
	return p.Work * float64(point) / float64(p.Points)
}

// finish releases everything.
func (m *Machine) finish(r *Run) {
	r.finished, r.End = true, m.Now
	r.epoch++
	m.Running = slices.DeleteFunc(m.Running, func(x *Run) bool { return x == r })
	m.changed = true
	left := r.Size
	for _, g := range r.gives {
		left -= g.nodes
		m.pass(g.nodes, g.to)
	}
	m.pass(left+r.grows, nil)
	r.Size, r.grows, r.gives = 0, 0, nil
}

// plan finds the next second at which something happens to a running job.
func (m *Machine) plan(r *Run) {
	r.advance(m.Now)
	r.epoch++
	at := int64(-1)
	sooner := func(t int64) {
		if at < 0 || t < at {
			at = t
		}
	}
	p := &r.Phases[r.Phase]
	if r.Short() == 0 {
		rate := r.rate()
		left := p.Work - r.done
		if p.Points > 1 && r.point+1 < p.Points {
			left = r.at(r.point+1) - r.done
		}
		sooner(m.Now + max(ceil(left/rate), 0))
	}
	if r.atAnyTime() {
		for _, g := range r.gives {
			sooner(max(g.at, m.Now))
		}
		if r.grows > 0 {
			sooner(max(r.growAt, m.Now))
		}
	}
	if at >= 0 {
		m.order++
		heap.Push(&m.events, event{at, m.order, r, r.epoch})
	}
}

// Wake requests a call of the scheduler at a future second.
func (m *Machine) Wake(at int64) {
	m.order++
	heap.Push(&m.events, event{at, m.order, nil, 0})
}

// event is a future event of a running job.
type event struct {
	at, order int64
	run       *Run // nil if the scheduler wants a call
	epoch     int  // must equal the run's, or the event is obsolete
}

type events []event

func (e events) Len() int { return len(e) }
func (e events) Less(i, j int) bool {
	return e[i].at < e[j].at || e[i].at == e[j].at && e[i].order < e[j].order
}
func (e events) Swap(i, j int) { e[i], e[j] = e[j], e[i] }
func (e *events) Push(x any)   { *e = append(*e, x.(event)) }
func (e *events) Pop() any {
	last := len(*e) - 1
	x := (*e)[last]
	*e = (*e)[:last]
	return x
}

// skip drops obsolete events.
func (e *events) skip() {
	for len(*e) > 0 && (*e)[0].run != nil && (*e)[0].epoch != (*e)[0].run.epoch {
		heap.Pop(e)
	}
}
