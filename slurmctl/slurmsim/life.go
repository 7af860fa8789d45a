package slurmsim

import (
	"slices"
	"time"

	"github.com/evoslurm/evoslurm/slurmctl"
)

// startJob starts a pending job on these nodes.
func startJob(c *Cluster, j *job, nodes []int) {
	if j.ArrayTasks > 1 {
		j = split(c, j)
	}
	c.unqueued(j)
	c.Active = append(c.Active, j)
	j.State, j.Reason, j.Partition = slurmctl.Running, "None", j.Part.Name
	j.Nodes, j.HostNode, j.ScriptNode = nodes, nodes[0], nodes[0]
	j.Epoch++
	j.Planned = time.Time{}
	j.StartTime = c.second()
	j.EndTime = time.Time{}
	c.count(j)
	setLimit(c, j)
	c.take(j, nodes)
	if !j.whole() {
		c.Shared++
	}
	if slices.ContainsFunc(nodes, func(n int) bool { return c.Nodes[n].PowerState == slurmctl.PoweredDown }) {
		j.State = slurmctl.Configuring
		c.switchOn(nodes, c.Moment)
	} else {
		launch(c, j)
	}
	c.touch(j)
	c.event(j)
	if j.Request.Script != "" && j.Revoked.Equal(c.second()) { // slurmd refuses the script: see Revoked
		finish(c, j, slurmctl.Failed)
	}
}

// setLimit sets when a running job's limit ends it.
func setLimit(c *Cluster, j *job) {
	if j.TimeLimit == slurmctl.Unlimited {
		j.EndTime, j.Ends = time.Time{}, j.StartTime.Add(forever).Unix()
	} else {
		j.EndTime = j.StartTime.Add(j.TimeLimit)
		j.Ends = j.EndTime.Unix()
	}
	c.ByEnd = nil
	c.wake()
}

// launch starts a job's script, a moment later.
func launch(c *Cluster, j *job) {
	q := &j.Request
	if q.Program == nil {
		j.Left, j.Resumed = q.Lasts, c.Moment+c.options.Latency.Launch
		watchEnd(c, j)
		return
	}
	c.Later(c.options.Latency.Launch, launches{j.ID, j.Epoch})
}

// launches starts the script of a job in that epoch.
type launches struct {
	ID    slurmctl.JobID
	Epoch int
}

// Act implements Action.
func (l launches) Act(c *Cluster) {
	if j := c.Jobs[l.ID]; j != nil && j.Epoch == l.Epoch && j.active() {
		c.Scripts[l.ID] = c.begin(l.ID, j.Request.Program)
	}
}

// scriptEnded is called when a job's script has ended by itself.
func scriptEnded(c *Cluster, p *Process) {
	delete(c.Scripts, p.Script)
	c.tell(exits{p.Script, p.Code})
}

// exits reports that a job's script has ended.
type exits struct {
	ID   slurmctl.JobID
	Code int
}

// Act implements Action.
func (e exits) Act(c *Cluster) {
	if j := c.Jobs[e.ID]; j != nil && j.active() {
		exited(c, j, e.Code)
	}
}

// watchEnd puts the job's own end on the agenda.
func watchEnd(c *Cluster, j *job) {
	if j.Left > 0 {
		c.at(j.Resumed+j.Left, reports{lasted{j.ID, j.Epoch}})
	}
}

// lasted reports that a job without a script has ended in that epoch.
type lasted launches

// Act implements Action.
func (l lasted) Act(c *Cluster) {
	if j := c.Jobs[l.ID]; j != nil && j.Epoch == l.Epoch && j.State == slurmctl.Running {
		exited(c, j, j.Request.ExitCode)
	}
}

func exited(c *Cluster, j *job, code int) {
	j.ExitCode = code
	state := slurmctl.Completed
	if code != 0 {
		state = slurmctl.Failed
	}
	finish(c, j, state)
}

// finish ends a pending or running job. It is killed, unless it ended by itself.
func finish(c *Cluster, j *job, state slurmctl.JobState) {
	end(c, j, state, state != slurmctl.Completed && state != slurmctl.Failed)
}

func end(c *Cluster, j *job, state slurmctl.JobState, killed bool) {
	j.Epoch++
	j.EndTime = c.second()
	if j.State == slurmctl.Pending {
		if j.StartTime.After(j.EndTime) || j.StartTime.IsZero() {
			j.StartTime = j.EndTime
		}
		closeRecord(c, j, state)
		return
	}
	if p := c.Scripts[j.ID]; p != nil {
		delete(c.Scripts, j.ID)
		p.Kill()
	}
	complete(c, j)
	j.State, j.Final = slurmctl.Completing, state
	c.touch(j)
	release := c.options.Latency.Release
	if j.Request.Stubborn && killed {
		release += c.options.KillWait
	}
	c.Later(release, reports{leaves{j, state, killed, j.Epoch, j.Nodes, c.Boot}})
}

