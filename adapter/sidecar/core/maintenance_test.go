package core

import (
	"fmt"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/internal/config"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/act"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/adopt"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/follow"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/plan"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
	"github.com/evoslurm/evoslurm/planner"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// bench is a sidecar without a Slurm and what it sees: idle nodes n1, n2, … in
// partition main.
type bench struct {
	*state.Core
	t *testing.T
	s *state.Snapshot
}

func newBench(t *testing.T, nodes int) *bench {
	t.Helper()
	now := time.Now().Truncate(time.Second)
	c := newCore(config.Default(), now)
	s := &state.Snapshot{Taken: now, ByID: map[slurmctl.JobID]*slurmctl.Job{}, Index: map[string]int{},
		Partitions: map[string]slurmctl.Partition{}, Reservations: map[string]slurmctl.Reservation{}, InUse: msg.Set{}}
	for i := range nodes {
		name := fmt.Sprintf("n%d", i+1)
		s.Nodes = append(s.Nodes, slurmctl.Node{Name: name, State: "idle", CPUs: 4, Memory: 1000})
		s.Index[name] = i
	}
	b := &bench{c, t, s}
	b.partition("main", 1, nodes)
	c.Snapshot, c.Rules.Read = s, now // without limits
	return b
}

// newCore is a core with a strategy that keeps to the jobs' own expand limits.
func newCore(cfg config.Config, now time.Time) *state.Core {
	return state.New(msg.Site{Version: "test", User: "root", Root: true}, cfg, msg.Strategy{ExpandLimit: 1}, now)
}

// builtin is a strategy of the planner's at work.
type builtin struct{ planner.Strategy }

func (builtin) Pin([]planner.Placement) {}

func (b builtin) Rigid() bool { return planner.IsRigid(b.Strategy) }

func (b builtin) Steady() bool { return planner.IsSteady(b.Strategy) }

// plan has the queue planned.
func (b *bench) plan(s *state.Snapshot) { planNow(b.Core, s) }

func planNow(c *state.Core, s *state.Snapshot) {
	strategy, _ := planner.StrategyByName("noX")
	plan.TakePlans(c, follow.Problem(c, s).Plan(builtin{strategy}))
}

// partition adds one of the nodes from first to last.
func (b *bench) partition(name string, first, last int) {
	b.s.Partitions[name] = slurmctl.Partition{Name: name, Up: true, MaxTime: slurmctl.Unlimited, Nodes: nodeNames(first, last)}
}

func nodeNames(first, last int) (names []string) {
	for i := first; i <= last; i++ {
		names = append(names, fmt.Sprintf("n%d", i))
	}
	return names
}

// reserve adds a reservation of the nodes from first to last.
func (b *bench) reserve(name string, in, duration time.Duration, first, last int) {
	b.s.Reservations[name] = slurmctl.Reservation{Name: name, Start: b.s.Taken.Add(in), End: b.s.Taken.Add(in + duration), Nodes: nodeNames(first, last)}
}

// stock adds a pending stock job.
func (b *bench) stock(id int, priority uint64, nodes int, limit time.Duration) {
	r := slurmctl.Job{ID: slurmctl.JobID(id), State: slurmctl.Pending, Reason: "Priority", Priority: priority, NumNodes: nodes, NumCPUs: 4 * nodes,
		ArrayTasks: 1, Exclusive: true, Partition: "main", TimeLimit: limit, SubmitTime: b.s.Taken}
	b.s.Jobs = append(b.s.Jobs, r)
}

// evolving adds a parked evolving job.
func (b *bench) evolving(id int, priority uint64, profile string, limit time.Duration) *state.Job {
	b.t.Helper()
	p, err := planner.ParseProfile(profile)
	if err != nil {
		b.t.Fatal(err)
	}
	r := slurmctl.Job{ID: slurmctl.JobID(id), State: slurmctl.Pending, Reason: "BeginTime", Priority: priority, NumNodes: p[0].Nodes, ArrayTasks: 1,
		Exclusive: true, Partition: "main", TimeLimit: limit, SubmitTime: b.s.Taken, StartTime: b.s.Taken.Add(adopt.Parked)}
	values := &row.Job{ID: int64(id), SlurmID: uint32(id), User: "user", UID: 1000, Drive: "merge", State: row.Queued, Profile: p, Submitted: r.SubmitTime, Partition: "main"}
	j := &state.Job{Job: values, Record: r, Priority: priority, Asked: &slurmctl.JobRequest{}}
	adopt.Add(b.Core, j)
	b.s.Jobs = append(b.s.Jobs, r)
	return j
}

// startsIn plans and tells when the job is to start.
func (b *bench) startsIn(j *state.Job) time.Duration {
	b.t.Helper()
	b.plan(b.s)
	if len(j.Plan) == 0 {
		b.t.Fatalf("job %d has no plan: %s", j.SlurmID, j.Reason.Words())
	}
	return time.Duration(j.Plan[0].Start-b.s.Taken.Unix()) * time.Second
}

func TestMaintenance(t *testing.T) {
	t.Run("an unlimited stock job delays nobody", func(t *testing.T) {
		b := newBench(t, 8)
		b.reserve("maint", 2*time.Hour, time.Hour, 1, 8)
		b.stock(1, 1000, 2, slurmctl.Unlimited)
		j := b.evolving(2, 1, "1@12s,3@15s,1@8s", 2*time.Minute)
		if in := b.startsIn(j); in != 0 {
			t.Errorf("it is to start in %v", in)
		}
	})
	t.Run("the limit counts once", func(t *testing.T) {
		b := newBench(t, 4)
		b.reserve("maint", 2*time.Hour, time.Hour, 1, 4)
		fits := b.evolving(1, 2, "1@59m,2@58m", 119*time.Minute)
		late := b.evolving(2, 1, "1@59m,2@58m", 121*time.Minute)
		if in := b.startsIn(fits); in != 0 {
			t.Errorf("the job that fits is to start in %v", in)
		}
		if in := b.startsIn(late); in != 3*time.Hour {
			t.Errorf("the job that does not is to start in %v", in)
		}
	})
	t.Run("licences alone", func(t *testing.T) {
		b := newBench(t, 4)
		b.reserve("licences", time.Minute, time.Hour, 1, 0)
		if in := b.startsIn(b.evolving(1, 2, "4@5m", time.Hour)); in != 0 {
			t.Errorf("it is to start in %v", in)
		}
	})
	t.Run("the nodes that are left", func(t *testing.T) {
		b := newBench(t, 4)
		b.reserve("course", time.Hour, time.Hour, 1, 2)
		j := b.evolving(1, 2, "1@5m,2@5m", 2*time.Hour)
		if in := b.startsIn(j); in != 0 || msg.SetOf([]string{"n1", "n2"}).Any(j.Planned()) {
			t.Errorf("it is to start in %v on %v", in, j.Planned())
		}
	})
	t.Run("under way", func(t *testing.T) {
		b := newBench(t, 4)
		b.s.Reservations["maint"] = slurmctl.Reservation{Name: "maint", Start: b.s.Taken.Add(-time.Hour), End: b.s.Taken.Add(time.Hour), Nodes: nodeNames(1, 4)}
		for i := range b.s.Nodes {
			b.s.Nodes[i].State = "maint"
		}
		if in := b.startsIn(b.evolving(1, 2, "4@5m", time.Hour)); in != time.Hour {
			t.Errorf("it is to start in %v", in)
		}
	})
	t.Run("made while a job runs", func(t *testing.T) {
		b := newBench(t, 4)
		j := b.evolving(1, 2, "1@10m,2@10m", 30*time.Minute)
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
			if lost := follow.LostNodes(b.Core, b.s, follow.Foreign(b.Core, b.s, now.Unix()), j, now.Unix()); lost != c.lost {
				t.Errorf("reserved in %v: lost %v", c.in, lost)
			}
		}
		b.s.Reservations["new"] = slurmctl.Reservation{Name: "new", Start: now.Add(29 * time.Minute), End: now.Add(time.Hour), Nodes: grown}
		follow.Refit(b.Core, b.s, j, now.Unix(), "test")
		if msg.SetOf(grown).Any(j.Plan[1].Nodes) || j.Plan[1].Start != now.Add(10*time.Minute).Unix() {
			t.Errorf("it grows onto %v at %v", j.Plan[1].Nodes, time.Unix(j.Plan[1].Start, 0).Sub(now))
		}
	})
}

