package slurmsim

import (
	"fmt"
	"slices"
	"time"

	"github.com/evoslurm/evoslurm/slurmctl"
)

// User is whom a command or job is of.
type User struct {
	Name    string
	UID     uint32
	Account string
}

// Root may do everything.
var Root = User{Name: "root"}

// Job is what is submitted, and how it will go.
type Job struct {
	User        User
	Name        string
	Comment     string
	Script      string // of a batch job; "": salloc's
	Partition   string // "": the default one
	Nodes       int
	CPUs        int // of every node; 0: whole nodes
	TimeLimit   time.Duration
	Begin       time.Time
	Held        bool
	Nice        int
	After       []Dependency
	Expand      slurmctl.JobID // the job that it is to be merged into
	NodeList    []string       // these among them
	Exclude     []string
	Reservation string
	Array       int // tasks; 0: no array

	Lasts    time.Duration // runs by itself for so long; 0: until it is ended
	ExitCode int
}

// Dependency is one of --dependency: "afterok", "afterany" or "afternotok" of a job.
type Dependency struct {
	Kind string
	Job  slurmctl.JobID
}

// job is a record of slurmctld.
type job struct {
	slurmctl.Job
	request Job
	nodes   []int // that it has, in the order in which they came
	expands slurmctl.JobID
	resized bool
	epoch   int           // changes whenever what is on the agenda for it does not hold any more
	left    time.Duration // of Lasts, while it is suspended
	resumed time.Time
	ended   time.Time
	final   slurmctl.JobState // while it is completing
}

func (j *job) active() bool { return j.State == slurmctl.Running || j.State == slurmctl.Suspended }

// firstPriority is the priority of the first job under priority/basic; each further
// one has one less.
const firstPriority = 4294901759

// Submit queues a job as sbatch does, or as salloc does where there is no Script.
func (c *Cluster) Submit(q Job) (slurmctl.JobID, error) {
	j, err := c.record(q)
	if err != nil {
		return 0, err
	}
	c.lastID++
	j.ID, j.ArrayJobID = c.lastID, c.lastID
	j.Display = fmt.Sprint(j.ID)
	if q.Array > 0 {
		j.Display = fmt.Sprintf("%d_[1-%d]", j.ID, q.Array)
	}
	j.Priority = firstPriority - uint64(j.ID) + 1
	if c.options.MultifactorAge > 0 {
		j.Priority = 1
	}
	if q.Held {
		j.Priority, j.Reason = 0, "JobHeldUser"
	}
	c.jobs[j.ID] = j
	c.order = append(c.order, j.ID)
	c.touch()
	c.kick()
	return j.ID, nil
}

// record checks a request as slurmctld does when it comes in.
func (c *Cluster) record(q Job) (*job, error) {
	p := c.partition(q.Partition)
	if p == nil {
		return nil, refusal("Invalid partition name specified")
	}
	if q.Nodes < 1 {
		return nil, refusal("Node count specification invalid")
	}
	if q.Expand != 0 {
		base := c.jobs[q.Expand]
		switch {
		case !c.options.PermitJobExpansion:
			return nil, refusal("Requested operation not supported on this system")
		case base == nil, base.State != slurmctl.Running:
			return nil, refusal("Job dependency problem")
		case base.Partition != p.Name:
			return nil, refusal("Invalid partition name specified")
		}
	}
	for _, name := range slices.Concat(q.NodeList, q.Exclude) {
		if _, ok := c.index[name]; !ok {
			return nil, refusal("Invalid node name specified")
		}
	}
	if q.Reservation != "" {
		r := c.reservation(q.Reservation)
		if r == nil {
			return nil, refusal("Requested reservation is invalid")
		}
		if !r.allows(q.User) {
			return nil, refusal("Access denied to requested reservation")
		}
	}
	limit := q.TimeLimit
	if limit == 0 {
		limit = p.DefaultTime
		if limit == slurmctl.Unlimited || limit == 0 {
			limit = p.MaxTime
		}
	} else if limit != slurmctl.Unlimited {
		limit = (limit + time.Minute - 1).Truncate(time.Minute)
	}
	j := &job{request: q, expands: q.Expand}
	j.Job = slurmctl.Job{Name: q.Name, User: q.User.Name, UID: q.User.UID, Account: q.User.Account, Partition: p.Name, Comment: q.Comment,
		State: slurmctl.Pending, Reason: "None", NumNodes: q.Nodes, NumCPUs: q.Nodes * c.perNode(q), ReqNodes: slices.Clone(q.NodeList), ExcNodes: slices.Clone(q.Exclude),
		MinCPUs: max(q.CPUs, 1), Exclusive: q.CPUs == 0, TimeLimit: limit, SubmitTime: c.second(), StartTime: q.Begin, Reservation: q.Reservation, Nice: q.Nice,
		ArrayTasks: max(q.Array, 1)}
	if len(q.After) > 0 {
		j.Dependency = fmt.Sprintf("%s:%d", q.After[0].Kind, q.After[0].Job)
	}
	return j, nil
}

// perNode is how many CPUs of a node the job takes.
func (c *Cluster) perNode(q Job) int {
	if q.CPUs == 0 {
		return c.options.CPUs
	}
	return q.CPUs
}

// second is now as slurmctld writes it down.
func (c *Cluster) second() time.Time { return c.now.Truncate(time.Second) }

