package slurmsim

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/evoslurm/evoslurm/slurmctl"
)

// record checks an incoming request as slurmctld does.
func record(c *Cluster, q Job) (*job, error) {
	p, several := c.partitions.several(q.Partition)
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
		r := c.reservations.named(q.Reservation)
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
	if err := c.setMemory(&c.options, j); err != nil {
		return nil, err
	}
	if len(q.After) > 0 {
		j.Dependency = fmt.Sprintf("%s:%d", q.After[0].Kind, q.After[0].Job)
	}
	return j, nil
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
	if !slices.Contains(c.users, q.User) {
		c.users = append(c.users, q.User)
	}
	c.lastID++
	j.ID, j.ArrayJobID = c.lastID, c.lastID
	if q.Array > 0 {
		j.Display = fmt.Sprintf("%d_[1-%d]", j.ID, q.Array)
	}
	prioritise(c, j)
	if q.Held {
		j.Priority, j.Reason = 0, "JobHeldUser"
	}
	c.jobs[j.ID] = j
	c.queued(j)
	appended := c.backfill.appended
	c.touch(j)
	c.backfill.appended = appended
	if q.Script == "" && !c.options.Defer && q.Array == 0 && independent(c, j) && isFirst(c, j) && partitionAdmits(c, j) {
		if tryNow(c, j, c.up) == fine {
			return j.ID, nil
		}
	}
	c.kick()
	return j.ID, nil
}
