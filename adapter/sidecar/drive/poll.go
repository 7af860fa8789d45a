package drive

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/lease"
	"github.com/evoslurm/evoslurm/slurmctl"
)

const (
	// pollPatience is how long a poll waits for the backfill scheduler to end.
	pollPatience = 10 * time.Second
	pollAgain    = 250 * time.Millisecond
)

// Poll observes the cluster: three commands, however many jobs there are, and every now
// and then Slurm's configuration.
func (d *Driver) Poll(ctx context.Context, l msg.Poll) msg.Observation {
	for end := d.Now().Add(pollPatience); l.Gently && d.Now().Before(end) && d.resting(ctx) != nil; {
		d.Pause(ctx, pollAgain)
	}
	o := msg.Observation{Begun: d.Now()}
	if l.Config {
		cfg, err := d.Slurm.Config(ctx)
		if o.Err = err; err == nil {
			o.Config = &cfg
			if cfg.HasTopology() {
				if o.Topology, err = d.Slurm.Topology(ctx); errors.Is(err, slurmctl.ErrUnreachable) {
					o.Err = err
				}
				o.NoTopology = err
			}
			d.backfill.setInterval(cfg.BackfillInterval())
			if o.Err == nil && cfg.AccountingStorageType() == "slurmdbd" { // no other cluster is in one
				o.Err = d.federated(ctx)
			}
		}
	}
	if o.Err == nil && l.Measure {
		o.BareCPU = d.bareCPU(ctx)
	}
	if o.Err == nil {
		meter := &slurmctl.Meter{}
		o.Begun = d.Now()
		d.observe(slurmctl.WithMeter(ctx, meter), &o, meter)
		o.Commands, o.CPU = meter.Commands(), meter.CPU()
	}
	o.Lead, o.Calls, o.UpdatesNeedAccount = d.Lead(), d.Slurm.Calls(), d.Slurm.WantsAccount()
	return o
}

// federated returns an error if the cluster is in a federation, or if slurmctld does not answer.
func (d *Driver) federated(ctx context.Context) error {
	switch name, err := d.Slurm.Federation(ctx); {
	case errors.Is(err, slurmctl.ErrUnreachable):
		return err
	case name != "":
		return slurmctl.Federated(name)
	}
	return nil
}

// bareCPU returns the processor time of sdiag: it is started, authenticated, and answered like
// every command, but slurmctld answers it at once in a few lines. It ignores the exit status.
func (d *Driver) bareCPU(ctx context.Context) time.Duration {
	meter := &slurmctl.Meter{}
	_, _, _ = d.Slurm.Backfill(slurmctl.WithMeter(ctx, meter))
	return meter.CPU()
}

func (d *Driver) observe(ctx context.Context, o *msg.Observation, meter *slurmctl.Meter) {
	if o.Nodes, o.Partitions, o.Err = d.Slurm.Nodes(ctx); o.Err != nil {
		return
	}
	// reservations before jobs: a job seen outside a hold entered before the hold stood
	sent := d.Now()
	if o.Reservations, o.Err = d.Slurm.Reservations(ctx); o.Err != nil {
		return
	}
	d.sees(sent, meter.Clock())
	o.Reservations = slices.DeleteFunc(o.Reservations, func(r slurmctl.Reservation) bool { return strings.HasPrefix(r.Name, lease.Prefix) })
	if o.Jobs, o.Err = d.Slurm.Jobs(ctx); o.Err == nil {
		o.Marks = d.marks.read(o.Jobs)
	}
}

// marks caches what the last poll has read in comments.
type marks struct {
	mu   sync.Mutex
	last []msg.Mark
}

func (m *marks) read(jobs []slurmctl.Job) []msg.Mark {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.last = msg.ReadMarks(jobs, m.last)
	return m.last
}

// PollNodes finds out which nodes have become free.
func (d *Driver) PollNodes(ctx context.Context, l msg.PollNodes) msg.NodesSeen {
	seen := msg.NodesSeen{Begun: d.Now()}
	if l.Gently {
		if seen.Err = d.resting(ctx); seen.Err != nil {
			return seen
		}
	}
	seen.Nodes, _, seen.Err = d.Slurm.Nodes(ctx)
	return seen
}
