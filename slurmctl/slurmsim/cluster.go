package slurmsim

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/evoslurm/evoslurm/slurmctl"
)

// Cluster is the model: its state as plain data, and its agenda. Only one goroutine may use it and
// everything that it returns.
type Cluster struct {
	options Options
	now     time.Duration // since the start
	skew    time.Duration // how far the clock was moved
	agenda  agenda
	seq     uint64
	inside  bool // a callback is running
	chance  *rand.Rand

	processes []*Process
	idle      []*coroutine
	current   *Process // the running process
	commands  uint64
	underWay  []*underWay

	state
	saved  state // what slurmctld would know after a crash
	stale  []slurmctl.JobID
	dirty  bool // changed since the last save
	saving bool // a save is on the agenda

	down    bool     // slurmctld is down
	missed  []func() // what nodes report once slurmctld is back
	boot    time.Time
	running map[slurmctl.JobID]*Process // scripts, whether slurmctld knows them or not

	users    []User // users who have submitted
	watched  bool   // a client exists and may see plans
	uniform  bool   // all nodes have the same CPUs and weight
	loop     loop
	backfill backfill
	room     scratch
}

// state holds what slurmctld knows. It writes to disk jobs, reservations, partitions, and
// administrators' changes to nodes.
type state struct {
	nodes        []node
	rank         []int // a node's position by name
	index        map[string]int
	kinds        []slurmctl.GRES // existing kinds
	partitions   []*partition
	jobs         map[slurmctl.JobID]*job
	pending      []*job // most urgent first, unless disorder is set
	disorder     bool
	special      bool   // some job has waited for more than nodes, or was changed
	active       []*job // running and suspended jobs, in order of start
	ending       []*job // completing
	merged       []*job // merged expanders that still count
	byEnd        []*job // active jobs by the ends of their limits; nil if to be built
	reservations []*reservation
	lastID       slurmctl.JobID
	usage        usage
	shared       int     // active jobs that share nodes
	up           nodeSet // neither down nor drained
	completing   nodeSet
	resuming     nodeSet // powering up
}

// node is a node; its jobs record their own shares.
type node struct {
	slurmctl.Node
	gres    []int64 // by kind
	leaked  bool    // allocated to a job that has ended
	down    bool
	drained bool
	power   slurmctl.Power
	powered time.Duration // since when the node has this power state, or its last use
	broken  bool          // fails to power up
	freeing int           // jobs that are completing there
}

type partition struct {
	Partition
	set nodeSet
}

// New creates a cluster whose clock starts at the options' Start.
func New(o Options) *Cluster {
	o = o.withDefaults()
	c := &Cluster{options: o, boot: o.Start, running: map[slurmctl.JobID]*Process{}}
	c.chance = rand.New(rand.NewPCG(o.Seed, 2205))
	c.index, c.jobs = map[string]int{}, map[slurmctl.JobID]*job{}
	c.nodes = make([]node, len(o.NodeList))
	c.up, c.uniform = newNodeSet(len(c.nodes)), true
	for i, n := range o.NodeList {
		c.uniform = c.uniform && n.CPUs == o.NodeList[0].CPUs && n.Weight == o.NodeList[0].Weight
		c.index[n.Name] = i
		c.nodes[i].Node = n
		c.nodes[i].Partitions = nil
		c.up.add(i)
	}
	if err := c.findKinds(); err != nil {
		panic(err) // a mistake in the options
	}
	for _, given := range o.Partitions {
		p := &partition{Partition: given, set: newNodeSet(len(c.nodes))}
		orElse(&p.MinNodes, 1)
		orElse(&p.OverSubscribe, "NO")
		orElse(&p.Tier, 1)
		if p.Nodes == nil {
			for i := range c.nodes {
				p.Nodes = append(p.Nodes, c.nodes[i].Name)
			}
		}
		for _, name := range p.Nodes {
			i := c.index[name]
			p.set.add(i)
			c.nodes[i].Partitions = append(c.nodes[i].Partitions, p.Name)
		}
		c.partitions = append(c.partitions, p)
	}
	for _, name := range o.PowerSaving.Off {
		c.nodes[c.index[name]].power = slurmctl.PoweredDown
	}
	c.rank = ranks(c.nodes)
	c.rebuild()
	c.save()
	c.loop.start()
	c.wake()
	c.backfill.ended = c.second()
	return c
}

// rebuild computes from the jobs what is in use on the nodes.
func (c *Cluster) rebuild() {
	c.pending, c.active, c.ending, c.merged, c.byEnd = nil, nil, nil, nil, nil
	defer func() { c.backfill.expected = append(c.backfill.expected[:0], c.pending...) }()
	c.usage, c.shared = c.noUsage(), 0
	c.completing = newNodeSet(len(c.nodes))
	c.up, c.resuming = newNodeSet(len(c.nodes)), newNodeSet(len(c.nodes))
	for i := range c.nodes {
		c.nodes[i].freeing = 0
		c.usable(i)
	}
	for _, id := range sortedIDs(c.jobs) {
		j := c.jobs[id]
		j.part = c.partition(j.part.Name)
		for i, p := range j.parts {
			j.parts[i] = c.partition(p.Name)
		}
		switch {
		case j.State == slurmctl.Pending:
			c.queued(j)
		case j.active():
			c.active = append(c.active, j)
			c.take(j, j.nodes)
			if !j.whole() {
				c.shared++
			}
		}
	}
}

