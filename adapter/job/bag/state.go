package bag

import (
	"math"
	"slices"
	"time"
)

// mostLosses is how often a task may lose its worker: it may be what ends the worker.
const mostLosses = 10

type phase uint8

const (
	waiting phase = iota
	running
	done
	failed
)

// task is the state of a task. There may be a million.
type task struct {
	phase   phase
	saved   bool // it has a checkpoint
	voided  bool // a checkpoint of it could not be read
	status  uint8
	signal  uint8
	losses  uint8
	tries   uint16 // that failed
	seconds float32
}

// lease is a run of a task.
type lease struct {
	Node string
	At   int64
}

// State is the state of a bag: what its records say.
type State struct {
	List
	tasks   []task
	leases  map[int]lease
	whys    map[int]string // why tasks failed, if the status does not say it
	saved   []int          // waiting tasks with a checkpoint
	again   []int          // waiting tasks whose node went
	fresh   int            // the first task that never ran
	retried []int          // waiting tasks that failed

	Began, Last int64 // of the first and last record
	Slots       int
	done        int
	failed      int
	voids       int
	late        int              // ends of runs after the share was leased again, which do not count
	lease       Lease            // of a share
	left        bool             // its leader has given it back
	tallies     map[string]Tally // by cluster

	campaign  bool   // its tasks are in several shares
	collected string // how the task that collects stands; "": there is none
	leaders   []leader
}

// Tally counts what became of runs on a cluster.
type Tally struct {
	Running int `json:"running"`
	Done    int `json:"done"`
	Failed  int `json:"failed"`
	Lost    int `json:"lost"` // because their worker was, or because no task had ended well there before
}

// NewState returns the state of a new bag.
func NewState(l List) *State {
	return &State{List: l, tasks: make([]task, l.Tasks), leases: map[int]lease{}, whys: map[int]string{}}
}

// Apply takes in a record. It reports false, and changes nothing, if the record cannot be true: the end of a task that does
// not run, or the run of one that runs or has ended.
func (s *State) Apply(r Record) bool {
	switch r.Kind {
	case Slots, Left:
		s.Slots = min(max(r.Slots, 0), mostSlots)
		s.left = r.Kind == Left
		s.saw(r.At)
		return true
	}
	if r.Task < 0 || r.Task >= len(s.tasks) {
		return false
	}
	t := &s.tasks[r.Task]
	if r.Kind == Run {
		if t.phase != waiting {
			return false
		}
		t.phase = running
		s.leases[r.Task] = lease{r.Node, r.At}
		s.saw(r.At)
		return true
	}
	if t.phase != running || !s.end(r.Task, t, r) {
		return false
	}
	s.tally(r.Kind)
	delete(s.leases, r.Task)
	t.status, t.signal, t.seconds = uint8(r.Status&0xff), uint8(r.Signal&0x7f), float32(max(r.Seconds, 0))
	s.saw(r.At)
	return true
}

// end is the end of a run.
func (s *State) end(i int, t *task, r Record) bool {
	switch r.Kind {
	case Done:
		t.phase, t.saved = done, false
		s.done++
		return true
	case Fail:
		t.phase = failed
		s.failed++
		if r.Why != "" {
			s.whys[i] = r.Why
		}
		return true
	case Retry:
		t.tries += min(1, math.MaxUint16-t.tries)
		t.phase, t.saved = waiting, r.Saved
	case Void:
		s.voids++
		t.phase, t.saved, t.voided = waiting, false, true
	case Lost:
		t.losses += min(1, math.MaxUint8-t.losses)
		t.phase, t.saved = waiting, r.Saved
	case Back:
		t.phase, t.saved = waiting, r.Saved
	default:
		return false
	}
	s.queue(i, r.Kind == Retry)
	return true
}

// tally counts the end of a run for the cluster of a share's leader.
func (s *State) tally(k Kind) {
	if s.lease.Cluster == "" {
		return
	}
	if s.tallies == nil {
		s.tallies = map[string]Tally{}
	}
	t := s.tallies[s.lease.Cluster]
	switch k {
	case Done:
		t.Done++
	case Fail:
		t.Failed++
	case Lost:
		t.Lost++
	default:
		return
	}
	s.tallies[s.lease.Cluster] = t
}

// queue puts a task that waits again where it belongs.
func (s *State) queue(i int, retried bool) {
	switch {
	case s.tasks[i].saved:
		s.saved = append(s.saved, i)
	case retried:
		s.retried = append(s.retried, i)
	default:
		s.again = append(s.again, i)
	}
}

func (s *State) saw(at int64) {
	if s.Began == 0 {
		s.Began = at
	}
	s.Last = max(s.Last, at)
}

// takeOver makes tasks wait whose leader has ended, for the next one.
func (s *State) takeOver(next Lease) {
	for range s.leases {
		s.tally(Lost)
	}
	s.lease, s.left = next, false
	for i := range s.leases {
		s.tasks[i].phase = waiting
	}
	clear(s.leases)
	s.saved, s.again, s.retried, s.fresh, s.Slots = nil, nil, nil, 0, 0
	for i, t := range s.tasks {
		if t.phase == waiting && t.touched() {
			s.queue(i, t.tries > 0)
		}
	}
}

// touched reports whether a task has run.
func (t task) touched() bool { return t.saved || t.voided || t.tries > 0 || t.losses > 0 }

// Peek returns the task to lease next: those with a checkpoint first, then those whose node went, then those that never
// ran, then those that failed.
func (s *State) Peek() (int, bool) {
	for _, q := range []*[]int{&s.saved, &s.again, nil, &s.retried} {
		if q == nil {
			for ; s.fresh < len(s.tasks); s.fresh++ {
				if t := s.tasks[s.fresh]; t.phase == waiting && !t.touched() {
					return s.fresh, true
				}
			}
			continue
		}
		for ; len(*q) > 0; *q = (*q)[1:] {
			if s.tasks[(*q)[0]].phase == waiting {
				return (*q)[0], true
			}
		}
	}
	return 0, false
}

// waiting returns how many tasks wait.
func (s *State) waiting() int { return len(s.tasks) - s.done - s.failed - len(s.leases) }

// Over reports whether all tasks have ended.
func (s *State) Over() bool { return s.done+s.failed == len(s.tasks) }

// Failure says whether a run that failed is repeated, and how.
func (s *State) Failure(i, retries int, atOnce bool) Kind {
	t := s.tasks[i]
	switch {
	case t.saved && atOnce && !t.voided:
		return Void
	case int(t.tries) < retries:
		return Retry
	}
	return Fail
}

// Loss says what becomes of a task whose worker was lost.
func (s *State) Loss(i int) Kind {
	if s.tasks[i].losses >= mostLosses {
		return Fail
	}
	return Lost
}

// Saved reports whether the task has a checkpoint.
func (s *State) Saved(i int) bool { return s.tasks[i].saved }

// Quantile returns how long at most a fraction q of the tasks that ended well took, or false if none has.
func (s *State) Quantile(q float64) (time.Duration, bool) {
	all := s.took()
	if len(all) == 0 {
		return 0, false
	}
	slices.Sort(all)
	return duration(float64(quantile(all, q))), true
}

// took returns how many seconds the tasks took that ended well.
func (s *State) took() (all []float32) {
	for _, t := range s.tasks {
		if t.phase == done {
			all = append(all, t.seconds)
		}
	}
	return all
}

// Moment returns the time of the last record.
func (s *State) Moment() time.Time { return time.Unix(s.Last, 0) }
