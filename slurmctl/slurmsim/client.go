package slurmsim

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/evoslurm/evoslurm/slurmctl"
)

// Client runs commands on the model as one user. It has the methods of slurmctl.Client and fails in
// the same way. Every call takes virtual time. During a call by a [Process], others continue; a
// call from outside advances the clock until the command has ended.
type Client struct {
	cluster *Cluster
	user    User
	calls   uint64

	wantsAccount bool
}

// Client returns a client of a user.
func (c *Cluster) Client(u User) *Client {
	c.watched = true
	return &Client{cluster: c, user: u}
}

// Calls returns how many commands the client has run.
func (k *Client) Calls() uint64 { return k.calls }

// TryUpdate does what slurmctl.Client.TryUpdate does.
func (k *Client) TryUpdate(ctx context.Context, id slurmctl.JobID, start time.Time) error {
	err := k.UpdateJob(ctx, id, slurmctl.JobUpdate{StartTime: start})
	if errors.Is(err, slurmctl.ErrUnreachable) {
		return err
	}
	if !refusedUpdate(err) {
		return nil
	}
	if jobs, failed := k.Glance(ctx, id); failed == nil && len(jobs) == 1 && jobs[0].State == slurmctl.Pending {
		return err
	}
	return nil
}

// MayAllocate does what slurmctl.Client.MayAllocate does.
func (k *Client) MayAllocate(ctx context.Context, q slurmctl.AllocateRequest) error {
	return k.call(ctx, k.cluster.options.Latency.Look, Command{Name: "MayAllocate"}, func() error {
		see := k.cluster.options.Plugin.Submit
		if see == nil {
			return nil
		}
		j := k.asked(q)
		j.Expand, j.NodeList, j.Reservation = 0, nil, ""
		return submitted("srun", "Unable to allocate resources: ", see(&j))
	})
}

// Jobs does what slurmctl.Client.Jobs does.
func (k *Client) Jobs(ctx context.Context) ([]slurmctl.Job, error) {
	return look(ctx, k, Command{Name: "Jobs"}, func() ([]slurmctl.Job, error) { return k.cluster.Queue(), nil })
}

// Queue returns what squeue shows now.
func (c *Cluster) Queue() []slurmctl.Job {
	c.watched = true
	all := slices.Concat(c.pending, c.active)
	all = append(all, c.leaving()...)
	slices.SortFunc(all, func(a, b *job) int { return cmp.Compare(a.ID, b.ID) })
	jobs := make([]slurmctl.Job, len(all))
	for i, j := range all {
		jobs[i] = c.shown(j)
	}
	return jobs
}

// Record returns what slurmctld knows about a job, also for a while after its end.
func (c *Cluster) Record(id slurmctl.JobID) (slurmctl.Job, bool) {
	j := c.jobs[id]
	if j == nil {
		return slurmctl.Job{}, false
	}
	return c.shown(j), true
}

// JobsByID does what slurmctl.Client.JobsByID does.
func (k *Client) JobsByID(ctx context.Context, ids ...slurmctl.JobID) ([]slurmctl.Job, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	return look(ctx, k, Command{Name: "JobsByID", Jobs: ids}, func() ([]slurmctl.Job, error) {
		return k.cluster.byID(ids), nil
	})
}

func (c *Cluster) byID(ids []slurmctl.JobID) []slurmctl.Job {
	var jobs []slurmctl.Job
	for _, id := range ids {
		if j := c.jobs[id]; j != nil {
			jobs = append(jobs, c.shown(j))
		}
	}
	return jobs
}

// ScriptNode does what slurmctl.Client.ScriptNode does.
func (k *Client) ScriptNode(ctx context.Context, id slurmctl.JobID) (string, error) {
	return look(ctx, k, Command{Name: "ScriptNode", Jobs: []slurmctl.JobID{id}}, func() (string, error) {
		j := k.cluster.jobs[id]
		if j == nil || j.request.Script == "" || !j.active() || len(j.nodes) == 0 {
			return "", nil
		}
		return k.cluster.nodes[j.script].Name, nil
	})
}

