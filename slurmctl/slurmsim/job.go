package slurmsim

import (
	"cmp"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/evoslurm/evoslurm/slurmctl"
)

// User issues commands and owns jobs.
type User struct {
	Name    string
	UID     uint32
	Account string
}

// Root may do everything.
var Root = User{Name: "root"}

// Job describes a job to submit and how it will run.
type Job struct {
	User             User
	Name             string
	Comment          string
	Script           string // of a batch job; "" for salloc
	Partition        string // "" for the default partition
	QOS              string // "" for normal
	Nodes            int
	CPUs             int    // of every node; 0 for whole nodes
	MemoryPerNode    *int64 // MiB; 0 for all of it
	MemoryPerCPU     int64
	GRES             []slurmctl.GRES // on every node
	TimeLimit        time.Duration
	Begin            time.Time
	Held             bool
	Nice             int
	After            []Dependency
	KillOnInvalidDep bool           // ends the job once its dependencies can never be met
	Expand           slurmctl.JobID // job to merge into
	NodeList         []string       // nodes that it must include
	Exclude          []string
	Constraint       string // one feature, or several with &
	Reservation      string
	Array            int // tasks; 0 for no array

	// What the job does once its script runs. With Program, it ends when Program returns. With
	// Lasts, it runs that long and ends with ExitCode. With neither, it runs until something ends
	// it.
	Program  func(*Process)
	Lasts    time.Duration
	ExitCode int
	Stubborn bool // it ignores SIGTERM
}

// Dependency is a part of --dependency: "afterok", "afterany", or "afternotok" of a job.
type Dependency struct {
	Kind string
	Job  slurmctl.JobID
}

// job is a record of slurmctld. Its NodeList and BatchHost are computed when it is shown.
type job struct {
	slurmctl.Job
	request   Job
	part      *partition
	parts     []*partition // the partitions if submitted to several; part is the current one
	required  nodeSet      // required nodes that exist; nil for none
	excluded  nodeSet
	nodes     []int   // its nodes in the order in which it got them; never changed in place
	set       nodeSet // the same as a set, for an active job
	memory    int64   // of every node, if memory counts
	batchHost int     // according to slurmctld
	script    int     // the node of the batch script
	expands   slurmctl.JobID
	resized   bool
	gone      map[int]time.Duration // nodes taken from it while it ran, and the last time
	planned   time.Time             // start expected by the backfill scheduler
	ends      int64                 // EndTime in seconds, set even without a limit
	epoch     int                   // changes whenever the job's agenda entries become invalid
	left      time.Duration
	resumed   time.Duration
	stood     time.Duration     // total time suspended
	final     slurmctl.JobState // state after completing
	requeued  bool              // pending again after completing
	revoked   time.Time         // second of its last requeue
	restarts  int               // number of requeues
	stale     bool              // the state on disk is outdated
}

func (j *job) active() bool {
	return j.State == slurmctl.Running || j.State == slurmctl.Suspended || j.State == slurmctl.Configuring
}

// whole reports whether the job has its nodes exclusively.
func (j *job) whole() bool { return j.request.CPUs == 0 }

func sortedIDs(jobs map[slurmctl.JobID]*job) []slurmctl.JobID { return slices.Sorted(maps.Keys(jobs)) }

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

// firstPriority is the priority of the first job under priority/basic; each later job has one less.
const firstPriority = 4294901759

// forever is the duration that Slurm uses for "no limit".
const forever = 365 * 24 * time.Hour

