package machine

import (
	"github.com/evoslurm/evoslurm/planner"
	"github.com/evoslurm/evoslurm/planner/malleable"
)

// Planned plans with the planner's own fit. A job starts only if all its declared phases get their
// nodes in time: its promise. A malleable job is promised its least nodes. The policy shares out
// nodes that are not promised within Lead seconds, among jobs that return them within that time. A
// job that is ahead of its promise waits for its next phase with the nodes that it has, or gets it
// sooner if that moves no other job's promise.
//
// Of a moldable job's sizes (powers of two and its bounds), it takes the one that completes first.
type Planned struct {
	Policy malleable.Policy // nil if jobs keep their least
	Ahead  int              // number of waiting jobs that keep their place; others start only if they can start at once
	Lead   int64            // seconds

	// Late is the largest delay, in seconds, of a growth after its promise.
	Late int64

	promises map[*Run][]promised
	reserved int64 // start of the first job that keeps its place
	wake     int64 // next call of the scheduler for this job
}

// promised is nodes for a phase, from a second until the next phase's, or to the end.
type promised struct {
	start, end int64
	nodes      int
	due        int64 // first promised start
}

// Schedule implements Scheduler.
func (s *Planned) Schedule(m *Machine) {
	all := s.keep(m)
	starts := s.place(m, all)
	soon := all.Max(m.Now, m.Now+s.Lead+1)
	// Free nodes go to promises first: those that are due, and those for which shrinks requested
	// now might come too late. (A waiting job planned for now counts as if it had its nodes. Until
	// it does, nodes that its next step would release are missing, and a growth may be late by the
	// time to get them back.)
	free := m.Free - (soon - all.At(m.Now))
	beyond := 0
	var early []*Run
	for _, r := range m.Running {
		beyond += r.spare()
		switch short, p := r.Short()-r.grows, s.promises[r]; {
		case short <= 0:
		case p[0].start > m.Now:
			early = append(early, r)
		default:
			free -= short
			if short <= m.Free {
				s.Late = max(s.Late, m.Now-p[0].due)
				m.Grow(r, short)
			}
		}
	}
	// Negative: nodes that are not promised soon.
	over := beyond - (m.Nodes - soon)
	take(m, s.Policy, over)
	for _, r := range early {
		if short := r.Short() - r.grows; short <= free && s.sooner(m, all, r) {
			free -= short
			over += short
			m.Grow(r, short)
		}
	}
	for _, c := range starts {
		if free -= c.size; free < 0 {
			continue
		}
		more := 0
		if c.run.Kind.Resizable() && s.Policy != nil && over < 0 && s.returns(c.run) {
			_, most := c.run.Bounds()
			goal := min(c.run.Phases[0].Pref, most)
			more = max(c.run.Sizes.Floor(c.size+min(goal-c.size, free, -over))-c.size, 0)
		}
		free -= more
		over += more
		m.Start(c.run, c.size+more)
		s.promises[c.run] = c.promise
	}
	give(m, s.Policy, min(free, -over), s.returns)
	if next := s.next(m); next < planner.Forever && (next < s.wake || s.wake <= m.Now) {
		s.wake = next
		m.Wake(next)
	}
}

// returns reports whether a job returns loans within the lead, whenever asked.
func (s *Planned) returns(r *Run) bool {
	p := &r.Phases[r.Phase]
	if p.Points == 0 {
		return r.Grace <= s.Lead
	}
	least, _ := r.Bounds()
	return ceil(p.Work/float64(p.Points)/p.Speed[least]) <= s.Lead
}

// next returns the next second at which something is promised, or at which nodes must be requested
// for it.
func (s *Planned) next(m *Machine) int64 {
	next := s.reserved
	for _, r := range m.Running {
		for _, p := range s.promises[r] {
			switch {
			case p.start <= m.Now:
			case p.start-s.Lead > m.Now:
				next = min(next, p.start-s.Lead)
			default:
				next = min(next, p.start)
			}
		}
	}
	return next
}

// keep updates the promises of running jobs and sums them up.
func (s *Planned) keep(m *Machine) *planner.Timeline {
	all := new(planner.Timeline)
	promises := make(map[*Run][]promised, len(m.Running))
	for _, r := range m.Running {
		p := s.promises[r]
		if r.Kind.declares() {
			p = p[len(p)-(len(r.Phases)-r.Phase):]
		}
		if r.Phase > 0 && r.reached == m.Now && r.Kind.Resizable() {
			s.begin(m, r, p[0])
		}
		if r.Short() == 0 {
			p[0].start = m.Now
			if len(p) == 1 {
				p[0].end = m.Now + m.Left(r, p[0].nodes)
			}
		}
		promises[r] = p
		r.promise(m, all, p, 1)
	}
	s.promises = promises
	for _, r := range m.Running {
		p := promises[r]
		if r.Short() > 0 && p[0].start < m.Now || r.Short() == 0 && len(p) > 1 && m.Now+m.leftOfPhase(r, p[0].nodes) > p[1].start {
			r.promise(m, all, p, -1)
			s.again(m, all, r, p)
			r.promise(m, all, p, 1)
		}
	}
	return all
}

// begin makes a job whose phase has just begun release what it is not promised: if it is ahead of a
// promise of more nodes, what the phase before did not need.
func (s *Planned) begin(m *Machine, r *Run, p promised) {
	before, _ := r.bounds(r.Phase - 1)
	switch {
	case r.Kind == Malleable && s.returns(r): // it continues
	case p.start > m.Now && p.nodes > before:
		if r.Size > before {
			m.Hold(r)
		}
	case r.Assigned() > p.nodes:
		m.Shrink(r, r.Assigned()-p.nodes, nil)
	}
}