// Glance does what slurmctl.Client.Glance does.
func (k *Client) Glance(ctx context.Context, ids ...slurmctl.JobID) ([]slurmctl.Job, error) {
	var jobs []slurmctl.Job
	for _, id := range ids {
		var found []slurmctl.Job
		if err := k.call(ctx, k.cluster.options.Latency.Look, Command{Name: "Glance", Jobs: []slurmctl.JobID{id}}, func() error {
			found = k.cluster.byID([]slurmctl.JobID{id})
			return nil
		}); err != nil {
			return nil, err
		}
		jobs = append(jobs, found...)
	}
	return jobs, nil
}

// Nodes does what slurmctl.Client.Nodes does.
func (k *Client) Nodes(ctx context.Context) ([]slurmctl.Node, []slurmctl.Partition, error) {
	type both struct {
		nodes []slurmctl.Node
		parts []slurmctl.Partition
	}
	b, err := look(ctx, k, Command{Name: "Nodes"}, func() (b both, err error) {
		b.nodes, b.parts = k.cluster.Sinfo()
		return b, nil
	})
	return b.nodes, b.parts, err
}

// Sinfo returns what sinfo shows now.
func (c *Cluster) Sinfo() (nodes []slurmctl.Node, parts []slurmctl.Partition) {
	for _, p := range c.partitions {
		shown := p.Partition.Partition
		shown.Nodes = slices.Clone(shown.Nodes)
		parts = append(parts, shown)
	}
	held := newNodeSet(len(c.nodes)) // by reservations
	for _, r := range c.reservations {
		if r.overlaps(c.Now(), c.Now().Add(1)) {
			held.or(r.set)
		}
	}
	nodes = make([]slurmctl.Node, 0, len(c.nodes))
	for i := range c.nodes {
		n := &c.nodes[i]
		shown := n.Node
		shown.State, shown.CPUsAlloc = c.nodeState(i, held), int(c.usage.cpus[i])
		shown.Flags = marks[n.power]
		shown.Partitions = slices.Clip(shown.Partitions)
		if n.leaked {
			shown.CPUsAlloc = n.CPUs
		}
		nodes = append(nodes, shown)
	}
	return nodes, parts
}

func (c *Cluster) nodeState(i int, held nodeSet) string {
	n, used := &c.nodes[i], int(c.usage.cpus[i])
	switch {
	case n.down:
		return "down"
	case n.drained && used > 0:
		return "draining"
	case n.drained:
		return "drained"
	case n.freeing > 0:
		return "completing"
	case n.leaked, used >= n.CPUs, c.usage.sole.has(i):
		return "allocated"
	case used > 0:
		return "mixed"
	}
	if held.has(i) {
		return "reserved"
	}
	return "idle"
}

// Reservations does what slurmctl.Client.Reservations does.
func (k *Client) Reservations(ctx context.Context) ([]slurmctl.Reservation, error) {
	return look(ctx, k, Command{Name: "Reservations"}, func() (all []slurmctl.Reservation, err error) {
		now := k.cluster.Now()
		for _, r := range k.cluster.reservations {
			shown := r.Reservation
			shown.Active = r.overlaps(now, now.Add(1))
			shown.Start = shown.Start.Truncate(time.Second)
			shown.Nodes = slices.Clone(shown.Nodes)
			all = append(all, shown)
		}
		return all, nil
	})
}

// Config does what slurmctl.Client.Config does.
func (k *Client) Config(ctx context.Context) (slurmctl.Config, error) {
	return look(ctx, k, Command{Name: "Config"}, func() (slurmctl.Config, error) {
		cfg := k.cluster.options.config(k.cluster.boot)
		if p := k.cluster.options.Plugin; p.Submit != nil || p.Update != nil {
			cfg.Values["JobSubmitPlugins"] = "lua"
		}
		return cfg, nil
	})
}

// Backfill does what slurmctl.Client.Backfill does. The model's scheduler takes no time.
func (k *Client) Backfill(ctx context.Context) (busy bool, ended time.Time, err error) {
	ended, err = look(ctx, k, Command{Name: "Backfill"}, func() (time.Time, error) { return k.cluster.backfill.ended, nil })
	return false, ended, err
}