// TestExpanderLimit: a job that brings nodes lasts as long as the base job may, in whole minutes
// rounded up, unless others have the nodes right after that.
func TestExpanderLimit(t *testing.T) {
	const never = 0
	for _, c := range []struct {
		left     time.Duration // of the base job's limit
		reserved time.Duration // from when on the nodes are; never
		want     time.Duration
		fits     bool
	}{
		{slurmctl.Unlimited, time.Hour, slurmctl.Unlimited, true},
		{19*time.Minute + 38*time.Second, never, 20 * time.Minute, true},
		{19*time.Minute + 38*time.Second, 20*time.Minute + plan.ExpanderBegins, 20 * time.Minute, true},
		{19*time.Minute + 38*time.Second, 19*time.Minute + 50*time.Second, 19 * time.Minute, true},
		{20 * time.Minute, 20 * time.Minute, 19 * time.Minute, true}, // it begins a little later
		{20*time.Minute + 5*time.Second, 20*time.Minute + 5*time.Second, 20 * time.Minute, true},
		{20 * time.Minute, 10 * time.Minute, 21 * time.Minute, true}, // the limit reaches into it anyway
		{time.Minute + 4*time.Second, time.Minute + 4*time.Second, time.Minute, false},
		{30 * time.Second, time.Minute + plan.ExpanderBegins, time.Minute, true},
		{30 * time.Second, never, time.Minute, true},
		{-time.Minute, never, time.Minute, true}, // Slurm lets jobs overrun (OverTimeLimit)
	} {
		b := newBench(t, 4)
		j := b.evolving(1, 1, "1@10m,2@10m", time.Hour)
		if j.Record.EndTime = b.Now.Add(c.left); c.left == slurmctl.Unlimited {
			j.Record.TimeLimit, j.Record.EndTime = slurmctl.Unlimited, time.Time{}
		}
		if c.reserved != never {
			b.reserve("maint", c.reserved, time.Hour, 2, 3)
		}
		if limit, fits := act.ExpanderLimit(b.Core, j, []string{"n2"}); limit != c.want || fits != c.fits {
			t.Errorf("%v left, reserved in %v: limit %v, fits %v; want %v, %v", c.left, c.reserved, limit, fits, c.want, c.fits)
		}
		if limit, _ := act.ExpanderLimit(b.Core, j, []string{"n4"}); c.left != slurmctl.Unlimited && limit < c.left {
			t.Errorf("%v left, others reserved: limit %v", c.left, limit)
		}
	}
}