// leaves reports that a job has left its nodes.
type leaves struct {
	Job    *job // as it was: slurmctld may have another record by then
	State  slurmctl.JobState
	Killed bool
	Epoch  int
	Nodes  []int
	Boot   time.Time // when slurmctld had started
}

// Act implements Action.
func (l leaves) Act(c *Cluster) {
	if c.Boot.Equal(l.Boot) {
		freeNodes(c, l.Nodes)
		if l.Killed && l.Job.whole() {
			refuse(c, l.Nodes)
		}
	}
	if j := c.Jobs[l.Job.ID]; j != nil && j.Epoch == l.Epoch && j.State == slurmctl.Completing {
		if c.drop(j); j.Requeued {
			queueAgain(c, j)
		} else {
			closeRecord(c, j, l.State)
		}
	}
	c.request(false)
}

// complete takes the nodes from an ended job; for a moment, they stay busy.
func complete(c *Cluster, j *job) {
	c.inactive(j)
	c.Ending = append(c.Ending, j)
	c.give(j, j.Nodes)
	for _, n := range j.Nodes {
		c.Nodes[n].Freeing++
		c.Completing.add(n)
	}
}

// freeNodes handles nodes on which a job has completed.
func freeNodes(c *Cluster, nodes []int) {
	for _, n := range nodes {
		if c.Nodes[n].Freeing--; c.Nodes[n].Freeing <= 0 {
			c.Nodes[n].Freeing = 0
			c.Completing.drop(n)
		}
	}
	c.changed()
}

// pingInterval is a third of SlurmdTimeout: a node without an answer in that time is pinged.
const pingInterval = 100 * time.Second

// refuse keeps nodes on which an exclusive job was killed from jobs until they answer, if an exclusive job was shrunk
// from them (no_share_job_cnt). Of a job that ended by itself, they answer once they are idle.
func refuse(c *Cluster, nodes []int) {
	for _, n := range nodes {
		if c.Nodes[n].Shrunk && c.Nodes[n].Freeing == 0 {
			c.Refused.add(n)
			c.Later(pingInterval, answers{c.Boot, n})
		}
	}
}

// answers ends the refusal of a node.
type answers struct {
	Boot time.Time // when slurmctld had started
	Node int
}

// Act implements Action.
func (a answers) Act(c *Cluster) {
	if c.Boot.Equal(a.Boot) {
		c.Refused.drop(a.Node)
		c.Asked.drop(a.Node)
		c.changed()
	}
}

// requeue ends a batch job that returns to the queue. As in Slurm, it starts again two minutes
// later at the earliest.
func requeue(c *Cluster, j *job) {
	finish(c, j, slurmctl.Cancelled)
	j.Requeued, j.Revoked = true, c.second()
}

// requeueWait is how long a requeued job waits at least.
const requeueWait = 2 * time.Minute

// queueAgain makes a requeued job pending once its nodes are free.
func queueAgain(c *Cluster, j *job) {
	j.Epoch++
	j.Requeued = false
	j.Restarts++
	j.State, j.Reason = slurmctl.Pending, "BeginTime"
	if len(j.Parts) > 0 {
		j.Partition, j.Part = j.Request.Partition, j.Parts[0]
	}
	j.Nodes, j.Resized, j.Stood = nil, false, 0
	j.NumNodes = j.Request.Nodes
	j.Request.Begin = c.second().Add(requeueWait)
	j.StartTime, j.EndTime = j.Request.Begin, time.Time{}
	c.queued(j)
	c.touch(j)
	c.event(j)
	c.kick()
}

// closeRecord turns a record into that of an ended job.
func closeRecord(c *Cluster, j *job, state slurmctl.JobState) {
	c.unqueued(j)
	c.inactive(j)
	j.State = state
	c.touch(j)
	c.event(j)
	c.kick()
	c.Later(c.options.MinJobAge, forgets(j.ID))
}

// forgets removes an ended job's record.
type forgets slurmctl.JobID

// Act implements Action.
func (f forgets) Act(c *Cluster) {
	id := slurmctl.JobID(f)
	if j := c.Jobs[id]; j != nil && j.Ended() && !c.Down {
		delete(c.Jobs, id)
		if !j.Stale {
			c.Stale = append(c.Stale, id)
		}
		c.Dirty = true
	}
}