// Submit queues a job as sbatch does or, without a Script, as salloc does.
func (c *Cluster) Submit(q Job) (slurmctl.JobID, error) {
	if see := c.options.Plugin.Submit; see != nil {
		if err := see(&q); err != nil {
			return 0, err
		}
	}
	j, err := c.record(q)
	if err != nil {
		return 0, err
	}
	if err := c.submits(j); err != nil {
		return 0, err
	}
	if !slices.Contains(c.users, q.User) {
		c.users = append(c.users, q.User)
	}
	c.lastID++
	j.ID, j.ArrayJobID = c.lastID, c.lastID
	if q.Array > 0 {
		j.Display = fmt.Sprintf("%d_[1-%d]", j.ID, q.Array)
	}
	c.prioritise(j)
	if q.Held {
		j.Priority, j.Reason = 0, "JobHeldUser"
	}
	c.jobs[j.ID] = j
	c.queued(j)
	appended := c.backfill.appended
	c.touch(j)
	c.backfill.appended = appended
	if q.Script == "" && !c.options.Defer && q.Array == 0 && c.independent(j) && c.first(j) && c.lets(j) {
		if c.tryNow(j, c.up) == fine {
			return j.ID, nil
		}
	}
	c.kick()
	return j.ID, nil
}

// queued adds to the list of pending jobs; unqueued removes.
func (c *Cluster) queued(j *job) {
	if n := len(c.pending); n > 0 && c.order(c.pending[n-1], j) > 0 {
		c.disorder = true
	}
	c.pending = append(c.pending, j)
	c.special = c.special || !j.plain()
}

// plain reports whether a pending job waits only for nodes, unless someone changes it.
func (j *job) plain() bool {
	return j.Priority > 0 && len(j.request.After) == 0 && j.request.Begin.IsZero() && len(j.parts) == 0 && j.part.against(j) == ""
}

func (c *Cluster) unqueued(j *job) {
	if i := slices.Index(c.pending, j); i >= 0 {
		c.pending = slices.Delete(c.pending, i, i+1)
	}
}

// prioritise gives a job the priority of a newly submitted or released job.
func (c *Cluster) prioritise(j *job) {
	j.Priority = uint64(max(int64(firstPriority)-int64(j.ID)+1-int64(j.request.Nice), 1))
	if c.options.MultifactorAge > 0 {
		j.Priority = 1
		c.age(j)
	}
}