// usable puts a node into the sets that match its state.
func (c *Cluster) usable(i int) {
	n := &c.nodes[i]
	if n.down || n.drained || n.leaked || n.power == slurmctl.PowerDown {
		c.up.drop(i)
	} else {
		c.up.add(i)
	}
	if n.power == slurmctl.PowerUp {
		c.resuming.add(i)
	} else {
		c.resuming.drop(i)
	}
}

// SetNode sets a node down, drains it, or resumes it (both false). Jobs on a node that goes down
// end with NODE_FAIL.
func (c *Cluster) SetNode(name string, down, drained bool) {
	i, ok := c.index[name]
	if !ok {
		return
	}
	n := &c.nodes[i]
	n.down, n.drained = down, drained
	c.usable(i)
	if down {
		for _, j := range slices.Clone(c.active) {
			if slices.Contains(j.nodes, i) {
				c.finish(j, "NODE_FAIL")
			}
		}
	}
	c.changed()
	c.kick()
}

// SetBounds replaces Options.Bounds, as sacctmgr does.
func (c *Cluster) SetBounds(bounds ...Bound) {
	c.options.Bounds = bounds
	c.changed()
	c.kick()
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
	c.after(saveEvery, func() {
		c.saving = false
		if c.dirty && !c.down {
			c.save()
		}
	})
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
		copied := *j
		s.jobs[id] = &copied
	}
	c.stale, c.dirty = c.stale[:0], false
	s.lastID = c.lastID
	s.nodes = append(s.nodes[:0], c.nodes...)
	s.reservations = cloneReservations(c.reservations)
	s.partitions = clonePartitions(c.partitions)
}

func cloneReservations(all []*reservation) []*reservation {
	copied := make([]*reservation, len(all))
	for i, r := range all {
		one := *r
		copied[i] = &one
	}
	return copied
}

func clonePartitions(all []*partition) []*partition {
	copied := make([]*partition, len(all))
	for i, p := range all {
		one := *p
		copied[i] = &one
	}
	return copied
}

// StopController stops slurmctld: in good order, so that it knows everything when it is back, or as
// kill -9 does. Commands fail until StartController; jobs keep running.
func (c *Cluster) StopController(kill bool) {
	if c.down {
		return
	}
	if !kill {
		c.save()
	}
	c.down = true
}

// StartController starts slurmctld from its saved state. Expand links are lost. Jobs that ended
// meanwhile end now. Jobs that it does not know are ended on the nodes, which become free.
func (c *Cluster) StartController() {
	if !c.down {
		return
	}
	alive := c.jobs
	c.down, c.dirty, c.saving, c.stale = false, false, false, nil
	c.jobs = make(map[slurmctl.JobID]*job, len(c.saved.jobs))
	for id, j := range c.saved.jobs {
		copied := *j
		c.jobs[id] = &copied
	}
	c.lastID = c.saved.lastID
	c.nodes = slices.Clone(c.saved.nodes)
	c.reservations, c.partitions = cloneReservations(c.saved.reservations), clonePartitions(c.saved.partitions)
	c.boot = c.second()
	c.rebuild()
	for id, p := range sortedProcesses(c.running) {
		if j := c.jobs[id]; j == nil || !j.active() || j.restarts != alive[id].restarts {
			p.Kill() // a process without a job, or of the next run, which mostly has other nodes
			delete(c.running, id)
		}
	}
	for _, id := range sortedIDs(c.jobs) {
		j := c.jobs[id]
		j.expands = 0
		switch now := alive[id]; {
		case j.State == slurmctl.Completing && j.requeued:
			c.again(j)
		case j.State == slurmctl.Completing:
			c.close(j, j.final)
		case j.Ended():
			c.forget(j)
		case !j.active():
		case now == nil, !now.active(), now.request.Program != nil && c.running[id] == nil:
			c.finish(j, slurmctl.Completed) // its nodes say so
		default:
			c.watch(j)
		}
	}
	missed := c.missed
	c.missed = nil
	for _, tell := range missed {
		tell()
	}
	c.takeBatchHosts()
	c.loop.start()
	c.changed()
	c.kick()
}

// Restart stops slurmctld in good order and starts it again.
func (c *Cluster) Restart() {
	c.StopController(false)
	c.StartController()
}

// Crash kills slurmctld and starts it from its saved state.
func (c *Cluster) Crash() {
	c.StopController(true)
	c.StartController()
}
