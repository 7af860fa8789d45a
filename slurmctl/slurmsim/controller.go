package slurmsim

import (
	"iter"
	"maps"
	"math/rand/v2"
	"slices"

	"github.com/evoslurm/evoslurm/slurmctl"
)

// New creates a cluster whose clock starts at the options' Start.
func New(o Options) *Cluster {
	o = o.withDefaults()
	c := &Cluster{options: o, boot: o.Start, running: map[slurmctl.JobID]*Process{}}
	c.start = o.Start
	c.turns = turns{
		loop:     func() { loopTurn(c) },
		schedule: func(whole bool) { mainPass(c, whole) },
		backfill: func() { backfillTurn(c) },
	}
	c.due = due{c.loopNow, c.scheduleNow, c.backfillNow, c.saveNow}
	c.chance = rand.New(rand.NewPCG(o.Seed, 2205))
	c.jobs = map[slurmctl.JobID]*job{}
	c.nodeTable = newNodeTable(o.NodeList)
	if err := c.findKinds(); err != nil {
		panic(err) // a mistake in the options
	}
	for _, given := range o.Partitions {
		c.partitions = append(c.partitions, c.newPartition(given))
	}
	for _, name := range o.PowerSaving.Off {
		c.nodes[c.index[name]].power = slurmctl.PoweredDown
	}
	rebuild(c)
	c.save()
	c.loop.start()
	c.wake()
	c.backfill.ended = c.second()
	return c
}

// rebuild computes from the jobs what is in use on the nodes.
func rebuild(c *Cluster) {
	c.pending, c.active, c.ending, c.merged, c.byEnd = nil, nil, nil, nil, nil
	defer func() { c.backfill.expected = append(c.backfill.expected[:0], c.pending...) }()
	c.usage, c.shared = c.noUsage(), 0
	c.completing, c.refused, c.asked = newNodeSet(len(c.nodes)), newNodeSet(len(c.nodes)), newNodeSet(len(c.nodes))
	c.up, c.resuming = newNodeSet(len(c.nodes)), newNodeSet(len(c.nodes))
	for i := range c.nodes {
		c.nodes[i].freeing, c.nodes[i].shrunk = 0, false
		c.usable(i)
	}
	for _, id := range sortedIDs(c.jobs) {
		j := c.jobs[id]
		j.part = c.partitions.named(j.part.Name)
		for i, p := range j.parts {
			j.parts[i] = c.partitions.named(p.Name)
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
	c.reservations, c.partitions = c.saved.reservations.clone(), c.saved.partitions.clone()
	c.boot = c.second()
	rebuild(c)
	for id, p := range sortedProcesses(c.running) {
		if j := c.jobs[id]; j == nil || !j.active() || j.restarts != alive[id].restarts {
			p.Kill() // a process without a job, or of the next run, which mostly has other nodes
			delete(c.running, id)
		}
	}
	for _, id := range sortedIDs(c.jobs) {
		takeUp(c, c.jobs[id], alive[id])
	}
	missed := c.missed
	c.missed = nil
	for _, tell := range missed {
		tell()
	}
	takeBatchHosts(c)
	c.loop.start()
	c.changed()
	c.kick()
}

// takeUp continues with a job whose record was saved. now is what became of it, or nil.
func takeUp(c *Cluster, j, now *job) {
	j.expands = 0
	switch {
	case j.State == slurmctl.Completing && j.requeued:
		queueAgain(c, j)
	case j.State == slurmctl.Completing:
		closeRecord(c, j, j.final)
	case j.Ended():
		forgetLater(c, j)
	case !j.active():
	case now == nil, !now.active(), now.request.Program != nil && c.running[j.ID] == nil:
		finish(c, j, slurmctl.Completed) // its nodes say so
	default:
		watchEnd(c, j)
	}
}

func sortedProcesses(all map[slurmctl.JobID]*Process) iter.Seq2[slurmctl.JobID, *Process] {
	ids := slices.Sorted(maps.Keys(all))
	return func(yield func(slurmctl.JobID, *Process) bool) {
		for _, id := range ids {
			if !yield(id, all[id]) {
				return
			}
		}
	}
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
