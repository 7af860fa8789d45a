package slurmsim

import (
	"math/rand/v2"
	"time"

	"github.com/evoslurm/evoslurm/slurmctl"
)

// Cluster is the model: its state as plain data, and its agenda. Only one goroutine may use it and
// everything that it returns. Its fields are exported for checkpoints only: see [Parts].
type Cluster struct {
	clock
	options Options `codec:"-"`
	Chance  *rand.PCG
	chance  *rand.Rand `codec:"-"` // draws by Chance

	Processes []*Process
	idle      []*coroutine `codec:"-"`
	current   *Process     `codec:"-"` // the running process
	Commands  uint64
	underWay  []*underWay `codec:"-"`

	state
	Saved  disk
	Stale  []slurmctl.JobID
	Dirty  bool // changed since the last save
	Saving bool // a save is on the agenda

	Down    bool     // slurmctld is down
	Missed  []Action // what nodes report once slurmctld is back
	Boot    time.Time
	Scripts map[slurmctl.JobID]*Process // scripts, whether slurmctld knows them or not

	turns    turns  `codec:"-"`
	Users    []User // users who have submitted
	Watched  bool   // a client exists and may see plans
	Loop     loop
	Backfill backfill
	room     scratch `codec:"-"`
}

// timer is an action of slurmctld's own timers.
type timer uint8

const (
	looks timer = iota
	schedules
	backfills
	saves
)

// Act implements Action.
func (t timer) Act(c *Cluster) {
	switch t {
	case looks:
		c.loopNow()
	case schedules:
		c.scheduleNow()
	case backfills:
		c.backfillNow()
	case saves:
		c.saveNow()
	}
}

// turns holds the functions that slurmctld's own timers call. They are in later files than the
// timers, so New sets them.
type turns struct {
	loop     func()           // a look of the main loop
	schedule func(whole bool) // a pass of the main scheduler
	backfill func()           // a look of the backfill scheduler
	ended    func(*Process)   // a script's end
}

// state holds what slurmctld knows.
type state struct {
	nodeTable
	jobTable
	Partitions   partitions
	Reservations reservations
	Usage        usage
}

// take books a job's nodes, and give releases them.
func (s *state) take(j *job, nodes []int) { s.book(&s.Usage, j, nodes, 1) }
func (s *state) give(j *job, nodes []int) { s.book(&s.Usage, j, nodes, -1) }

// disk holds what slurmctld would know after a crash: jobs, reservations, partitions, and
// administrators' changes to nodes.
type disk struct {
	Nodes        []node
	Jobs         map[slurmctl.JobID]*job
	LastID       slurmctl.JobID
	Partitions   partitions
	Reservations reservations
}

// saveEvery is how far slurmctld's saved state may lag (measured: events six seconds before a crash
// are kept, events right before it mostly not).
const saveEvery = 5 * time.Second

// touch is called after every change of a job.
func (c *Cluster) touch(j *job) {
	if !j.Stale {
		j.Stale = true
		c.Stale = append(c.Stale, j.ID)
	}
	c.changed()
}

// changed is called after every change of the state.
func (c *Cluster) changed() {
	c.Loop.Version++
	c.Backfill.Appended = false
	c.Dirty = true
	c.backfillAt(c.Moment)
	if c.Saving || c.Down {
		return
	}
	c.Saving = true
	c.Later(saveEvery, saves)
}

// saveNow saves what has changed.
func (c *Cluster) saveNow() {
	c.Saving = false
	if c.Dirty && !c.Down {
		c.save()
	}
}

// save writes the changes to the modelled disk.
func (c *Cluster) save() {
	s := &c.Saved
	if s.Jobs == nil {
		s.Jobs = map[slurmctl.JobID]*job{}
	}
	for _, id := range c.Stale {
		j := c.Jobs[id]
		if j == nil {
			delete(s.Jobs, id)
			continue
		}
		j.Stale = false
		record := s.Jobs[id]
		if record == nil {
			record = new(job)
			s.Jobs[id] = record
		}
		*record = *j
	}
	c.Stale, c.Dirty = c.Stale[:0], false
	s.LastID = c.LastID
	if c.Unsaved {
		s.Nodes, c.Unsaved = append(s.Nodes[:0], c.Nodes...), false
	}
	s.Reservations = c.Reservations.clone()
	s.Partitions = c.Partitions.clone()
}

// why sets the reason for which a job waits.
func (c *Cluster) why(j *job, reason string) {
	if !waitsForNodes(j.Reason) || !waitsForNodes(reason) {
		if j.Reason != reason {
			c.Loop.Reasons++
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
		e.Nodes = len(j.Nodes)
	}
	c.options.Events(e)
}

// tell delivers a node's report to slurmctld, at once or when slurmctld is back.
func (c *Cluster) tell(what Action) {
	if c.Down {
		c.Missed = append(c.Missed, what)
		return
	}
	what.Act(c)
}

// reports is a node's report that comes at a time.
type reports struct{ What Action }

// Act implements Action.
func (r reports) Act(c *Cluster) { c.tell(r.What) }

// StepClock sets the clock forward or back, as an administrator or an NTP daemon may. It does not
// wake sleepers.
func (c *Cluster) StepClock(d time.Duration) {
	c.Skew += d
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
func (c *Cluster) Version() uint64 { return c.Loop.Version + c.Loop.Reasons }

// ConfigCommands returns how many commands read the configuration and, if there is one, the topology.
func (c *Cluster) ConfigCommands() int {
	if len(c.options.Topology.Switches) > 0 {
		return 2
	}
	return 1
}

// Looking returns how long a read-only command takes now, without random time.
func (c *Cluster) Looking() time.Duration {
	l := &c.options.Latency
	return l.Look + time.Duration(len(c.Pending)+len(c.Active))*l.PerJob
}
