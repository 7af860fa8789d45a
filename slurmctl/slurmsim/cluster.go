package slurmsim

import (
	"math/rand/v2"
	"time"

	"github.com/evoslurm/evoslurm/slurmctl"
)

// Cluster is the model: its state as plain data, and its agenda. Only one goroutine may use it and
// everything that it returns.
type Cluster struct {
	clock
	options Options
	chance  *rand.Rand

	processes []*Process
	idle      []*coroutine
	current   *Process // the running process
	commands  uint64
	underWay  []*underWay

	state
	saved  disk
	stale  []slurmctl.JobID
	dirty  bool // changed since the last save
	saving bool // a save is on the agenda

	down    bool     // slurmctld is down
	missed  []func() // what nodes report once slurmctld is back
	boot    time.Time
	running map[slurmctl.JobID]*Process // scripts, whether slurmctld knows them or not

	turns    turns
	due      due
	users    []User // users who have submitted
	watched  bool   // a client exists and may see plans
	loop     loop
	backfill backfill
	room     scratch
}

// turns holds the functions that slurmctld's own timers call. They are in later files than the
// timers, so New sets them.
type turns struct {
	loop     func()           // a look of the main loop
	schedule func(whole bool) // a pass of the main scheduler
	backfill func()           // a look of the backfill scheduler
}

// state holds what slurmctld knows.
type state struct {
	nodeTable
	jobTable
	partitions   partitions
	reservations reservations
	usage        usage
}

// take books a job's nodes, and give releases them.
func (s *state) take(j *job, nodes []int) { s.book(&s.usage, j, nodes, 1) }
func (s *state) give(j *job, nodes []int) { s.book(&s.usage, j, nodes, -1) }

// disk holds what slurmctld would know after a crash: jobs, reservations, partitions, and
// administrators' changes to nodes.
type disk struct {
	nodes        []node
	jobs         map[slurmctl.JobID]*job
	lastID       slurmctl.JobID
	partitions   partitions
	reservations reservations
}

// saveEvery is how far slurmctld's saved state may lag (measured: events six seconds before a crash
// are kept, events right before it mostly not).
const saveEvery = 5 * time.Second

// touch is called after every change of a job.
func (c *Cluster) touch(j *job) {
	if !j.stale {
		j.stale = true
		c.stale = append(c.stale, j.ID)
	}
	c.changed()
}

// changed is called after every change of the state.
func (c *Cluster) changed() {
	c.loop.version++
	c.backfill.appended = false
	c.dirty = true
	c.backfillSoon()
	if c.saving || c.down {
		return
	}
	c.saving = true
	c.after(saveEvery, c.due.save)
}

// saveNow saves what has changed.
func (c *Cluster) saveNow() {
	c.saving = false
	if c.dirty && !c.down {
		c.save()
	}
}

// save writes the changes to the modelled disk.
func (c *Cluster) save() {
	s := &c.saved
	if s.jobs == nil {
		s.jobs = map[slurmctl.JobID]*job{}
	}
	for _, id := range c.stale {
		j := c.jobs[id]
		if j == nil {
			delete(s.jobs, id)
			continue
		}
		j.stale = false
		record := s.jobs[id]
		if record == nil {
			record = new(job)
			s.jobs[id] = record
		}
		*record = *j
	}
	c.stale, c.dirty = c.stale[:0], false
	s.lastID = c.lastID
	if c.unsaved {
		s.nodes, c.unsaved = append(s.nodes[:0], c.nodes...), false
	}
	s.reservations = c.reservations.clone()
	s.partitions = c.partitions.clone()
}

// why sets the reason for which a job waits.
func (c *Cluster) why(j *job, reason string) {
	if !waitsForNodes(j.Reason) || !waitsForNodes(reason) {
		if j.Reason != reason {
			c.loop.reasons++
		}
	}
	j.Reason = reason
}

// waitsForNodes reports whether a reason means only that the job's turn has not come.
func waitsForNodes(reason string) bool {
	return reason == "None" || reason == "Priority" || reason == "Resources"
}

func (c *Cluster) event(j *job) {
	if c.options.Events == nil {
		return
	}
	e := Event{At: c.Now(), Job: j.ID, State: j.State}
	if j.active() {
		e.Nodes = len(j.nodes)
	}
	c.options.Events(e)
}

// tell delivers a node's report to slurmctld, at once or when slurmctld is back.
func (c *Cluster) tell(what func()) {
	if c.down {
		c.missed = append(c.missed, what)
		return
	}
	what()
}

// StepClock sets the clock forward or back, as an administrator or an NTP daemon may. It does not
// wake sleepers.
func (c *Cluster) StepClock(d time.Duration) {
	c.skew += d
	c.changed()
	c.wake()
}

// SetBounds replaces Options.Bounds, as sacctmgr does.
func (c *Cluster) SetBounds(bounds ...Bound) {
	c.options.Bounds = bounds
	c.changed()
	c.kick()
}

// Version changes whenever something changes that commands show: jobs, nodes, partitions, or
// reservations. It ignores ageing priorities, starts expected by the backfill scheduler, and
// changes by time alone (whether a reservation has begun).
func (c *Cluster) Version() uint64 { return c.loop.version + c.loop.reasons }

// Looking returns how long a read-only command takes now, without random time.
func (c *Cluster) Looking() time.Duration {
	l := &c.options.Latency
	return l.Look + time.Duration(len(c.pending)+len(c.active))*l.PerJob
}
