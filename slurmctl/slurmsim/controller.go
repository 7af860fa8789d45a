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
	c := &Cluster{options: o, Boot: o.Start, Scripts: map[slurmctl.JobID]*Process{}}
	c.start, c.whole = o.Start, c
	c.turns = turns{
		loop:     func() { loopTurn(c) },
		schedule: func(whole bool) { mainPass(c, whole) },
		backfill: func() { backfillTurn(c) },
		ended:    func(p *Process) { scriptEnded(c, p) },
	}
	c.Chance = rand.NewPCG(o.Seed, 2205)
	c.chance = rand.New(c.Chance)
	c.Jobs = map[slurmctl.JobID]*job{}
	c.nodeTable = newNodeTable(o.NodeList)
	release := slurmctl.Config{Version: o.Version}
	c.anywhere = slurmctl.PlacesOneByWeight(release)
	c.network, c.blocks = newNetwork(o.Topology, o.NodeList), newBlocks(o.Topology, o.NodeList, slurmctl.SearchesAgain(release))
	if err := c.findKinds(); err != nil {
		panic(err) // a mistake in the options
	}
	for _, given := range o.Partitions {
		c.Partitions = append(c.Partitions, c.newPartition(given))
	}
	for _, name := range o.PowerSaving.Off {
		c.Nodes[c.index[name]].PowerState = slurmctl.PoweredDown
	}
	rebuild(c)
	c.save()
	c.Loop.start()
	c.wake()
	c.Backfill.Ended = c.second()
	return c
}

// rebuild computes from the jobs what is in use on the nodes.
func rebuild(c *Cluster) {
	c.Pending, c.Active, c.Ending, c.Merged, c.ByEnd = nil, nil, nil, nil, nil
	defer func() { c.Backfill.Expected = append(c.Backfill.Expected[:0], c.Pending...) }()
	c.Usage, c.Shared = c.noUsage(), 0
	c.Completing, c.Refused, c.Asked = newNodeSet(len(c.Nodes)), newNodeSet(len(c.Nodes)), newNodeSet(len(c.Nodes))
	c.Up, c.Resuming = newNodeSet(len(c.Nodes)), newNodeSet(len(c.Nodes))
	for i := range c.Nodes {
		c.Nodes[i].Freeing, c.Nodes[i].Shrunk = 0, false
		c.usable(i)
	}
	for _, id := range sortedIDs(c.Jobs) {
		j := c.Jobs[id]
		j.Part = c.Partitions.named(j.Part.Name)
		for i, p := range j.Parts {
			j.Parts[i] = c.Partitions.named(p.Name)
		}
		switch {
		case j.State == slurmctl.Pending:
			c.queued(j)
		case j.active():
			c.Active = append(c.Active, j)
			c.take(j, j.Nodes)
			if !j.whole() {
				c.Shared++
			}
		}
	}
}

// StopController stops slurmctld: in good order, so that it knows everything when it is back, or as
// kill -9 does. Commands fail until StartController; jobs keep running.
func (c *Cluster) StopController(kill bool) {
	if c.Down {
		return
	}
	if !kill {
		c.save()
	}
	c.Down = true
}

// StartController starts slurmctld from its saved state. Expand links are lost. Jobs that ended
// meanwhile end now. Jobs that it does not know are ended on the nodes, which become free.
func (c *Cluster) StartController() {
	if !c.Down {
		return
	}
	alive := c.Jobs
	c.Down, c.Dirty, c.Saving, c.Stale = false, false, false, nil
	c.Jobs = make(map[slurmctl.JobID]*job, len(c.Saved.Jobs))
	for id, j := range c.Saved.Jobs {
		copied := *j
		c.Jobs[id] = &copied
	}
	c.LastID = c.Saved.LastID
	c.Nodes = slices.Clone(c.Saved.Nodes)
	c.Reservations, c.Partitions = c.Saved.Reservations.clone(), c.Saved.Partitions.clone()
	c.Boot = c.second()
	rebuild(c)
	for id, p := range sortedProcesses(c.Scripts) {
		if j := c.Jobs[id]; j == nil || !j.active() || j.Restarts != alive[id].Restarts {
			p.Kill() // a process without a job, or of the next run, which mostly has other nodes
			delete(c.Scripts, id)
		}
	}
	for _, id := range sortedIDs(c.Jobs) {
		takeUp(c, c.Jobs[id], alive[id])
	}
	missed := c.Missed
	c.Missed = nil
	for _, what := range missed {
		what.Act(c)
	}
	takeBatchHosts(c)
	c.Loop.start()
	c.changed()
	c.kick()
}

// takeUp continues with a job whose record was saved. now is what became of it, or nil.
func takeUp(c *Cluster, j, now *job) {
	j.Expands = 0
	switch {
	case j.State == slurmctl.Completing && j.Requeued:
		queueAgain(c, j)
	case j.State == slurmctl.Completing:
		closeRecord(c, j, j.Final)
	case j.Ended():
		c.Later(c.options.MinJobAge, forgets(j.ID))
	case !j.active():
	case now == nil, !now.active(), now.Request.Program != nil && c.Scripts[j.ID] == nil:
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