// partition is the one of that name, "": the default one.
func (c *Cluster) partition(name string) *slurmctl.Partition {
	for i := range c.partitions {
		if p := &c.partitions[i]; p.Name == name || name == "" && p.Default {
			return p
		}
	}
	if name == "" {
		return &c.partitions[0]
	}
	return nil
}

// begin starts a pending job on these nodes.
func (c *Cluster) begin(j *job, nodes []int) {
	if j.ArrayTasks > 1 {
		j = c.split(j)
	}
	j.State, j.Reason = slurmctl.Running, "None"
	j.nodes = nodes
	j.epoch++
	j.StartTime, j.resumed, j.left = c.second(), c.now, j.request.Lasts
	if j.expands != 0 {
		if base := c.jobs[j.expands]; base != nil && base.State == slurmctl.Running && base.TimeLimit != slurmctl.Unlimited {
			j.TimeLimit = base.EndTime.Sub(j.StartTime)
		}
	}
	if j.TimeLimit != slurmctl.Unlimited {
		j.EndTime = j.StartTime.Add(j.TimeLimit)
	}
	for _, n := range nodes {
		c.take(n, j)
	}
	c.show(j)
	if j.request.Script != "" {
		j.BatchHost = j.NodeList[0]
	}
	delete(c.planned, j.ID)
	c.watch(j)
	c.touch()
}

// split makes a record of its own of an array's next task.
func (c *Cluster) split(all *job) *job {
	all.ArrayTasks--
	task := *all
	c.lastID++
	task.ID, task.ArrayTasks = c.lastID, 1
	task.Display = fmt.Sprintf("%d_%d", all.ID, all.request.Array-all.ArrayTasks)
	c.jobs[task.ID] = &task
	c.order = append(c.order, task.ID)
	return &task
}

// watch puts the end of what the job does by itself on the agenda.
func (c *Cluster) watch(j *job) {
	if j.left <= 0 {
		return
	}
	id, epoch := j.ID, j.epoch
	c.at(j.resumed.Add(j.left), func() {
		if j := c.jobs[id]; j != nil && j.epoch == epoch && j.State == slurmctl.Running {
			state := slurmctl.Completed
			if j.request.ExitCode != 0 {
				state = slurmctl.Failed
			}
			j.ExitCode = j.request.ExitCode
			c.finish(j, state)
		}
	})
}

func (c *Cluster) take(n int, j *job) {
	c.nodes[n].used += c.perNode(j.request)
	if j.Exclusive {
		c.nodes[n].whole++
	}
}

func (c *Cluster) give(n int, j *job) {
	c.nodes[n].used -= c.perNode(j.request)
	if j.Exclusive {
		c.nodes[n].whole--
	}
}

// show puts the record's nodes in order with what the job has.
func (c *Cluster) show(j *job) {
	j.NodeList = make([]string, len(j.nodes))
	for i, n := range j.nodes {
		j.NodeList[i] = c.nodes[n].name
	}
	slurmctl.SortNodes(j.NodeList)
	if len(j.nodes) > 0 {
		j.NumNodes, j.NumCPUs = len(j.nodes), len(j.nodes)*c.perNode(j.request)
	}
}

// finish ends a pending or running job.
func (c *Cluster) finish(j *job, state slurmctl.JobState) {
	j.epoch++
	j.EndTime = c.second()
	if j.State == slurmctl.Pending {
		if j.StartTime.After(j.EndTime) || j.StartTime.IsZero() {
			j.StartTime = j.EndTime
		}
		c.close(j, state)
		return
	}
	nodes := j.nodes
	for _, n := range nodes {
		c.give(n, j)
		c.nodes[n].freeing++
	}
	j.State, j.final = slurmctl.Completing, state
	id, epoch := j.ID, j.epoch
	c.touch()
	c.at(c.now.Add(c.options.Latency.Release), func() {
		for _, n := range nodes {
			c.nodes[n].freeing = max(c.nodes[n].freeing-1, 0)
		}
		if j := c.jobs[id]; j != nil && j.epoch == epoch {
			c.close(j, state)
		}
		c.kick()
	})
}

// close makes a record one of an ended job, to be forgotten after MinJobAge.
func (c *Cluster) close(j *job, state slurmctl.JobState) {
	j.State, j.ended = state, c.now
	c.order = slices.DeleteFunc(c.order, func(id slurmctl.JobID) bool { return id == j.ID })
	delete(c.planned, j.ID)
	id := j.ID
	c.at(c.now.Add(c.options.MinJobAge), func() {
		if j := c.jobs[id]; j != nil && j.Ended() {
			delete(c.jobs, id)
		}
	})
	c.touch()
	c.kick()
}

// limitsEvery is how often slurmctld looks for jobs and reservations that are over.
const limitsEvery = 30 * time.Second

// limits ends jobs that are past their time limit or their reservation's end.
func (c *Cluster) limits() {
	c.at(c.now.Add(limitsEvery), c.limits)
	for _, id := range slices.Clone(c.order) {
		j := c.jobs[id]
		if j.State != slurmctl.Running {
			continue
		}
		r := c.reservation(j.Reservation)
		if !j.EndTime.IsZero() && c.now.After(j.EndTime) || r != nil && !r.has("FLEX") && c.now.After(r.End) {
			c.finish(j, slurmctl.TimedOut)
		}
	}
	c.dropReservations()
}
