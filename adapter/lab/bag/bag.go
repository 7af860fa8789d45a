package bag

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
)

// Never is the time of what does not happen.
const Never = math.MaxInt64 / 2

// Use is a time for which a local job has a processor.
type Use struct {
	Job        int
	Start, End int64
}

// Plan holds, from second At on, when the plan of the local jobs submitted by then next uses each
// processor; Never if it does not.
type Plan struct {
	At   int64
	Next []int64
}

// Cluster is the processors and their local jobs, until the second at which the simulation ends.
type Cluster struct {
	Uses  [][]Use // by processor, in order of time
	Plans []Plan  // in order of time
	Until int64
}

// Model says what tasks are like.
type Model struct {
	Task         int64   `json:"task"`          // seconds of computation
	Reaction     int64   `json:"reaction"`      // seconds to start or restart a task
	Grace        int64   `json:"grace"`         // seconds that an interrupted task has to make a checkpoint on demand
	Checkpoint   float64 `json:"checkpoint"`    // mean seconds that a checkpoint takes, distributed exponentially
	Error        float64 `json:"error"`         // chance that a task fails
	RestartError float64 `json:"restart_error"` // the same after a restart from a checkpoint
	Period       int64   `json:"period"`        // seconds of computation between two periodic checkpoints
	Overhead     int64   `json:"overhead"`      // seconds for which each of them stops its task
}

// Strategy says when checkpoints are made, and which task goes where.
type Strategy uint8

const (
	None        Strategy = iota // no checkpoints
	Periodic                    // checkpoints in regular intervals
	Triggered                   // a checkpoint on demand, within the grace
	Planned                     // also a checkpoint in time before a planned use, and tasks that fit before it
	Clairvoyant                 // the same, as if all local jobs were known from the beginning
)

var names = [...]string{"none", "periodic", "triggered", "plan-aware", "clairvoyant"}

func (s Strategy) String() string { return names[s] }

// Strategies lists all strategies.
var Strategies = []Strategy{None, Periodic, Triggered, Planned, Clairvoyant}

// demand reports whether an interrupted task makes a checkpoint.
func (s Strategy) demand() bool { return s >= Triggered }

// Outcome is how a run ended.
type Outcome uint8

const (
	Running     Outcome = iota // not, when the simulation did
	Terminated                 // the task is done
	Failed                     // the task is lost
	Interrupted                // the task goes on from its last checkpoint, or begins again
)

// Run is one execution of a task on a processor.
type Run struct {
	Task, Processor int
	Start, End      int64
	From            int64 // seconds of computation in the checkpoint that it started from
	Done            int64 // seconds that it computed
	Kept            int64 // seconds of computation in the task's checkpoint afterwards
	Outcome         Outcome
	Job             int     // local job that interrupted it; -1 if it made room before, or for none
	Delay           float64 // seconds for which that job waited for it
}

// state is a simulation.
type state struct {
	Model
	Cluster
	Strategy
	random *rand.Rand

	hoards  bool // it starts a new task, not one with a checkpoint, where none fits
	now     int64
	plan    int   // the current one; -1 before the first
	used    []int // number of uses of each processor that have begun
	current []*run
	saved   []saved // tasks with a checkpoint, the first to go on first
	tasks   int     // taken from the bag
	runs    []Run
}

// run is a run that is under way.
type run struct {
	Run
	fails int64 // seconds of computation after which it fails; Never if it does not
}

// saved is a task with a checkpoint.
type saved struct {
	task int
	work int64 // seconds of computation in it
}

// Simulate returns the runs in order of their ends. The clairvoyant takes the way on which the most
// tasks terminate: one of its own, or another strategy's.
func (m Model) Simulate(c Cluster, s Strategy, seed uint64) []Run {
	runs := m.simulate(c, s, false, seed)
	if s != Clairvoyant {
		return runs
	}
	ways := [][]Run{m.simulate(c, s, true, seed)}
	for _, other := range Strategies[:Clairvoyant] {
		ways = append(ways, m.simulate(c, other, false, seed))
	}
	for _, way := range ways {
		if Count(way).Terminated > Count(runs).Terminated {
			runs = way
		}
	}
	return runs
}