// promise adds a running job's promises, and its nodes until the first promise is due.
func (r *Run) promise(m *Machine, all *planner.Timeline, p []promised, sign int) {
	all.Add(m.Now, p[0].start, sign*r.Size)
	addPromises(all, p, sign)
}

// sooner starts a job's phase and the following ones now if no other promise is in the way.
func (s *Planned) sooner(m *Machine, all *planner.Timeline, r *Run) bool {
	p := s.promises[r]
	steps := s.steps(m, r)
	r.promise(m, all, p, -1)
	fits := fitsNow(all, m.Nodes, steps, m.Now)
	if fits {
		at := m.Now
		for i, step := range steps {
			p[i].start, p[i].end = at, at+step.Duration
			at += step.Duration
		}
	}
	r.promise(m, all, p, 1)
	return fits
}

// steps returns a running job's phases from now on, or from the next one if it waits for that.
func (s *Planned) steps(m *Machine, r *Run) planner.Profile {
	p := s.promises[r]
	steps := make(planner.Profile, len(p))
	for i := range p {
		steps[i] = planner.Step{Duration: r.Phases[r.Phase+i].Seconds(p[i].nodes), Nodes: p[i].nodes}
	}
	steps[0].Duration = m.leftOfPhase(r, p[0].nodes)
	return steps
}

// again places the rest of a late job. A job that waits for nodes keeps what it has.
func (s *Planned) again(m *Machine, all *planner.Timeline, r *Run, p []promised) {
	steps := s.steps(m, r)
	waits := r.Short() > 0
	if waits {
		steps = append(planner.Profile{{Duration: 1, Nodes: r.Size}}, steps...)
	}
	placed, ok := planner.Fit(all, m.Nodes, steps, planner.FitOptions{NotBefore: m.Now, Limit: planner.Infinite, Fixed: true})
	if !ok {
		m.fail("job %d has no place to go on", r.Number+1)
		return
	}
	at := placed.Start
	if waits {
		at += placed.Steps[0].Duration
		placed.Steps = placed.Steps[1:]
	}
	for i := range p {
		p[i].start, p[i].end = at, at+placed.Steps[i].Duration
		at = p[i].end
	}
}

// candidate is a waiting job that can start now.
type candidate struct {
	run     *Run
	size    int
	promise []promised
}

// place finds the jobs that can start now, in order of submission, and keeps room for the first
// that cannot.
func (s *Planned) place(m *Machine, all *planner.Timeline) (starts []candidate) {
	ahead := 0
	s.reserved = planner.Forever
	for _, r := range m.Queue {
		if free := m.Nodes - all.At(m.Now); free <= 0 && ahead >= s.Ahead {
			break
		}
		var best planner.Placement
		for _, steps := range r.profiles() {
			var placed planner.Placement
			if ahead < s.Ahead {
				placed, _ = planner.Fit(all, m.Nodes, steps, planner.FitOptions{NotBefore: m.Now})
			} else if fitsNow(all, m.Nodes, steps, m.Now) {
				placed = planner.Placement{Start: m.Now, Steps: steps}
			}
			if len(placed.Steps) > 0 && (len(best.Steps) == 0 || placed.End() < best.End()) {
				best = placed
			}
		}
		if len(best.Steps) == 0 {
			continue
		}
		promise := make([]promised, len(best.Steps))
		at := best.Start
		for i, step := range best.Steps {
			promise[i] = promised{at, at + step.Duration, step.Nodes, at}
			at += step.Duration
		}
		addPromises(all, promise, 1)
		if best.Start == m.Now {
			starts = append(starts, candidate{r, best.Steps[0].Nodes, promise})
		} else {
			ahead++
			s.reserved = min(s.reserved, best.Start)
		}
	}
	return starts
}

// profiles returns what a waiting job may be promised: one profile per size of a moldable job.
func (r *Run) profiles() []planner.Profile {
	if r.asks == nil {
		least, most := r.Bounds()
		switch {
		case r.Kind.declares():
			steps := make(planner.Profile, len(r.Phases))
			for i, p := range r.Phases {
				n, _ := r.bounds(i)
				steps[i] = planner.Step{Duration: p.Seconds(n), Nodes: n}
			}
			r.asks = []planner.Profile{steps}
		case r.Kind == Moldable:
			for n := least; ; n = min(r.Sizes.Ceil(2*n), most) {
				r.asks = append(r.asks, planner.Profile{{Duration: r.seconds(n), Nodes: n}})
				if n == most {
					break
				}
			}
		default:
			r.asks = []planner.Profile{{{Duration: r.seconds(least), Nodes: least}}}
		}
	}
	return r.asks
}

// seconds returns how long the whole job takes on n nodes.
func (j *Job) seconds(n int) (seconds int64) {
	for _, p := range j.Phases {
		seconds += p.Seconds(n)
	}
	return seconds
}

func fitsNow(all *planner.Timeline, nodes int, steps planner.Profile, now int64) bool {
	for _, step := range steps {
		if all.Max(now, now+step.Duration) > nodes-step.Nodes {
			return false
		}
		now += step.Duration
	}
	return true
}

func addPromises(t *planner.Timeline, promises []promised, sign int) {
	for _, p := range promises {
		t.Add(p.start, p.end, sign*p.nodes)
	}
}
