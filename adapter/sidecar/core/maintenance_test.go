package core

import (
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/plan"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/refit"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state/statetest"
	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// bench is a sidecar without a Slurm, which plans.
type bench struct {
	*statetest.Bench
	t *testing.T
	s *state.Snapshot
}

func newBench(t *testing.T, nodes int) *bench {
	t.Helper()
	b := statetest.New(t, nodes)
	return &bench{b, t, b.Seen}
}

// plan has the queue planned.
func (b *bench) plan(s *state.Snapshot) { planNow(b.Core, s) }

func planNow(c *state.Core, s *state.Snapshot) {
	plan.TakePlans(c, refit.Problem(c, s).Plan(statetest.NoX()))
}

// startsIn plans and tells when the job is to start.
func (b *bench) startsIn(j *state.Job) time.Duration {
	b.t.Helper()
	b.plan(b.s)
	if len(j.Plan) == 0 {
		b.t.Fatalf("job %d has no plan: %s", j.SlurmID, j.Reason().Words())
	}
	return time.Duration(j.Plan[0].Start-b.s.Taken.Unix()) * time.Second
}

func TestMaintenance(t *testing.T) {
	t.Run("an unlimited stock job delays nobody", func(t *testing.T) {
		b := newBench(t, 8)
		b.Reserve("maint", 2*time.Hour, time.Hour, 1, 8)
		b.Stock(1, 1000, 2, slurmctl.Unlimited)
		j := b.Evolving(2, 1, "1@12s,3@15s,1@8s", 2*time.Minute)
		if in := b.startsIn(j); in != 0 {
			t.Errorf("it is to start in %v", in)
		}
	})
	t.Run("the limit counts once", func(t *testing.T) {
		b := newBench(t, 4)
		b.Reserve("maint", 2*time.Hour, time.Hour, 1, 4)
		fits := b.Evolving(1, 2, "1@59m,2@58m", 119*time.Minute)
		late := b.Evolving(2, 1, "1@59m,2@58m", 121*time.Minute)
		if in := b.startsIn(fits); in != 0 {
			t.Errorf("the job that fits is to start in %v", in)
		}
		if in := b.startsIn(late); in != 3*time.Hour {
			t.Errorf("the job that does not is to start in %v", in)
		}
	})
	t.Run("licences alone", func(t *testing.T) {
		b := newBench(t, 4)
		b.Reserve("licences", time.Minute, time.Hour, 1, 0)
		if in := b.startsIn(b.Evolving(1, 2, "4@5m", time.Hour)); in != 0 {
			t.Errorf("it is to start in %v", in)
		}
	})
	t.Run("the nodes that are left", func(t *testing.T) {
		b := newBench(t, 4)
		b.Reserve("course", time.Hour, time.Hour, 1, 2)
		j := b.Evolving(1, 2, "1@5m,2@5m", 2*time.Hour)
		if in := b.startsIn(j); in != 0 || msg.SetOf([]string{"n1", "n2"}).Any(j.Planned()) {
			t.Errorf("it is to start in %v on %v", in, j.Planned())
		}
	})
	t.Run("under way", func(t *testing.T) {
		b := newBench(t, 4)
		b.s.Reservations["maint"] = slurmctl.Reservation{Name: "maint", Start: b.s.Taken.Add(-time.Hour), End: b.s.Taken.Add(time.Hour), Nodes: statetest.Names(1, 4)}
		for i := range b.s.Nodes {
			b.s.Nodes[i].State = "maint"
		}
		if in := b.startsIn(b.Evolving(1, 2, "4@5m", time.Hour)); in != time.Hour {
			t.Errorf("it is to start in %v", in)
		}
	})
	t.Run("made while a job runs", func(t *testing.T) {
		b := newBench(t, 4)
		j := b.Evolving(1, 2, "1@10m,2@10m", 30*time.Minute)
		b.startsIn(j)
		now := b.s.Taken
		j.State, j.Step, j.StepStarted, j.Started, j.Held = row.Running, 1, now, now, []msg.Part{{ID: 1, Step: 1, Nodes: j.Plan[0].Nodes}}
		j.Record.State, j.Record.EndTime, j.Record.NodeList = slurmctl.Running, now.Add(30*time.Minute), j.Plan[0].Nodes
		grown := msg.Without(j.Plan[1].Nodes, j.Plan[0].Nodes)
		for _, c := range []struct {
			in   time.Duration
			lost bool
		}{{29 * time.Minute, true}, {30 * time.Minute, false}} {
			b.s.Reservations["new"] = slurmctl.Reservation{Name: "new", Start: now.Add(c.in), End: now.Add(time.Hour), Nodes: grown}
			if lost := refit.LostNodes(b.Core, b.s, refit.Foreign(b.Core, b.s, now.Unix()), j, now.Unix()); lost != c.lost {
				t.Errorf("reserved in %v: lost %v", c.in, lost)
			}
		}
		b.s.Reservations["new"] = slurmctl.Reservation{Name: "new", Start: now.Add(29 * time.Minute), End: now.Add(time.Hour), Nodes: grown}
		refit.Refit(b.Core, b.s, j, now.Unix(), "test")
		if msg.SetOf(grown).Any(j.Plan[1].Nodes) || j.Plan[1].Start != now.Add(10*time.Minute).Unix() {
			t.Errorf("it grows onto %v at %v", j.Plan[1].Nodes, time.Unix(j.Plan[1].Start, 0).Sub(now))
		}
	})
}