// record checks an incoming request as slurmctld does.
func (c *Cluster) record(q Job) (*job, error) {
	p, several := c.partitionsOf(q.Partition)
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
	if fits := func(p *partition) bool { return q.Nodes <= len(p.Nodes) }; !fits(p) && !slices.ContainsFunc(several, fits) {
		return nil, refusal("Requested node configuration is not available")
	}
	j := &job{request: q, part: p, parts: several, expands: q.Expand}
	var err error
	if j.required, err = c.named(q.NodeList); err != nil {
		return nil, err
	}
	if j.excluded, err = c.named(q.Exclude); err != nil {
		return nil, err
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
	if base := c.jobs[q.Expand]; base != nil && base.TimeLimit != slurmctl.Unlimited { // _test_job_dependency of job_scheduler.c
		limit = base.EndTime.Sub(c.second()).Truncate(time.Minute)
	}
	j.Job = slurmctl.Job{Name: q.Name, User: q.User.Name, UID: q.User.UID, Account: q.User.Account, QOS: cmp.Or(q.QOS, defaultQOS), Partition: cmp.Or(q.Partition, p.Name), Comment: q.Comment,
		State: slurmctl.Pending, Reason: "None", NumNodes: q.Nodes, ReqNodes: slices.Clone(q.NodeList), ExcNodes: slices.Clone(q.Exclude),
		Features: q.Constraint, MinCPUs: max(q.CPUs, 1), Exclusive: q.CPUs == 0, TimeLimit: limit, SubmitTime: c.second(), StartTime: q.Begin,
		Reservation: q.Reservation, Nice: q.Nice, ArrayTasks: max(q.Array, 1)}
	j.NumCPUs = q.Nodes * max(q.CPUs, 1)
	if j.whole() {
		j.NumCPUs = q.Nodes * c.nodes[0].CPUs
	}
	j.TRESPer = tresText(q.GRES)
	if err := c.remember(j); err != nil {
		return nil, err
	}
	if len(q.After) > 0 {
		j.Dependency = fmt.Sprintf("%s:%d", q.After[0].Kind, q.After[0].Job)
	}
	return j, nil
}

// named returns a set of nodes by name, or nil for no names.
func (c *Cluster) named(names []string) (nodeSet, error) {
	if len(names) == 0 {
		return nil, nil
	}
	set := newNodeSet(len(c.nodes))
	for _, name := range names {
		n, ok := c.index[name]
		if !ok {
			return nil, refusal("Invalid node name specified")
		}
		set.add(n)
	}
	return set, nil
}

// partition returns the partition of that name, or for "" the default one.
func (c *Cluster) partition(name string) *partition {
	for _, p := range c.partitions {
		if p.Name == name || name == "" && p.Default {
			return p
		}
	}
	if name == "" {
		return c.partitions[0]
	}
	return nil
}

// partitionsOf returns the first partition to try for a job that names these, and all of them if
// there are several; nil if one of them does not exist.
func (c *Cluster) partitionsOf(names string) (first *partition, several []*partition) {
	if !strings.Contains(names, ",") {
		return c.partition(names), nil
	}
	for name := range strings.SplitSeq(names, ",") {
		p := c.partition(name)
		if p == nil || name == "" {
			return nil, nil
		}
		several = append(several, p)
	}
	slices.SortStableFunc(several, func(a, b *partition) int { return cmp.Compare(b.Tier, a.Tier) })
	return several[0], several
}

// somewhere tries something in each partition of a pending job until it succeeds.
func (j *job) somewhere(try func() bool) bool {
	if len(j.parts) == 0 {
		return try()
	}
	for _, j.part = range j.parts {
		if try() {
			return true
		}
	}
	j.part = j.parts[0]
	return false
}

// startJob starts a pending job on these nodes.
func (c *Cluster) startJob(j *job, nodes []int) {
	if j.ArrayTasks > 1 {
		j = c.split(j)
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
	c.limit(j)
	c.take(j, nodes)
	if !j.whole() {
		c.shared++
	}
	if slices.ContainsFunc(nodes, func(n int) bool { return c.nodes[n].power == slurmctl.PoweredDown }) {
		j.State = slurmctl.Configuring
		c.switchOn(nodes)
	} else {
		c.launch(j)
	}
	c.touch(j)
	c.event(j)
	if j.request.Script != "" && j.revoked.Equal(c.second()) { // slurmd refuses the script: see Revoked
		c.finish(j, slurmctl.Failed)
	}
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

// limit sets when a running job's limit ends it.
func (c *Cluster) limit(j *job) {
	if j.TimeLimit == slurmctl.Unlimited {
		j.EndTime, j.ends = time.Time{}, j.StartTime.Add(forever).Unix()
	} else {
		j.EndTime = j.StartTime.Add(j.TimeLimit)
		j.ends = j.EndTime.Unix()
	}
	c.byEnd = nil
	c.wake()
}

// split makes a separate record for an array's next task.
func (c *Cluster) split(all *job) *job {
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

// launch starts a job's script, a moment later.
func (c *Cluster) launch(j *job) {
	q := &j.request
	if q.Program == nil {
		j.left, j.resumed = q.Lasts, c.now+c.options.Latency.Launch
		c.watch(j)
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
					c.exited(j, p.exit)
				}
			})
		})
		c.running[id] = p
	})
}

// tell delivers a node's report to slurmctld, at once or when slurmctld is back.
func (c *Cluster) tell(what func()) {
	if c.down {
		c.missed = append(c.missed, what)
		return
	}
	what()
}

func (c *Cluster) exited(j *job, code int) {
	j.ExitCode = code
	state := slurmctl.Completed
	if code != 0 {
		state = slurmctl.Failed
	}
	c.finish(j, state)
}

// watch puts the job's own end on the agenda.
func (c *Cluster) watch(j *job) {
	if j.left <= 0 {
		return
	}
	id, epoch := j.ID, j.epoch
	c.at(j.resumed+j.left, func() {
		c.tell(func() {
			if j := c.jobs[id]; j != nil && j.epoch == epoch && j.State == slurmctl.Running {
				c.exited(j, j.request.ExitCode)
			}
		})
	})
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
	if p := c.running[j.ID]; p != nil {
		delete(c.running, j.ID)
		p.Kill()
	}
	c.complete(j)
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
				c.freed(nodes)
			}
			if j := c.jobs[id]; j != nil && j.epoch == epoch && j.State == slurmctl.Completing {
				if c.drop(j); j.requeued {
					c.again(j)
				} else {
					c.close(j, state)
				}
			}
			c.schedule()
		})
	})
}

