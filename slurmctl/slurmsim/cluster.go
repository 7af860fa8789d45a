package slurmsim

import (
	"container/heap"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/evoslurm/evoslurm/slurmctl"
)

// Cluster is the model: its state as plain data, and what is to happen when. It is
// for one goroutine.
type Cluster struct {
	options Options
	now     time.Time
	boot    time.Time // of slurmctld
	agenda  agenda
	seq     uint64

	state
	saved   state // what slurmctld would know after a crash
	dirty   bool  // since then
	saving  bool  // is on the agenda
	waiting bool  // the main scheduler is to run
	planned map[slurmctl.JobID]time.Time
	filled  time.Time // the backfill scheduler, last
	changed bool      // since the backfill scheduler ran
}

// state is what slurmctld writes to disk.
type state struct {
	nodes        []node
	index        map[string]int
	partitions   []slurmctl.Partition
	jobs         map[slurmctl.JobID]*job
	order        []slurmctl.JobID // pending and active jobs, as submitted
	reservations []reservation
	lastID       slurmctl.JobID
}

// node is one node; what its jobs hold is theirs.
type node struct {
	name    string
	used    int  // CPUs
	whole   int  // jobs that have it for themselves
	leaked  bool // allocated to a job that has ended
	down    bool
	drained bool
	freeing int // jobs that are completing there
}

// New makes a cluster whose clock stands at the options' start.
func New(o Options) *Cluster {
	o = o.withDefaults()
	c := &Cluster{options: o, now: o.Start, boot: o.Start, planned: map[slurmctl.JobID]time.Time{}}
	c.index, c.jobs = map[string]int{}, map[slurmctl.JobID]*job{}
	for i := range o.Nodes {
		name := fmt.Sprintf("n%d", i+1)
		c.index[name] = i
		c.nodes = append(c.nodes, node{name: name})
	}
	c.partitions = slices.Clone(o.Partitions)
	for i := range c.partitions {
		p := &c.partitions[i]
		if p.Nodes == nil {
			for _, n := range c.nodes {
				p.Nodes = append(p.Nodes, n.name)
			}
		}
		orElse(&p.MinNodes, 1)
		orElse(&p.OverSubscribe, "NO")
	}
	c.saved = c.clone()
	c.filled = c.now
	c.at(c.now.Add(o.SchedInterval), c.routine)
	if o.BackfillInterval > 0 {
		c.at(c.now.Add(o.BackfillInterval), c.backfillCycle)
	}
	c.at(c.now.Add(limitsEvery), c.limits)
	return c
}

// Now is the virtual time.
func (c *Cluster) Now() time.Time { return c.now }

// Run lets the cluster go on until then.
func (c *Cluster) Run(until time.Time) {
	for len(c.agenda) > 0 && !c.agenda[0].at.After(until) {
		e := heap.Pop(&c.agenda).(entry)
		c.now = e.at
		e.run()
	}
	if until.After(c.now) {
		c.now = until
	}
}

// pass lets virtual time pass.
func (c *Cluster) pass(d time.Duration) { c.Run(c.now.Add(d)) }

// Sleep lets virtual time pass, as Run does.
func (c *Cluster) Sleep(d time.Duration) { c.pass(d) }

// at has run called then; what is due at the same moment is called in the order of
// the calls of at.
func (c *Cluster) at(t time.Time, run func()) {
	if t.Before(c.now) {
		t = c.now
	}
	c.seq++
	heap.Push(&c.agenda, entry{t, c.seq, run})
}

type entry struct {
	at  time.Time
	seq uint64
	run func()
}

type agenda []entry

func (a agenda) Len() int { return len(a) }
func (a agenda) Less(i, j int) bool {
	if !a[i].at.Equal(a[j].at) {
		return a[i].at.Before(a[j].at)
	}
	return a[i].seq < a[j].seq
}
func (a agenda) Swap(i, j int) { a[i], a[j] = a[j], a[i] }
func (a *agenda) Push(x any)   { *a = append(*a, x.(entry)) }
func (a *agenda) Pop() any {
	last := len(*a) - 1
	e := (*a)[last]
	(*a)[last] = entry{}
	*a = (*a)[:last]
	return e
}

// saveEvery is how far behind slurmctld's saved state may be (measured: what happened
// six seconds before a crash is kept, what happened right before it mostly not).
const saveEvery = 5 * time.Second

// touch is called after every change.
func (c *Cluster) touch() {
	c.dirty, c.changed = true, true
	if c.saving {
		return
	}
	c.saving = true
	c.at(c.now.Add(saveEvery), func() {
		c.saving = false
		if c.dirty {
			c.saved, c.dirty = c.clone(), false
		}
	})
}

func (s *state) clone() state {
	n := state{nodes: slices.Clone(s.nodes), index: s.index, partitions: slices.Clone(s.partitions), jobs: make(map[slurmctl.JobID]*job, len(s.jobs)),
		order: slices.Clone(s.order), reservations: slices.Clone(s.reservations), lastID: s.lastID}
	for id, j := range s.jobs {
		copied := *j
		copied.nodes = slices.Clone(j.nodes)
		n.jobs[id] = &copied
	}
	return n
}

// Restart ends slurmctld in good order and starts it again: expand links are lost.
func (c *Cluster) Restart() {
	c.saved = c.clone()
	c.Crash()
}

// Crash kills slurmctld and starts it again with what it had saved. Jobs that had
// ended meanwhile end once more; nodes that it knows nothing of are free again.
func (c *Cluster) Crash() {
	alive := c.jobs
	c.state = c.saved.clone()
	c.boot = c.now
	for _, id := range slices.Sorted(maps.Keys(c.jobs)) {
		j := c.jobs[id]
		j.expands = 0
		if j.State != slurmctl.Running {
			continue
		}
		if now := alive[id]; now == nil || now.State != slurmctl.Running {
			c.finish(j, slurmctl.Completed) // its nodes say so
			continue
		}
		c.watch(j)
	}
	clear(c.planned)
	c.kick()
}

// SetNode takes a node down, drains it or brings it back (all false). Jobs on a node
// that goes down end with NODE_FAIL.
func (c *Cluster) SetNode(name string, down, drained bool) {
	n := &c.nodes[c.index[name]]
	n.down, n.drained = down, drained
	if down {
		for _, id := range slices.Clone(c.order) {
			if j := c.jobs[id]; j != nil && j.active() && slices.Contains(j.nodes, c.index[name]) {
				c.finish(j, "NODE_FAIL")
			}
		}
	}
	c.touch()
	c.kick()
}

func (n *node) usable() bool { return !n.down && !n.drained && !n.leaked && n.freeing == 0 }
