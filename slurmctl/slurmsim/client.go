package slurmsim

import (
	"context"
	"slices"
	"time"

	"github.com/evoslurm/evoslurm/slurmctl"
)

// Jobs does what slurmctl.Client.Jobs does.
func (k *Client) Jobs(ctx context.Context) ([]slurmctl.Job, error) {
	k.meter(ctx, k.cluster.options.PollCPU)
	return look(ctx, k, Command{Name: "Jobs"}, func() ([]slurmctl.Job, error) { return k.cluster.Queue(), nil })
}

// JobsByID does what slurmctl.Client.JobsByID does.
func (k *Client) JobsByID(ctx context.Context, ids ...slurmctl.JobID) ([]slurmctl.Job, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	return look(ctx, k, Command{Name: "JobsByID", Jobs: ids}, func() ([]slurmctl.Job, error) {
		return byID(k.cluster, ids), nil
	})
}

// ScriptNode does what slurmctl.Client.ScriptNode does.
func (k *Client) ScriptNode(ctx context.Context, id slurmctl.JobID) (string, error) {
	return look(ctx, k, Command{Name: "ScriptNode", Jobs: []slurmctl.JobID{id}}, func() (string, error) {
		j := k.cluster.Jobs[id]
		if j == nil || j.Request.Script == "" || !j.active() || len(j.Nodes) == 0 {
			return "", nil
		}
		return k.cluster.Nodes[j.ScriptNode].Name, nil
	})
}

// Glance does what slurmctl.Client.Glance does.
func (k *Client) Glance(ctx context.Context, ids ...slurmctl.JobID) ([]slurmctl.Job, error) {
	var jobs []slurmctl.Job
	for _, id := range ids {
		var found []slurmctl.Job
		if err := call(ctx, k, k.cluster.options.Latency.Look, Command{Name: "Glance", Jobs: []slurmctl.JobID{id}}, func() error {
			found = byID(k.cluster, []slurmctl.JobID{id})
			return nil
		}); err != nil {
			return nil, err
		}
		jobs = append(jobs, found...)
	}
	return jobs, nil
}

// Named does what slurmctl.Client.Named does.
func (k *Client) Named(ctx context.Context, uid uint32, name string) ([]slurmctl.Job, error) {
	return look(ctx, k, Command{Name: "Named", About: name}, func() ([]slurmctl.Job, error) {
		return slices.DeleteFunc(k.cluster.Queue(), func(r slurmctl.Job) bool { return r.UID != uid || r.Name != name }), nil
	})
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

// Reservations does what slurmctl.Client.Reservations does.
func (k *Client) Reservations(ctx context.Context) ([]slurmctl.Reservation, error) {
	return look(ctx, k, Command{Name: "Reservations"}, func() (all []slurmctl.Reservation, err error) {
		now := k.cluster.Now()
		slurmctl.MeterClock(ctx, now)
		for _, r := range k.cluster.Reservations {
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
		cfg := k.cluster.options.config(k.cluster.Boot)
		if p := k.cluster.options.Plugin; p.Submit != nil || p.Update != nil {
			cfg.Values["JobSubmitPlugins"] = "lua"
		}
		return cfg, nil
	})
}

// Topology does what slurmctl.Client.Topology does.
func (k *Client) Topology(ctx context.Context) (slurmctl.Topology, error) {
	return look(ctx, k, Command{Name: "Topology"}, func() (slurmctl.Topology, error) { return k.cluster.options.Topology, nil })
}

// Licenses does what slurmctl.Client.Licenses does.
func (k *Client) Licenses(ctx context.Context) ([]slurmctl.LicenseStock, error) {
	return look(ctx, k, Command{Name: "Licenses"}, func() ([]slurmctl.LicenseStock, error) { return k.cluster.stock(), nil })
}

// Federation does what slurmctl.Client.Federation does.
func (k *Client) Federation(context.Context) (string, error) {
	return k.cluster.options.Federation, nil
}

// meter adds the processor time of a command to the context's meter, if commands take any.
func (k *Client) meter(ctx context.Context, beyond time.Duration) {
	if k.cluster.options.PollCPU > 0 {
		slurmctl.MeterCPU(ctx, time.Millisecond+beyond)
	}
}

// Backfill does what slurmctl.Client.Backfill does. The model's scheduler takes no time.
func (k *Client) Backfill(ctx context.Context) (busy bool, ended time.Time, err error) {
	k.meter(ctx, 0)
	ended, err = look(ctx, k, Command{Name: "Backfill"}, func() (time.Time, error) { return k.cluster.Backfill.Ended, nil })
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
	return []slurmctl.Controller{{Role: "primary", Host: "model", Up: !k.cluster.Down}}, ended(ctx)
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
		for _, j := range k.cluster.Pending {
			since[j.ID] = j.accrues()
		}
		return since, nil
	})
}

// TimeUsed does what slurmctl.Client.TimeUsed does.
func (k *Client) TimeUsed(ctx context.Context, id slurmctl.JobID) (time.Duration, error) {
	return look(ctx, k, Command{Name: "TimeUsed", Jobs: []slurmctl.JobID{id}}, func() (time.Duration, error) {
		j := k.cluster.Jobs[id]
		if j == nil {
			return 0, refusal("Invalid job id specified")
		}
		return timeUsed(k.cluster, j), nil
	})
}

// BatchScript does what slurmctl.Client.BatchScript does.
func (k *Client) BatchScript(ctx context.Context, id slurmctl.JobID) (string, error) {
	return look(ctx, k, Command{Name: "BatchScript", Jobs: []slurmctl.JobID{id}}, func() (string, error) {
		j, err := ownJob(k, id)
		if err == nil && j.Request.Script == "" {
			err = refusal("Job script not specified")
		}
		if err != nil {
			return "", err
		}
		return j.Request.Script, nil
	})
}

// Request does what slurmctl.Client.Request does.
func (k *Client) Request(ctx context.Context, id slurmctl.JobID, _ slurmctl.Config) (slurmctl.JobRequest, error) {
	return look(ctx, k, Command{Name: "Request", Jobs: []slurmctl.JobID{id}}, func() (slurmctl.JobRequest, error) {
		j := k.cluster.Jobs[id]
		if j == nil {
			return slurmctl.JobRequest{}, slurmctl.ErrUnknownJob
		}
		r := slurmctl.JobRequest{ID: id, UID: j.UID, Account: j.Account, QOS: j.QOS, Partition: j.Partition, Features: j.Features,
			TasksPerNode: j.Request.CPUs, TRESPerNode: j.TRESPer, MemoryPerCPU: j.Request.MemoryPerCPU, DefaultMemoryPerCPU: k.cluster.options.DefMemPerCPU,
			TimeLimit: j.TimeLimit, AccrueTime: j.accrues(), Comment: j.Comment, StepMgr: k.cluster.options.StepMgr,
			Licenses: j.Licenses, Switches: j.Request.Switches, SwitchWait: j.Request.SwitchWait,
			SocketsPerNode: int(j.Layout.Sockets), CoresPerSocket: int(j.Layout.Cores), ThreadsPerCore: int(j.Layout.Threads)}
		if m := j.Request.MemoryPerNode; m != nil {
			r.MemoryPerNode = *m
		} else if r.MemoryPerCPU == 0 {
			r.MemoryPerCPU = r.DefaultMemoryPerCPU
		}
		return r, nil
	})
}
