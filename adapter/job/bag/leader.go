package bag

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	flushPause = 200 * time.Millisecond // records are written together
	syncPause  = time.Second
	fullPause  = 2 * time.Second // before a journal that could not be written is tried again
	mostOwed   = 20_000          // records not written yet, with which no task is leased
	mostSaid   = 20              // tasks whose failure is reported at once
	atOnce     = 10              // seconds; a run from a checkpoint that fails within them could not read it

	// SavedStatus is the exit status of a task that has written its checkpoint, because it was asked to.
	SavedStatus = 99
)

// Options say how a bag is worked off.
type Options struct {
	Setup
	Retries  int
	TaskTime time.Duration // that a task takes; 0: it is learnt
	Say      func(format string, args ...any)
}

// Leader leases the tasks of a bag to workers. Its methods may be called from any goroutine.
type Leader struct {
	Options
	campaign *Campaign // nil: the bag is this leader's alone
	wake     chan struct{}
	quit     chan struct{}
	stopped  sync.WaitGroup
	over     chan struct{} // closed once nothing is left to do, or another leader has taken over
	ending   sync.Once

	mu      sync.Mutex
	shares  []*share
	past    []float32 // seconds of the tasks of earlier shares that were done
	members []*Member
	slots   int
	blocked error // why no task is leased
	taken   bool
	runs    int
	said    int
	took    []float64 // seconds of the latest checkpoints, made or not

	ends     time.Time // of the job; zero: unknown
	late     bool      // no task would end before that
	learnt   time.Duration
	learntBy int // tasks that were done then

	out     outage // of a campaign's cluster
	failing string // why leases could not be kept, as was said last
}

// entry is a record to write, and the files to put in place before.
type entry struct {
	Record
	run   string
	files [][2]string // from, to; to "": removed
}

// Member is a worker on a node.
type Member struct {
	leader  *Leader
	node    string
	slots   int
	pipe    *pipe
	from    splitter
	hello   bool
	until   time.Time // by when the node has to be left; zero: unknown
	leaving bool
	ending  bool // Slurm ends it
	gone    bool
	runs    map[int]string // by task
}

// Lead starts to work off the bag that Open has opened.
func Lead(o Options, j *Journal, s *State) *Leader {
	return begun(&Leader{Options: o, shares: []*share{{journal: j, state: s}}})
}

// begun starts to write.
func begun(l *Leader) *Leader {
	l.wake, l.quit, l.over = make(chan struct{}, 1), make(chan struct{}), make(chan struct{})
	l.checkOver()
	l.stopped.Go(l.write)
	return l
}

// Over is closed once nothing is left to do.
func (l *Leader) Over() <-chan struct{} { return l.over }

// Join adds a worker on a node: lines for it are written to `to`. What it writes goes to the member.
func (l *Leader) Join(node string, slots int, to io.WriteCloser) *Member {
	slots = min(max(slots, 1), 4096)
	m := &Member{leader: l, node: node, slots: slots, runs: map[int]string{}, pipe: newPipe(to, slots+16)}
	m.from.do = m.heard
	l.mu.Lock()
	defer l.mu.Unlock()
	l.members = append(l.members, m)
	return m
}

// Write takes what the worker writes.
func (m *Member) Write(b []byte) (int, error) { return m.from.Write(b) }

// heard takes a line from the worker.
func (m *Member) heard(line []byte) {
	var w fromWorker
	if json.Unmarshal(line, &w) != nil {
		return
	}
	l := m.leader
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case m.gone:
	case w.Hello && !m.hello:
		m.hello = true
		m.pipe.send(toWorker{Setup: &l.Setup})
		l.count()
	case w.Ending:
		m.ending = true
		l.count()
	case w.Ended != nil && m.runs[w.Ended.Task] == w.Ended.Run && w.Ended.Run != "":
		delete(m.runs, w.Ended.Task)
		l.ended(*w.Ended)
	}
	l.lease()
}

// Drain has the worker end its tasks within the limit, and take no more.
func (m *Member) Drain(limit time.Duration) {
	m.leader.mu.Lock()
	defer m.leader.mu.Unlock()
	m.leaving = true
	s := limit.Seconds()
	m.pipe.send(toWorker{Drain: &s})
	m.leader.count()
}

// takes reports whether the worker takes tasks.
func (m *Member) takes() bool { return m.hello && !m.leaving && !m.ending }