func (m Model) simulate(c Cluster, s Strategy, hoards bool, seed uint64) []Run {
	x := state{Model: m, Cluster: c, Strategy: s, hoards: hoards, random: rand.New(rand.NewPCG(seed, 0)), plan: -1, used: make([]int, len(c.Uses)), current: make([]*run, len(c.Uses))}
	for x.now = 0; x.now < c.Until; x.now = x.next() {
		for x.plan+1 < len(c.Plans) && c.Plans[x.plan+1].At <= x.now {
			x.plan++
		}
		for p := range c.Uses {
			x.step(p)
		}
		x.place()
	}
	x.now = c.Until
	for p, r := range x.current {
		if r != nil {
			x.end(p, Running)
		}
	}
	return x.runs
}

// next returns the next second at which anything happens.
func (x *state) next() int64 {
	at := x.Until
	if x.plan+1 < len(x.Plans) {
		at = min(at, x.Plans[x.plan+1].At)
	}
	for p, r := range x.current {
		if n := x.used[p]; n > 0 && x.Uses[p][n-1].End > x.now {
			at = min(at, x.Uses[p][n-1].End)
		} else if n < len(x.Uses[p]) {
			at = min(at, x.Uses[p][n].Start)
		}
		if r != nil {
			at = min(at, x.ends(r), max(x.known(p)-x.lead(), x.now+1))
		}
	}
	return at
}

// step carries out what happens on a processor now.
func (x *state) step(p int) {
	if r := x.current[p]; r != nil && x.ends(r) <= x.now {
		x.end(p, Terminated)
	}
	if n := x.used[p]; n < len(x.Uses[p]) && x.Uses[p][n].Start <= x.now {
		x.used[p]++
		if r := x.current[p]; r != nil {
			r.Job = x.Uses[p][n].Job
			if x.demand() {
				x.checkpoint(r, x.Grace)
			}
			x.end(p, Interrupted)
		}
	} else if r := x.current[p]; r != nil && x.known(p)-x.lead() <= x.now {
		x.checkpoint(r, x.known(p)-x.now)
		x.end(p, Interrupted)
	}
}

// known returns when the strategy knows that a local job next uses a processor that has none; Never
// if it does not.
func (x *state) known(p int) int64 {
	switch {
	case x.Strategy == Clairvoyant && x.used[p] < len(x.Uses[p]):
		return x.Uses[p][x.used[p]].Start
	case x.Strategy == Planned && x.plan >= 0 && x.Plans[x.plan].Next[p] > x.now:
		return x.Plans[x.plan].Next[p]
	}
	return Never
}

// lead returns how long before a known use a task makes its checkpoint, so that hardly any is late.
func (x *state) lead() int64 { return int64(math.Ceil(5 * x.Checkpoint)) }

// pauses returns how long a run has been stopped by periodic checkpoints when it has computed for so
// many seconds.
func (x *state) pauses(done int64) int64 {
	if x.Strategy != Periodic {
		return 0
	}
	return max(done-1, 0) / x.Period * x.Overhead
}

// ends returns when a run terminates or fails.
func (x *state) ends(r *run) int64 {
	done := min(x.Task-r.From, r.fails)
	return r.Start + x.Reaction + done + x.pauses(done)
}

// done returns the seconds that a run has computed by now, and those of them in periodic checkpoints.
func (x *state) done(r *run) (all, kept int64) {
	passed := max(x.now-r.Start-x.Reaction, 0)
	if x.Strategy == Periodic {
		cycle := x.Period + x.Overhead
		kept = min(passed/cycle*x.Period, x.Task-r.From)
		passed = kept + min(passed%cycle, x.Period)
	}
	return min(passed, x.Task-r.From, r.fails), kept
}

// checkpoint makes a checkpoint of a run, if that takes no longer than within.
func (x *state) checkpoint(r *run, within int64) {
	takes := x.random.ExpFloat64() * x.Checkpoint
	if r.Job >= 0 {
		r.Delay = min(takes, float64(within))
	}
	if all, _ := x.done(r); takes <= float64(within) {
		r.Kept = r.From + all
	}
}

