package sim

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/evoslurm/evoslurm/planner"
)

// NeighbourJob is a job for [Neighbour]. A job with a single step is a stock job: only its limit is
// known. A job with several steps keeps to its profile.
type NeighbourJob struct {
	Submit  int64
	Profile planner.Profile
	Limit   int64 // seconds; at least as long as the job
	Rigid   int64 // its start in the world where all jobs are rigid at peak
	Start   int64 // the result
}

// Neighbour schedules by a rule under which no job starts later than if evolving jobs were rigid at
// peak. It schedules both worlds. In the rigid one, by one of [Baselines], every evolving job
// always has its largest size. The real one starts every job at the latest when the rigid one does.
// Until then, a job may start on nodes that the rigid world has allocated and the real one does not
// use: nodes that evolving jobs have not grown into or have left, and nodes that jobs which started
// early no longer need. It must fit there until its limit.
//
// No job starts later, whatever ends early or arrives: a job that runs in both worlds ends in the
// real one first, so that the rigid one is known up to the present. Let the gap be, for every
// future second, the nodes that the rigid world certainly has allocated minus the nodes that the
// real one may use. It is never negative. Starts in the gap keep it so by choice. Everything else
// only widens it: a start in the rigid world of a job that already runs, a start in both, an end in
// the real one. So jobs that are due fit. The exception is an evolving job that ends before its
// profile does: the gap that it leaves ends with it.
//
// It needs a scheduler that also places stock jobs. TestLendingDelays shows why no such rule exists
// if Slurm places them. Complexity: O(n·w·a) for n jobs, with w waiting and a running at a time.
func Neighbour(ctx context.Context, name string, nodes int, jobs []NeighbourJob) error {
	rigid := make([]RigidJob, len(jobs))
	for i, j := range jobs {
		if p := j.Profile.Peak(); p > nodes {
			return fmt.Errorf("job %d: %d nodes, and the machine has %d", i+1, p, nodes)
		}
		rigid[i] = RigidJob{Submit: j.Submit, Seconds: j.Profile.Duration(), Limit: max(j.Limit, j.Profile.Duration()), Nodes: j.Profile.Peak()}
	}
	if err := Rigid(ctx, name, nodes, rigid); err != nil {
		return err
	}
	s := shadow{}
	var order []int
	for i := range jobs {
		j := &jobs[i]
		j.Rigid, j.Start = rigid[i].Start, -1
		order = append(order, i)
		last := j.Rigid + j.Profile.Duration()
		s.times = append(s.times, j.Submit, j.Rigid, last)
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(jobs[a].Submit, jobs[b].Submit) })
	slices.Sort(s.times)
	for step := 0; ; step++ {
		if step%1024 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		now, some := s.next()
		if !some {
			return nil
		}
		s.drop(now)
		for len(order) > 0 && jobs[order[0]].Submit <= now {
			s.waiting = append(s.waiting, &jobs[order[0]])
			order = order[1:]
		}
		s.at(now, nodes)
		if s.err != nil {
			return s.err
		}
	}
}

// shadow holds both worlds at a time.
type shadow struct {
	times   []int64 // times of known events
	more    []int64 // ends of started jobs, soonest first
	waiting []*NeighbourJob
	active  []*NeighbourJob // jobs that have started, and not ended in both worlds
	gap     []change
	err     error
}

// change widens a gap from a second on.
type change struct {
	at int64
	by int
}

// next returns the next second at which something happens.
func (s *shadow) next() (now int64, some bool) {
	now = planner.Forever
	if len(s.times) > 0 {
		now, some = s.times[0], true
	}
	if len(s.more) > 0 && s.more[0] < now {
		now, some = s.more[0], true
	}
	for len(s.times) > 0 && s.times[0] == now {
		s.times = s.times[1:]
	}
	for len(s.more) > 0 && s.more[0] == now {
		s.more = s.more[1:]
	}
	return now, some
}