// Leave removes a worker that has ended. What it ran runs again.
func (m *Member) Leave() {
	l := m.leader
	m.pipe.close()
	l.mu.Lock()
	defer l.mu.Unlock()
	if m.gone {
		return
	}
	m.gone = true
	l.members = slices.DeleteFunc(l.members, func(o *Member) bool { return o == m })
	var tasks []int
	for i := range m.runs {
		tasks = append(tasks, i)
	}
	slices.Sort(tasks)
	for _, i := range tasks {
		s := l.share(i)
		r := Record{Kind: Back, Task: i - s.base, Saved: l.Keep.Kind != KeepNone && l.kept(s.state.ID(i-s.base))}
		if !m.leaving {
			if r.Kind = s.state.Loss(r.Task); r.Kind == Fail {
				r.Why = fmt.Sprintf("its worker was lost %d times", mostLosses+1)
			}
		}
		l.put(s, r, m.runs[i])
	}
	if len(tasks) > 0 && !m.leaving {
		l.setback("a worker was lost on node " + m.node)
	}
	if m.hello {
		l.count()
	}
	l.lease()
	l.checkOver()
}

// ended decides what becomes of a task whose run has ended.
func (l *Leader) ended(e over) {
	s := l.share(e.Task)
	r := Record{Task: e.Task - s.base, Status: e.Status, Signal: e.Signal, Seconds: e.Seconds, Why: e.Why, Saved: e.Saved}
	switch {
	case e.Status == 0 && e.Signal == 0 && e.Why == "" && !(e.Asked && e.Saved && l.Keep.Command != nil):
		r.Kind, r.Saved = Done, false
		l.out = outage{proven: true}
	case e.Asked || e.Full || l.blocked != nil:
		r.Kind = Back
	case l.campaign != nil && !l.out.proven: // it may do well on another cluster
		r.Kind = s.state.Loss(r.Task)
		l.setback(fmt.Sprintf("task %d failed: %s", s.state.ID(r.Task), reason(e.Status, e.Signal, e.Why)))
	default:
		r.Kind = s.state.Failure(r.Task, l.Retries, e.Seconds < atOnce)
		r.Saved = r.Kind == Retry && e.Saved
	}
	l.learnGrace(e)
	if e.Full && l.blocked == nil {
		l.block(errors.New("the disk is full"))
	}
	l.put(s, r, e.Run)
	l.checkOver()
}

// learnGrace notes how long a checkpoint took.
func (l *Leader) learnGrace(e over) {
	late := l.Keep.Kind == KeepDemand && e.Signal == int(syscall.SIGKILL) // it takes longer than that
	if e.Asked && (e.Saved || late) {
		l.took = append(l.took[max(0, len(l.took)-999):], e.Took)
	}
}

// put applies a record to a share, and has it written.
func (l *Leader) put(s *share, r Record, run string) {
	r.At = seconds(time.Now())
	if !s.state.Apply(r) {
		return
	}
	id := s.state.ID(r.Task)
	e := entry{Record: r, run: run}
	if r.Kind != Run && r.Kind != Slots {
		for _, file := range l.outputs(id) {
			from, to := file+"."+run, ""
			switch {
			case r.Kind == Done || r.Kind == Fail:
				to = file
			case r.Saved:
				to = file + partSuffix
			}
			e.files = append(e.files, [2]string{from, to})
		}
		if l.Keep.Kind != KeepNone && (r.Kind == Done || r.Kind == Void) {
			e.files = append(e.files, [2]string{l.saved(id), ""})
		}
	}
	l.report(r, id)
	s.owed = append(s.owed, e)
	l.poke()
}

// report reports failures, but not thousands of them.
func (l *Leader) report(r Record, id int) {
	if r.Kind != Fail && r.Kind != Void {
		return
	}
	switch l.said++; {
	case l.said == mostSaid+1:
		l.Say("more tasks fail; see evosctl tasks --failed %s", l.Dir)
	case l.said > mostSaid:
	case r.Kind == Void:
		l.Say("task %d could not go on from its checkpoint (%s): it starts from its beginning", id, reason(r.Status, r.Signal, r.Why))
	default:
		l.Say("task %d failed: %s", id, reason(r.Status, r.Signal, r.Why))
	}
}

// reason says in words how a run ended.
func reason(status, signal int, why string) string {
	switch {
	case why != "":
		return why
	case signal != 0:
		return "signal " + strconv.Itoa(signal) + " (" + syscall.Signal(signal).String() + ")"
	}
	return "exit status " + strconv.Itoa(status)
}