// end ends the run on a processor. What would have terminated has failed if it was drawn to.
func (x *state) end(p int, outcome Outcome) {
	r := x.current[p]
	x.current[p] = nil
	all, kept := x.done(r)
	r.End, r.Done, r.Kept = x.now, all, max(r.Kept, r.From+kept)
	if outcome == Terminated && r.fails < Never {
		outcome = Failed
	}
	if r.Outcome = outcome; outcome == Interrupted && r.Kept > 0 {
		x.saved = append(x.saved, saved{r.Task, r.Kept})
	}
	x.runs = append(x.runs, r.Run)
}

// place starts tasks on the processors that nobody has. Tasks with a checkpoint go first. Without a
// plan, they go in order of their checkpoints. With one, the processors with the shortest gap come
// first, and then those that local jobs get first. Each gets the task that fits into its gap. An open
// gap gets the one with the least left to compute, which most likely terminates.
func (x *state) place() {
	plans := x.Strategy >= Planned
	var idle []int
	for p, r := range x.current {
		if n := x.used[p]; r == nil && (n == 0 || x.Uses[p][n-1].End <= x.now) {
			idle = append(idle, p)
		}
	}
	if plans {
		slices.SortStableFunc(idle, func(a, b int) int { return cmp.Compare(x.known(a), x.known(b)) })
		slices.SortStableFunc(x.saved, func(a, b saved) int { return cmp.Compare(b.work, a.work) })
	}
	for _, p := range idle {
		room := x.known(p) - x.now - x.Reaction
		if room <= x.lead() {
			continue // no time to compute and make a checkpoint
		}
		first := 0
		if x.known(p) < Never {
			if first = x.fits(room); first < 0 && room < x.Task && !x.hoards {
				first = 0
			}
		}
		x.start(p, first)
	}
}

// fits returns which task with a checkpoint has the most left to compute of those that take up only
// what whole tasks leave of room; -1 if none does.
func (x *state) fits(room int64) int {
	beside := room % (x.Task + x.Reaction)
	last := len(x.saved) - 1
	for last >= 0 && x.Task-x.saved[last].work > beside {
		last--
	}
	return last
}

// start starts a task with a checkpoint on a processor, or one from the bag if there is none.
func (x *state) start(p, saved int) {
	r := &run{Run: Run{Task: x.tasks, Processor: p, Start: x.now, Job: -1}, fails: Never}
	chance := x.Error
	if saved >= 0 && saved < len(x.saved) {
		s := x.saved[saved]
		x.saved = slices.Delete(x.saved, saved, saved+1)
		r.Task, r.From, r.Kept, chance = s.task, s.work, s.work, x.RestartError
	} else {
		x.tasks++
	}
	if fails, after := x.random.Float64(), x.random.Float64(); fails < chance {
		r.fails = 1 + int64(after*float64(x.Task-r.From-1))
	}
	x.current[p] = r
}

// Tally counts runs as the thesis does: every run is in one of the columns.
type Tally struct {
	Terminated, Running, Failed int
	Wasted, Valuable            int   // interrupted; valuable are those from whose checkpoint the task went on and terminated
	Lost                        int64 // seconds of computation that were in no checkpoint when a task was interrupted
}

// Total returns the number of runs.
func (t Tally) Total() int { return t.Terminated + t.Running + t.Failed + t.Wasted + t.Valuable }

// Count returns the tally of runs.
func Count(runs []Run) (t Tally) {
	terminated := make(map[int]bool)
	for _, r := range runs {
		if r.Outcome == Terminated {
			terminated[r.Task] = true
		}
	}
	for _, r := range runs {
		switch r.Outcome {
		case Terminated:
			t.Terminated++
		case Running:
			t.Running++
		case Failed:
			t.Failed++
		case Interrupted:
			if t.Lost += r.From + r.Done - r.Kept; r.Kept > r.From && terminated[r.Task] {
				t.Valuable++
			} else {
				t.Wasted++
			}
		}
	}
	return t
}
