package slurmsim

import (
	"fmt"
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
	c.active = append(c.active, j)
	j.State, j.Reason, j.Partition = slurmctl.Running, "None", j.part.Name
	j.nodes, j.batchHost, j.script = nodes, nodes[0], nodes[0]
	j.epoch++
	j.planned = time.Time{}
	j.StartTime = c.second()
	j.EndTime = time.Time{}
	c.count(j)
	setLimit(c, j)
	c.take(j, nodes)
	if !j.whole() {
		c.shared++
	}
	if slices.ContainsFunc(nodes, func(n int) bool { return c.nodes[n].power == slurmctl.PoweredDown }) {
		j.State = slurmctl.Configuring
		c.switchOn(nodes, c.now)
	} else {
		launch(c, j)
	}
	c.touch(j)
	c.event(j)
	if j.request.Script != "" && j.revoked.Equal(c.second()) { // slurmd refuses the script: see Revoked
		finish(c, j, slurmctl.Failed)
	}
}

// split makes a separate record for an array's next task.
func split(c *Cluster, all *job) *job {
	all.ArrayTasks--
	task := *all
	c.lastID++
	task.ID, task.ArrayTasks = c.lastID, 1
	task.Display = fmt.Sprintf("%d_%d", all.ID, all.request.Array-all.ArrayTasks)
	task.stale = false
	c.jobs[task.ID] = &task
	c.queued(&task)
	c.touch(all)
	return &task
}

// setLimit sets when a running job's limit ends it.
func setLimit(c *Cluster, j *job) {
	if j.TimeLimit == slurmctl.Unlimited {
		j.EndTime, j.ends = time.Time{}, j.StartTime.Add(forever).Unix()
	} else {
		j.EndTime = j.StartTime.Add(j.TimeLimit)
		j.ends = j.EndTime.Unix()
	}
	c.byEnd = nil
	c.wake()
}

// launch starts a job's script, a moment later.
func launch(c *Cluster, j *job) {
	q := &j.request
	if q.Program == nil {
		j.left, j.resumed = q.Lasts, c.now+c.options.Latency.Launch
		watchEnd(c, j)
		return
	}
	id, epoch := j.ID, j.epoch
	c.after(c.options.Latency.Launch, func() {
		if j := c.jobs[id]; j == nil || j.epoch != epoch || !j.active() {
			return
		}
		var p *Process
		p = c.begin(id, q.Program, func() {
			delete(c.running, id)
			c.tell(func() {
				if j := c.jobs[id]; j != nil && j.active() {
					exited(c, j, p.exit)
				}
			})
		})
		c.running[id] = p
	})
}

// watchEnd puts the job's own end on the agenda.
func watchEnd(c *Cluster, j *job) {
	if j.left <= 0 {
		return
	}
	id, epoch := j.ID, j.epoch
	c.at(j.resumed+j.left, func() {
		c.tell(func() {
			if j := c.jobs[id]; j != nil && j.epoch == epoch && j.State == slurmctl.Running {
				exited(c, j, j.request.ExitCode)
			}
		})
	})
}

func exited(c *Cluster, j *job, code int) {
	j.ExitCode = code
	state := slurmctl.Completed
	if code != 0 {
		state = slurmctl.Failed
	}
	finish(c, j, state)
}

// finish ends a pending or running job.
func finish(c *Cluster, j *job, state slurmctl.JobState) {
	j.epoch++
	j.EndTime = c.second()
	if j.State == slurmctl.Pending {
		if j.StartTime.After(j.EndTime) || j.StartTime.IsZero() {
			j.StartTime = j.EndTime
		}
		closeRecord(c, j, state)
		return
	}
	if p := c.running[j.ID]; p != nil {
		delete(c.running, j.ID)
		p.Kill()
	}
	complete(c, j)
	j.State, j.final = slurmctl.Completing, state
	c.touch(j)
	release := c.options.Latency.Release
	if j.request.Stubborn && state != slurmctl.Completed && state != slurmctl.Failed {
		release += c.options.KillWait
	}
	id, epoch, nodes, boot := j.ID, j.epoch, j.nodes, c.boot
	c.after(release, func() {
		c.tell(func() {
			if c.boot.Equal(boot) {
				freeNodes(c, nodes)
				refuse(c, j, state, nodes)
			}
			if j := c.jobs[id]; j != nil && j.epoch == epoch && j.State == slurmctl.Completing {
				if c.drop(j); j.requeued {
					queueAgain(c, j)
				} else {
					closeRecord(c, j, state)
				}
			}
			c.schedule()
		})
	})
}

// complete takes the nodes from an ended job; for a moment, they stay busy.
func complete(c *Cluster, j *job) {
	c.inactive(j)
	c.ending = append(c.ending, j)
	c.give(j, j.nodes)
	for _, n := range j.nodes {
		c.nodes[n].freeing++
		c.completing.add(n)
	}
}

// freeNodes handles nodes on which a job has completed.
func freeNodes(c *Cluster, nodes []int) {
	for _, n := range nodes {
		if c.nodes[n].freeing--; c.nodes[n].freeing <= 0 {
			c.nodes[n].freeing = 0
			c.completing.drop(n)
		}
	}
	c.changed()
}

// pingInterval is a third of SlurmdTimeout: a node without an answer in that time is pinged.
const pingInterval = 100 * time.Second

// refuse keeps nodes on which an exclusive job was killed from jobs until they answer, if an exclusive job was shrunk
// from them (no_share_job_cnt). Of a job that ended by itself, they answer once they are idle.
func refuse(c *Cluster, j *job, state slurmctl.JobState, nodes []int) {
	if state == slurmctl.Completed || state == slurmctl.Failed || !j.whole() {
		return
	}
	boot := c.boot
	for _, n := range nodes {
		if c.nodes[n].shrunk && c.nodes[n].freeing == 0 {
			c.refused.add(n)
			c.after(pingInterval, func() { answer(c, boot, n) })
		}
	}
}

// answer ends the refusal of a node.
func answer(c *Cluster, boot time.Time, n int) {
	if c.boot.Equal(boot) {
		c.refused.drop(n)
		c.asked.drop(n)
		c.changed()
	}
}

// requeue ends a batch job that returns to the queue. As in Slurm, it starts again two minutes
// later at the earliest.
func requeue(c *Cluster, j *job) {
	finish(c, j, slurmctl.Cancelled)
	j.requeued, j.revoked = true, c.second()
}

// requeueWait is how long a requeued job waits at least.
const requeueWait = 2 * time.Minute

// queueAgain makes a requeued job pending once its nodes are free.
func queueAgain(c *Cluster, j *job) {
	j.epoch++
	j.requeued = false
	j.restarts++
	j.State, j.Reason = slurmctl.Pending, "BeginTime"
	if len(j.parts) > 0 {
		j.Partition, j.part = j.request.Partition, j.parts[0]
	}
	j.nodes, j.resized, j.stood = nil, false, 0
	j.NumNodes = j.request.Nodes
	j.request.Begin = c.second().Add(requeueWait)
	j.StartTime, j.EndTime = j.request.Begin, time.Time{}
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
	forgetLater(c, j)
}

// forgetLater removes an ended job's record after MinJobAge.
func forgetLater(c *Cluster, j *job) {
	id := j.ID
	c.after(c.options.MinJobAge, func() {
		if j := c.jobs[id]; j != nil && j.Ended() && !c.down {
			delete(c.jobs, id)
			if !j.stale {
				c.stale = append(c.stale, id)
			}
			c.dirty = true
		}
	})
}