// count records how many tasks may run at once.
func (l *Leader) count() {
	slots := 0
	for _, m := range l.members {
		if m.takes() {
			slots += m.slots
		}
	}
	switch {
	case slots == l.slots:
		return
	case l.campaign == nil:
		l.put(l.shares[0], Record{Kind: Slots, Slots: slots}, "")
	}
	l.slots = slots
	l.poke()
}

// lease gives tasks to workers that can take more.
func (l *Leader) lease() {
	if l.blocked != nil || l.taken || l.late || l.out.isOut(time.Now()) {
		return
	}
	owing := l.owing()
	for _, m := range l.members {
		for m.takes() && len(m.runs) < m.slots && owing < mostOwed && fits(time.Now(), m.until, l.need()) {
			s, i, ok := l.peek()
			if !ok {
				return
			}
			l.runs++
			owing++
			run := fmt.Sprintf("%d-%d", s.journal.epoch, l.runs)
			o := order{Task: s.base + i, ID: s.state.ID(i), Run: run, Text: s.state.Text(i), Saved: s.state.Saved(i)}
			l.put(s, Record{Kind: Run, Task: i, Node: m.node}, run)
			m.runs[o.Task] = run
			m.pipe.send(toWorker{Run: &o})
		}
	}
}

func (l *Leader) checkOver() {
	l.checkLate()
	if l.taken || l.late || l.campaign == nil && l.shares[0].state.Over() {
		l.ending.Do(func() { close(l.over) })
	}
}

func (l *Leader) block(err error) {
	l.blocked = err
	l.Say("%v: no task is started until the journal in %s can be written", err, l.Dir)
}

// GraceTaken returns how long nearly all checkpoints took, or false if none was asked for.
func (l *Leader) GraceTaken() (time.Duration, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.took) == 0 {
		return 0, false
	}
	all := slices.Sorted(slices.Values(l.took))
	return duration(all[(len(all)*95)/100]), true
}

func (l *Leader) poke() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// write writes what is owed until the leader is closed.
func (l *Leader) write() {
	var synced time.Time
	dirty := false
	for {
		wait, rest := flushPause, time.Duration(0)
		if l.flush() {
			dirty = true
		}
		if dirty && time.Since(synced) >= syncPause {
			dirty, synced = l.sync(), time.Now()
		}
		if l.campaign != nil {
			rest = l.attend()
		}
		l.mu.Lock()
		owing, blocked := l.owing(), l.blocked != nil
		l.mu.Unlock()
		if blocked {
			wait = fullPause
		}
		select {
		case <-l.quit:
			return
		case <-time.After(wait):
		}
		if owing > 0 || dirty {
			continue
		}
		var after <-chan time.Time
		if rest > 0 {
			after = time.After(rest)
		}
		select {
		case <-l.wake:
		case <-after:
		case <-l.quit:
			return
		}
	}
}

// place puts a file where it belongs, if there is one.
func place(from, to string) {
	if to == "" {
		_ = os.RemoveAll(from) // what is left of it only takes room
		return
	}
	if info, err := os.Lstat(from); err == nil && info.Size() == 0 {
		_ = os.Remove(from)
		_ = os.Remove(to) // of an earlier run
		return
	}
	_ = os.Rename(from, to)
}

// Close writes what is owed, and returns how the bag stands.
func (l *Leader) Close() (Summary, error) {
	close(l.quit)
	l.stopped.Wait()
	l.flush()
	if l.campaign != nil {
		return l.giveUp()
	}
	s := l.shares[0]
	err := errors.Join(s.journal.Sync(), s.journal.Close())
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.taken:
		err = ErrTaken
	case len(s.owed) > 0:
		err = fmt.Errorf("the ends of %d runs could not be written: %w", len(s.owed), errors.Join(l.blocked, err))
	}
	return s.state.Summary(time.Now()), err
}

// String returns the summary in one line.
func (s Summary) String() string {
	parts := []string{fmt.Sprintf("%d of %d tasks done", s.Done, s.Tasks)}
	if s.Failed > 0 {
		parts = append(parts, fmt.Sprintf("%d failed", s.Failed))
	}
	if left := s.Running + s.Waiting; left > 0 {
		parts = append(parts, fmt.Sprintf("%d left", left))
	}
	return strings.Join(parts, ", ")
}