// Slurmdbd does what slurmctl.Client.Slurmdbd does.
func (k *Client) Slurmdbd(ctx context.Context) error {
	_, err := look(ctx, k, Command{Name: "Slurmdbd"}, func() (none struct{}, err error) {
		if !k.cluster.options.Accounting {
			err = slurmctl.ErrNoSlurmdbd
		}
		return none, err
	})
	return err
}

// Version does what slurmctl.Client.Version does.
func (k *Client) Version(ctx context.Context) (string, error) {
	k.calls++
	return k.cluster.options.Version, ended(ctx)
}

// Ping does what slurmctl.Client.Ping does.
func (k *Client) Ping(ctx context.Context) ([]slurmctl.Controller, error) {
	k.calls++
	return []slurmctl.Controller{{Role: "primary", Host: "model", Up: !k.cluster.down}}, ended(ctx)
}

// Clock does what slurmctl.Client.Clock does.
func (k *Client) Clock(ctx context.Context) (time.Time, error) {
	return look(ctx, k, Command{Name: "Clock"}, func() (time.Time, error) { return k.cluster.second(), nil })
}

// AdminLevel does what slurmctl.Client.AdminLevel does. The model has no administrators.
func (k *Client) AdminLevel(ctx context.Context, user string) (string, error) {
	return look(ctx, k, Command{Name: "AdminLevel", About: user}, func() (string, error) { return "None", nil })
}

// AccrueTimes does what slurmctl.Client.AccrueTimes does.
func (k *Client) AccrueTimes(ctx context.Context) (map[slurmctl.JobID]time.Time, error) {
	return look(ctx, k, Command{Name: "AccrueTimes"}, func() (map[slurmctl.JobID]time.Time, error) {
		since := map[slurmctl.JobID]time.Time{}
		for _, j := range k.cluster.pending {
			since[j.ID] = j.accrues()
		}
		return since, nil
	})
}

// TimeUsed does what slurmctl.Client.TimeUsed does.
func (k *Client) TimeUsed(ctx context.Context, id slurmctl.JobID) (time.Duration, error) {
	return look(ctx, k, Command{Name: "TimeUsed", Jobs: []slurmctl.JobID{id}}, func() (time.Duration, error) {
		j := k.cluster.jobs[id]
		if j == nil {
			return 0, refusal("Invalid job id specified")
		}
		return k.cluster.used(j), nil
	})
}

// BatchScript does what slurmctl.Client.BatchScript does.
func (k *Client) BatchScript(ctx context.Context, id slurmctl.JobID) (string, error) {
	return look(ctx, k, Command{Name: "BatchScript", Jobs: []slurmctl.JobID{id}}, func() (string, error) {
		j, err := k.mine(id)
		if err == nil && j.request.Script == "" {
			err = refusal("Job script not specified")
		}
		if err != nil {
			return "", err
		}
		return j.request.Script, nil
	})
}

// Request does what slurmctl.Client.Request does.
func (k *Client) Request(ctx context.Context, id slurmctl.JobID, _ slurmctl.Config) (slurmctl.JobRequest, error) {
	return look(ctx, k, Command{Name: "Request", Jobs: []slurmctl.JobID{id}}, func() (slurmctl.JobRequest, error) {
		j := k.cluster.jobs[id]
		if j == nil {
			return slurmctl.JobRequest{}, slurmctl.ErrUnknownJob
		}
		r := slurmctl.JobRequest{ID: id, UID: j.UID, Account: j.Account, QOS: j.QOS, Partition: j.Partition, Features: j.Features,
			TasksPerNode: j.request.CPUs, TRESPerNode: j.TRESPer, MemoryPerCPU: j.request.MemoryPerCPU, DefaultMemoryPerCPU: k.cluster.options.DefMemPerCPU,
			TimeLimit: j.TimeLimit, AccrueTime: j.accrues(), Comment: j.Comment, StepMgr: k.cluster.options.StepMgr}
		if m := j.request.MemoryPerNode; m != nil {
			r.MemoryPerNode = *m
		} else if r.MemoryPerCPU == 0 {
			r.MemoryPerCPU = r.DefaultMemoryPerCPU
		}
		return r, nil
	})
}
