package planner

import (
	"cmp"
	"slices"

	"github.com/evoslurm/evoslurm/planner/internal/exact"
)

// A job may want its first nodes on few leaf switches, and wait for that for some time. A strategy knows only how many
// nodes are free. So such a job starts later if its nodes turn out to be on more switches: when enough nodes on few
// switches are free, as far as is known, or else when its time to wait is over. The pool is then planned again.
const (
	// togetherTries is how often a pool is planned again for nodes on fewer switches, and togetherRounds how often at
	// most until all such jobs start on few switches, or when they need not wait any longer.
	togetherTries, togetherRounds = 3, 12
	// togetherJobs bounds the jobs in a round for which a look at the free nodes is taken.
	togetherJobs = 64
	// togetherTimes is the number of starts that are tried for a job.
	togetherTimes = 1000
)

// stillScattered is why a job has no plan that cannot be placed within togetherRounds.
const stillScattered = "too many other jobs wait for nodes on few switches: it is planned again"

// together plans a pool by a function, so that jobs start on as few leaf switches as they want, or have waited for that.
// It returns what planAnew returns.
func (p Pool) together(s Strategy, plan func(Pool, Strategy) ([]Planned, int, error)) ([]Planned, int, error) {
	planned, rounds, err := plan(p, s)
	if err != nil || p.Switches == nil || !p.Switches.valid(p.Nodes) || p.Switches.Blocks == nil && !slices.ContainsFunc(p.Jobs, func(j PoolJob) bool { return j.Leaves > 0 }) {
		return planned, rounds, err
	}
	g := gathering{p, slices.Clone(p.Jobs), slices.Repeat([]int64{Forever}, len(p.Jobs))}
	for round := 1; g.delay(planned, round); round++ {
		moved, with := p, s
		if moved.Jobs = g.jobs; asksOnce(s) {
			with = keepingOf(s, p.Jobs, planned)
		}
		if planned, _, err = plan(moved, with); err != nil {
			return nil, rounds, err
		}
		rounds++
	}
	for j, early := range g.early {
		if early != Forever && planned[j].Unfit == "" {
			planned[j].Waits = max(planned[j].Start-early, 0)
		}
	}
	return planned, rounds, nil
}

// gathering is one call of together.
type gathering struct {
	pool  Pool
	jobs  []PoolJob // with the time before which each must not start
	early []int64   // per job, when it could start on more switches than it wants; Forever: it starts on few
}

// delay lets jobs start later that are planned on more switches than they want, and reports whether there were any.
func (g *gathering) delay(planned []Planned, round int) (found bool) {
	looks := 0
	for j, job := range g.pool.Jobs {
		if !g.pool.scattered(j, planned[j]) {
			continue
		}
		if g.early[j] == Forever {
			g.early[j] = planned[j].Start
		}
		until := exact.AddTime(g.early[j], job.Patience)
		if g.pool.Switches.Blocks != nil {
			until = Forever // Slurm starts it on no others
		}
		switch {
		case planned[j].Start >= until:
		case round > togetherRounds:
			planned[j] = Planned{Unfit: stillScattered}
		default:
			before := found
			found = true
			g.jobs[j].Submit = until
			if looks++; (until == Forever || round <= togetherTries) && looks <= togetherJobs {
				g.jobs[j].Submit = g.pool.gathers(j, planned, until)
			}
			if g.jobs[j].Submit == Forever { // the next round asks again
				g.jobs[j].Submit, found = job.Submit, before
				planned[j] = Planned{Unfit: "no block has enough nodes, as far as is known"}
			}
		}
	}
	return found
}

// scattered reports whether a job is planned to start on more leaf switches than it wants.
func (p Pool) scattered(j int, planned Planned) bool {
	job := p.Jobs[j]
	if p.Switches.Blocks != nil && !job.Fixed && planned.Unfit == "" && len(planned.Nodes) > 0 {
		return !p.Switches.accepts(planned.Nodes[0])
	}
	return p.Switches.Blocks == nil && job.Leaves > 0 && !job.Fixed && planned.Unfit == "" && len(planned.Nodes) > 0 && p.Switches.leaves(planned.Nodes[0]) > job.Leaves
}

// leaves counts the leaf switches of some nodes.
func (s *Switches) leaves(nodes []int) int {
	seen := make(map[int]bool)
	for _, n := range nodes {
		seen[s.Leaf[n]] = true
	}
	return len(seen)
}

