package matrix

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/slurmctl"
	"github.com/evoslurm/evoslurm/slurmctl/slurmsim"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest"
)

// world runs operations by commands on a real cluster, or on a model of one.
type world interface {
	Jobs(context.Context) ([]slurmctl.Job, error)
	JobsByID(context.Context, ...slurmctl.JobID) ([]slurmctl.Job, error)
	Nodes(context.Context) ([]slurmctl.Node, []slurmctl.Partition, error)
	Reservations(context.Context) ([]slurmctl.Reservation, error)
	Config(context.Context) (slurmctl.Config, error)
	UpdateJob(context.Context, slurmctl.JobID, slurmctl.JobUpdate) error
	Merge(context.Context, slurmctl.JobID) error
	Shrink(context.Context, slurmctl.JobID, []string) error
	Cancel(context.Context, ...slurmctl.JobID) error
	BatchScript(context.Context, slurmctl.JobID) (string, error)
	Reconfigure(context.Context) error
	Allocate(context.Context, slurmctl.AllocateRequest) (slurmctl.Job, error)
	CreateReservation(context.Context, slurmctl.ReservationRequest) error
	UpdateReservation(context.Context, string, slurmctl.ReservationUpdate) error
	DeleteReservation(context.Context, string) error

	sbatch(context.Context, []string) (string, error)
	user() *slurmctl.User
	version() string
	now() time.Time
	until(context.Context, func() error) error
	within(context.Context, time.Duration) (context.Context, context.CancelFunc)
	leftovers(context.Context) error // what is left in Slurm, as an error
}

func newBench(t *testing.T, cluster *slurmtest.Cluster, plugin, drive string) *bench {
	slurm := cluster.Client()
	return &bench{t: t, cluster: cluster, slurm: slurm, on: realWorld{slurm, cluster}, plugin: plugin, drive: drive}
}

// realWorld is a real cluster.
type realWorld struct {
	*slurmctl.Client
	cluster *slurmtest.Cluster
}

func (w realWorld) sbatch(ctx context.Context, args []string) (string, error) {
	return w.Submit(ctx, w.user(), args, nil)
}

func (w realWorld) user() *slurmctl.User                                { return w.cluster.Users()[0].ClientUser() }
func (w realWorld) version() string                                     { return w.cluster.Version() }
func (w realWorld) now() time.Time                                      { return time.Now() }
func (w realWorld) until(ctx context.Context, check func() error) error { return until(ctx, check) }

func (w realWorld) within(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, d)
}

func (w realWorld) leftovers(ctx context.Context) error {
	left, err := w.cluster.Leftovers(ctx)
	if err == nil && !left.None() {
		err = fmt.Errorf("left in Slurm: %s", left)
	}
	return err
}

// modelWorld is the model.
type modelWorld struct {
	*slurmsim.Client
	cluster *slurmsim.Cluster
}

// sbatch knows the options that the operations give it.
func (w modelWorld) sbatch(ctx context.Context, args []string) (string, error) {
	u := w.user()
	q := slurmsim.Job{User: slurmsim.User{Name: u.Name, UID: u.UID, Account: "proj"}, Nodes: 1}
	for _, a := range args {
		name, value, _ := strings.Cut(a, "=")
		number, _ := strconv.Atoi(strings.TrimPrefix(value, "1-"))
		switch name {
		case "--nodes":
			q.Nodes = number
		case "--time":
			q.TimeLimit = time.Duration(number) * time.Minute
		case "--begin":
			q.Begin = w.now().Add(24 * time.Hour)
		case "--array":
			q.Array = number
		case "--job-name":
			q.Name = value
		case "--comment":
			q.Comment = value
		case "--wrap":
			q.Script = "#!/bin/sh\n" + value + "\n"
		case "--parsable", "--output", "--chdir", "--exclusive":
		default:
			return "", fmt.Errorf("%s is not known here", name)
		}
	}
	id, err := w.Submit(ctx, q)
	return fmt.Sprint(id), err
}

func (w modelWorld) user() *slurmctl.User { return &slurmctl.User{Name: "alice", UID: 1001} }
func (w modelWorld) version() string      { return "model" }
func (w modelWorld) now() time.Time       { return w.cluster.Now() }

func (w modelWorld) until(ctx context.Context, check func() error) error {
	for end := w.now().Add(operationTime); ; w.cluster.Sleep(50 * time.Millisecond) {
		if err := check(); err == nil || ctx.Err() != nil || w.now().After(end) {
			return err
		}
	}
}

func (w modelWorld) within(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	return w.cluster.WithTimeout(ctx, d)
}

func (w modelWorld) leftovers(context.Context) error {
	if jobs := w.cluster.Queue(); len(jobs) > 0 {
		return fmt.Errorf("left in Slurm: %d jobs", len(jobs))
	}
	nodes, _ := w.cluster.Sinfo()
	for _, n := range nodes {
		if n.State != "idle" && n.State != "reserved" {
			return fmt.Errorf("left in Slurm: %s is %s", n.Name, n.State)
		}
	}
	return nil
}

// TestModel runs the operations by commands on the model; it has neither srun nor
// resizing by numbers.
func TestModel(t *testing.T) {
	for _, accounting := range []bool{true, false} {
		c := slurmsim.New(slurmsim.Options{Accounting: accounting, PermitJobExpansion: true, SchedInterval: time.Second, SchedDelay: time.Second, BackfillInterval: time.Second})
		defer c.Close()
		m := &manual{bench: &bench{t: t, on: modelWorld{c.Client(slurmsim.Root), c}, plugin: "cons_tres", drive: "commands"}}
		if !accounting {
			m.drive = "without slurmdbd"
			m.run(m.withoutAccounting()...)
			continue
		}
		for _, op := range m.byCommands() {
			if op.name != "shrink by NumNodes after a merge" && op.name != "step in a companion" {
				m.run(op)
			}
		}
	}
}