// complete takes the nodes from an ended job; for a moment, they stay busy.
func (c *Cluster) complete(j *job) {
	c.inactive(j)
	c.ending = append(c.ending, j)
	c.give(j, j.nodes)
	for _, n := range j.nodes {
		c.nodes[n].freeing++
		c.completing.add(n)
	}
}

// requeue ends a batch job that returns to the queue. As in Slurm, it starts again two minutes
// later at the earliest.
func (c *Cluster) requeue(j *job) {
	c.finish(j, slurmctl.Cancelled)
	j.requeued, j.revoked = true, c.second()
}

// requeueWait is how long a requeued job waits at least.
const requeueWait = 2 * time.Minute

// again makes a requeued job pending once its nodes are free.
func (c *Cluster) again(j *job) {
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

// freed handles nodes on which a job has completed.
func (c *Cluster) freed(nodes []int) {
	for _, n := range nodes {
		if c.nodes[n].freeing--; c.nodes[n].freeing <= 0 {
			c.nodes[n].freeing = 0
			c.completing.drop(n)
		}
	}
	c.changed()
}

// drop removes a job from the completing jobs.
func (c *Cluster) drop(j *job) {
	if i := slices.Index(c.ending, j); i >= 0 {
		c.ending = slices.Delete(c.ending, i, i+1)
	}
}

// inactive removes a job from the active jobs.
func (c *Cluster) inactive(j *job) {
	if i := slices.Index(c.active, j); i >= 0 {
		c.active = slices.Delete(c.active, i, i+1)
		if !j.whole() {
			c.shared--
		}
	}
	if i := slices.Index(c.byEnd, j); i >= 0 {
		c.byEnd = slices.Delete(c.byEnd, i, i+1)
	}
}

// close turns a record into that of an ended job.
func (c *Cluster) close(j *job, state slurmctl.JobState) {
	c.unqueued(j)
	c.inactive(j)
	j.State = state
	c.touch(j)
	c.event(j)
	c.kick()
	c.forget(j)
}

// forget removes an ended job's record after MinJobAge.
func (c *Cluster) forget(j *job) {
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

// shown returns the job as squeue shows it.
func (c *Cluster) shown(j *job) slurmctl.Job {
	r := j.Job
	if r.Display == "" {
		r.Display = fmt.Sprint(r.ID)
	}
	r.NodeList = c.names(j.nodes)
	if len(j.nodes) > 0 && j.request.Script != "" {
		r.BatchHost = c.nodes[j.batchHost].Name
	}
	if r.State == slurmctl.Pending && !j.planned.IsZero() && !j.request.Begin.After(c.Now()) {
		r.StartTime = j.planned
	}
	if r.State == slurmctl.Running && c.Now().Before(r.StartTime.Add(c.options.Prolog)) {
		r.Reason = "Prolog"
	}
	r.ReqNodes, r.ExcNodes = slices.Clone(r.ReqNodes), slices.Clone(r.ExcNodes)
	return r
}

// names returns the nodes' names in order.
func (c *Cluster) names(nodes []int) []string {
	if nodes == nil {
		return nil
	}
	byRank := func(a, b int) int { return c.rank[a] - c.rank[b] }
	if !slices.IsSortedFunc(nodes, byRank) {
		nodes = slices.Clone(nodes)
		slices.SortFunc(nodes, byRank)
	}
	names := make([]string, len(nodes))
	for i, n := range nodes {
		names[i] = c.nodes[n].Name
	}
	return names
}

// ranks returns the nodes' positions in the order of their names.
func ranks(nodes []node) []int {
	names, ranks, at := make([]string, len(nodes)), make([]int, len(nodes)), make(map[string]int, len(nodes))
	for i, n := range nodes {
		names[i], at[n.Name] = n.Name, i
	}
	slurmctl.SortNodes(names)
	for k, name := range names {
		ranks[at[name]] = k
	}
	return ranks
}
