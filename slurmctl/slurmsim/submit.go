package slurmsim

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/evoslurm/evoslurm/slurmctl"
)

// record checks an incoming request as slurmctld does, and makes the job's record.
func record(c *Cluster, q Job) (*job, error) {
	p, several := c.Partitions.several(q.Partition)
	if err := checkRequest(c, &q, p, several); err != nil {
		return nil, err
	}
	j := &job{Request: q, Part: p, Parts: several, Expands: q.Expand}
	var err error
	if j.Required, err = c.named(q.NodeList); err != nil {
		return nil, err
	}
	if err := topologyRefuses(c, p.Set, j.Required, q.Nodes); err != nil && len(several) == 0 {
		return nil, err
	}
	if j.Excluded, err = c.named(q.Exclude); err != nil {
		return nil, err
	}
	wants, err := slurmctl.ParseConstraint(q.Constraint)
	if err != nil {
		if _, j.Counted = slurmctl.LooseConstraint(q.Constraint); j.Counted == nil {
			return nil, refusal("Invalid feature specification")
		}
	}
	j.Either = wants.Alternatives()
	if err := checkLicenses(c, q.Licenses); err != nil {
		return nil, err
	}
	if _, err := c.Reservations.open(q.Reservation, q.User); err != nil {
		return nil, err
	}
	j.Job = slurmctl.Job{Name: q.Name, User: q.User.Name, UID: q.User.UID, Account: q.User.Account, QOS: cmp.Or(q.QOS, defaultQOS), Partition: cmp.Or(q.Partition, p.Name), Comment: q.Comment,
		State: slurmctl.Pending, Reason: "None", NumNodes: q.Nodes, ReqNodes: slices.Clone(q.NodeList), ExcNodes: slices.Clone(q.Exclude),
		Features: q.Constraint, MinCPUs: max(q.CPUs, 1), Layout: q.Layout, Exclusive: q.CPUs == 0, TimeLimit: timeLimit(c, &q, p), SubmitTime: c.second(), StartTime: q.Begin,
		Licenses: q.Licenses, Reservation: q.Reservation, Nice: q.Nice, ArrayTasks: max(q.Array, 1)}
	j.NumCPUs = q.Nodes * max(q.CPUs, 1)
	if j.whole() {
		j.NumCPUs = q.Nodes * c.Nodes[0].CPUs
	}
	j.TRESPer = tresText(q.GRES)
	if err := c.setMemory(&c.options, j); err != nil {
		return nil, err
	}
	if len(q.After) > 0 {
		j.Dependency = fmt.Sprintf("%s:%d", q.After[0].Kind, q.After[0].Job)
	}
	return j, nil
}

// topologyRefuses returns why Slurm would not start a job of n nodes even if all nodes of its partition were free, or nil.
func topologyRefuses(c *Cluster, partition, required nodeSet, n int) error {
	if n == 1 && c.anywhere {
		return nil
	}
	return cmp.Or(c.blocks.refuses(c.Nodes, partition, required, n), c.network.refuses(c.Nodes, partition, required, n))
}

// checkRequest refuses a job that its partitions or the job to expand rule out.
func checkRequest(c *Cluster, q *Job, p *partition, several []*partition) error {
	fits := func(p *partition) bool { return q.Nodes <= len(p.Nodes) }
	switch {
	case p == nil:
		return refusal("Invalid partition name specified")
	case q.Nodes < 1:
		return refusal("Node count specification invalid")
	}
	if q.Expand != 0 {
		base := c.Jobs[q.Expand]
		switch {
		case !c.options.PermitJobExpansion:
			return refusal("Requested operation not supported on this system")
		case base == nil, base.State != slurmctl.Running:
			return refusal("Job dependency problem")
		case base.Partition != p.Name:
			return refusal("Invalid partition name specified")
		}
	}
	if !fits(p) && !slices.ContainsFunc(several, fits) {
		return refusal("Requested node configuration is not available")
	}
	return nil
}

// timeLimit returns a job's time limit: of an expander, what remains of the job to expand
// (_test_job_dependency of job_scheduler.c).
func timeLimit(c *Cluster, q *Job, p *partition) time.Duration {
	if base := c.Jobs[q.Expand]; base != nil && base.TimeLimit != slurmctl.Unlimited {
		return base.EndTime.Sub(c.second()).Truncate(time.Minute)
	}
	switch {
	case q.TimeLimit == slurmctl.Unlimited:
		return slurmctl.Unlimited
	case q.TimeLimit != 0:
		return wholeMinutes(q.TimeLimit)
	case p.DefaultTime == slurmctl.Unlimited || p.DefaultTime == 0:
		return p.MaxTime
	}
	return p.DefaultTime
}

// Submit queues a job as sbatch does or, without a Script, as salloc does.
func (c *Cluster) Submit(q Job) (slurmctl.JobID, error) {
	if see := c.options.Plugin.Submit; see != nil {
		if err := see(&q); err != nil {
			return 0, err
		}
	}
	j, err := record(c, q)
	if err != nil {
		return 0, err
	}
	if err := maySubmit(c, j); err != nil {
		return 0, err
	}
	if !slices.Contains(c.Users, q.User) {
		c.Users = append(c.Users, q.User)
	}
	c.LastID++
	j.ID, j.ArrayJobID = c.LastID, c.LastID
	if q.Array > 0 {
		setWaiting(j)
	}
	prioritise(c, j)
	if q.Held {
		j.Priority, j.Reason = 0, "JobHeldUser"
	}
	c.Jobs[j.ID] = j
	c.queued(j)
	appended := c.Backfill.Appended
	c.touch(j)
	c.Backfill.Appended = appended
	if q.Script == "" && !c.options.Defer && q.Array == 0 && independent(c, j) && isFirst(c, j) && partitionAdmits(c, j) {
		if tryNow(c, j, c.Up) == fine {
			return j.ID, nil
		}
	}
	c.kick()
	return j.ID, nil
}