// gathers returns the first second after its planned start, and before `until`, at which a job finds enough nodes on few
// switches; else until.
func (p Pool) gathers(j int, planned []Planned, until int64) int64 {
	steps, from := planned[j].Steps, planned[j].Start
	lasts := int64(0) // as long as it has its first nodes
	for _, step := range steps {
		if step.Nodes < steps[0].Nodes {
			break
		}
		lasts = exact.AddTime(lasts, step.Duration)
	}
	byNode, err := busyByNode(p.Nodes, p.inUse(j, planned))
	if err != nil {
		return until
	}
	count, times := make([]int, len(p.Switches.Above)), 0
	changes := p.startable(byNode, from+1, until, lasts)
	for i, c := range changes {
		if count[c.leaf] += c.by; i+1 < len(changes) && changes[i+1].at == c.at {
			continue
		}
		if times++; times > togetherTimes {
			break
		}
		if c.at > from && p.Switches.room(count, steps[0].Nodes, p.Jobs[j].Leaves) {
			return c.at
		}
	}
	return until
}

// room reports whether a job finds some nodes on as few leaves as it wants, or on blocks that Slurm accepts. It gets the
// number of nodes per leaf.
func (s *Switches) room(count []int, nodes, leaves int) bool {
	if s.Blocks != nil {
		return len(s.Blocks.choices(nodes, count)) > 0
	}
	return largest(slices.Clone(count), leaves) >= nodes
}

// Starts reports whether Slurm could start a job of n nodes on some nodes if they were free.
func (s *Switches) Starts(nodes []int, n int) bool {
	count := make([]int, len(s.Above))
	for _, node := range nodes {
		count[s.Leaf[node]]++
	}
	return s.room(count, n, len(count))
}

// largest adds up the n largest numbers, and sorts the list.
func largest(list []int, n int) (sum int) {
	slices.SortFunc(list, func(a, b int) int { return cmp.Compare(b, a) })
	for _, k := range list[:min(n, len(list))] {
		sum += k
	}
	return sum
}

// inUse returns when which nodes are in use or reserved by others than a waiting job.
func (p Pool) inUse(except int, planned []Planned) []NodeBusy {
	all := slices.Concat(p.Busy, p.Reserved)
	for j, one := range planned {
		if j == except || one.Unfit != "" {
			continue
		}
		at := one.Start
		for k, step := range one.Steps {
			for _, n := range one.Nodes[k] {
				all = append(all, NodeBusy{n, at, at + step.Duration})
			}
			at += step.Duration
		}
	}
	return all
}

// startChange is a change of how many nodes of a leaf switch a job could start on.
type startChange struct {
	at       int64
	leaf, by int
}

// startable returns, by time, the changes of the number of nodes on which a job that lasts for some time could start
// during [from, until).
func (p Pool) startable(byNode [][]NodeBusy, from, until, lasts int64) []startChange {
	var all []startChange
	for n, busy := range byNode {
		at := from
		note := func(end int64) {
			if last := end - lasts; end == Forever {
				all = append(all, startChange{at, p.Switches.Leaf[n], 1})
			} else if last >= at {
				all = append(all, startChange{at, p.Switches.Leaf[n], 1}, startChange{last + 1, p.Switches.Leaf[n], -1})
			}
		}
		for _, b := range busy {
			if b.Start > at {
				note(b.Start)
			}
			if at = max(at, b.End); at >= until {
				break
			}
		}
		if at < until {
			note(Forever)
		}
	}
	all = slices.DeleteFunc(all, func(c startChange) bool { return c.at >= until })
	slices.SortStableFunc(all, func(a, b startChange) int { return cmp.Compare(a.at, b.at) })
	return all
}

// keeping is a strategy that keeps what another one has planned, as far as jobs start no earlier than they may. The
// other one is not called.
type keeping struct {
	Strategy
	was map[string]Planned // by job ID
}

func keepingOf(s Strategy, jobs []PoolJob, planned []Planned) keeping {
	if k, ok := s.(keeping); ok {
		s = k.Strategy
	}
	was := make(map[string]Planned, len(jobs))
	for j, job := range jobs {
		was[job.ID] = planned[j]
	}
	return keeping{s, was}
}

// AsksOnce, ExpandLimit, Moldable, and Rigid are those of the other strategy.
func (k keeping) AsksOnce() bool           { return true }
func (k keeping) ExpandLimit() ExpandLimit { return ExpandLimitOf(k.Strategy) }
func (k keeping) Moldable() bool           { return true }
func (k keeping) Rigid() bool              { return IsRigid(k.Strategy) }

// PlanPartly implements [Partial].
func (k keeping) PlanPartly(p Problem) (Schedule, map[int]string, error) {
	plan, unfit, limit := make(Schedule, len(p.Jobs)), map[int]string{}, k.ExpandLimit()
	if k.Rigid() {
		p, limit = p.Rigid(), 1
	}
	for i, job := range p.Jobs {
		was := k.was[job.ID]
		if was.Unfit != "" {
			unfit[i] = was.Unfit
			continue
		}
		if plan[i] = was.Placement; k.Rigid() {
			plan[i].Steps = Profile{{Duration: was.Steps.Duration(), Nodes: was.Steps.Peak()}}
		}
		plan[i].Start = max(plan[i].Start, job.Submit)
	}
	return keepPartly(p, plan, unfit, limit)
}