// drop forgets jobs that have ended in both worlds.
func (s *shadow) drop(now int64) {
	s.active = slices.DeleteFunc(s.active, func(j *NeighbourJob) bool { return j.Rigid+j.Profile.Duration() <= now })
}

// at starts the jobs that are due, and those that fit into the gap.
func (s *shadow) at(now int64, nodes int) {
	s.waiting = slices.DeleteFunc(s.waiting, func(j *NeighbourJob) bool {
		if j.Rigid <= now {
			s.start(j, now)
		}
		return j.Start >= 0
	})
	used := 0
	for _, j := range s.active {
		if now < j.Start+j.Profile.Duration() {
			used += j.Profile.At(now - j.Start)
		}
	}
	if used > nodes {
		s.err = fmt.Errorf("second %d: %d nodes in use, the machine has %d", now, used, nodes)
		return
	}
	if len(s.waiting) == 0 {
		return
	}
	s.widen(now)
	s.waiting = slices.DeleteFunc(s.waiting, func(j *NeighbourJob) bool {
		if !s.fits(j, now) {
			return false
		}
		s.start(j, now)
		s.uses(j, now)
		s.settle()
		return true
	})
}

func (s *shadow) start(j *NeighbourJob, now int64) {
	j.Start = now
	s.active = append(s.active, j)
	at := now
	for _, step := range j.Profile {
		at += step.Duration
		i, _ := slices.BinarySearch(s.more, at)
		s.more = slices.Insert(s.more, i, at)
	}
}

// uses subtracts what a job may use from the gap.
func (s *shadow) uses(j *NeighbourJob, now int64) {
	if len(j.Profile) == 1 {
		n := j.Profile[0].Nodes
		s.gap = append(s.gap, change{now, -n}, change{j.Start + max(j.Limit, j.Profile[0].Duration), n})
		return
	}
	at := j.Start
	for _, step := range j.Profile {
		end := at + step.Duration
		if end > now {
			s.gap = append(s.gap, change{max(at, now), -step.Nodes}, change{end, step.Nodes})
		}
		at = end
	}
}

// widen computes the gap from now on.
func (s *shadow) widen(now int64) {
	s.gap = s.gap[:0]
	for _, j := range s.active {
		lasts, peak := j.Profile.Duration(), j.Profile.Peak()
		running, began := now < j.Start+lasts, j.Rigid <= now
		switch {
		case began && running && len(j.Profile) == 1: // its end is unknown, but in the rigid world it is no earlier
		case began:
			s.gap = append(s.gap, change{now, peak}, change{j.Rigid + lasts, -peak})
			if running {
				s.uses(j, now)
			}
		case running:
			s.uses(j, now)
		}
	}
	s.settle()
}

func (s *shadow) settle() {
	slices.SortFunc(s.gap, func(a, b change) int { return cmp.Compare(a.at, b.at) })
}

// fits reports whether a job fits into the gap from now on.
func (s *shadow) fits(j *NeighbourJob, now int64) bool {
	p := j.Profile
	if len(p) == 1 {
		p = planner.Profile{{Duration: max(j.Limit, p[0].Duration), Nodes: p[0].Nodes}}
	}
	end, width := now+p.Duration(), 0
	at, k := now, 0 // of the step
	for i := 0; i < len(s.gap); {
		for t := s.gap[i].at; i < len(s.gap) && s.gap[i].at == t; i++ {
			width += s.gap[i].by
		}
		until := end
		if i < len(s.gap) {
			until = min(s.gap[i].at, end)
		}
		for at < until { // width nodes until then
			if p[k].Nodes > width {
				return false
			}
			stepEnd := now
			for _, step := range p[:k+1] {
				stepEnd += step.Duration
			}
			if at = min(until, stepEnd); at == stepEnd {
				k++
			}
		}
		if at == end {
			return true
		}
	}
	return false
}
