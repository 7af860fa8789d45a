package delay

import (
	"slices"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/hold"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/plan"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// begin has a planned job run, with its holds in place.
func (b *bench) begin(j *state.Job) {
	b.t.Helper()
	b.plan(b.s)
	if len(j.Plan) == 0 || j.Plan[0].Start > b.s.Taken.Unix() {
		b.t.Fatalf("job %d does not start: %v %s", j.SlurmID, j.Plan, j.Reason().Words())
	}
	j.State, j.Step, j.Started, j.StepStarted = row.Running, 1, b.s.Taken, b.s.Taken
	j.Record.State, j.Record.NodeList = slurmctl.Running, j.Plan[0].Nodes
	j.Record.StartTime, j.Record.EndTime = b.s.Taken, b.s.Taken.Add(j.Record.TimeLimit)
	j.Held = []msg.Part{{ID: j.BaseID(), Step: 1, Nodes: j.Plan[0].Nodes}}
	for _, h := range hold.HoldsOf(b.Core, j, b.s.Taken.Unix()) {
		hold.SetHold(b.Core, slurmctl.Reservation{Name: state.OwnName{j.BaseID(), h.Step, 1}.String(), Start: time.Unix(h.Start, 0), End: time.Unix(h.End, 0), Nodes: h.Nodes, Flags: h.Flags()})
	}
	b.see()
}

// see takes over what the bench's jobs are.
func (b *bench) see() {
	b.s.InUse = msg.Set{}
	for i := range b.s.Jobs {
		r := &b.s.Jobs[i]
		if j := b.ByID[r.ID]; j != nil {
			*r = j.Record
		}
		r.UID = uint32(r.Priority) // everybody has one job
		b.s.ByID[r.ID] = r
		b.s.InUse.Add(r.NodeList)
	}
	b.s.Eligibles = nil
}

// later lets time go by.
func (b *bench) later(by time.Duration) {
	b.Now = b.Now.Add(by)
	b.s.Taken = b.Now
	Watch(b.Core, b.s)
}

// TestDelayBudgetClaims: a job is held up only if Slurm would start it this moment without holds.
func TestDelayBudgetClaims(t *testing.T) {
	const hour = time.Hour
	for name, c := range map[string]struct {
		change func(*bench, *slurmctl.Job)
		budget time.Duration
		lapses bool
	}{
		"it waits for hours":     {budget: hour, lapses: true},
		"within the budget":      {budget: 9 * hour},
		"held":                   {budget: hour, change: func(_ *bench, r *slurmctl.Job) { r.Priority, r.Reason = 0, "JobHeldUser" }},
		"a dependency":           {budget: hour, change: func(_ *bench, r *slurmctl.Job) { r.Reason = "Dependency" }},
		"a begin time":           {budget: hour, change: func(_ *bench, r *slurmctl.Job) { r.Reason = "BeginTime" }},
		"a limit":                {budget: hour, change: func(_ *bench, r *slurmctl.Job) { r.Reason = "AssocGrpNodeLimit" }},
		"ends before the growth": {budget: 0, change: func(_ *bench, r *slurmctl.Job) { r.TimeLimit = 6 * hour }},
		"fits beside the holds":  {budget: 0, change: func(_ *bench, r *slurmctl.Job) { r.NumNodes = 1 }},
		"more nodes than idle":   {budget: 0, change: func(_ *bench, r *slurmctl.Job) { r.NumNodes = 8 }},
		"one before it in order": {budget: 0, change: func(b *bench, _ *slurmctl.Job) { b.Stock(9, 999, 7, 6*hour); b.see() }},
		"one before it is held": {budget: 0, lapses: true, change: func(b *bench, _ *slurmctl.Job) {
			b.Stock(9, 999, 7, 6*hour)
			b.s.Jobs[2].Reason = "Dependency"
			b.see()
		}},
		"Slurm is starting the holder": {budget: 0, lapses: true, change: func(b *bench, _ *slurmctl.Job) {
			j := b.Active[0]
			j.State, j.Step, j.Held, j.Record.State, j.Record.NodeList = row.Starting, 0, nil, slurmctl.Pending, nil
			b.see()
		}},
		"urgent jobs of other nodes": {budget: 0, lapses: true, change: func(b *bench, _ *slurmctl.Job) {
			b.Seen.Nodes = append(b.Seen.Nodes, slurmctl.Node{Name: "far", State: "idle", CPUs: 4})
			b.Seen.Index["far"] = 8
			b.Seen.Partitions["far"] = slurmctl.Partition{Name: "far", Up: true, Nodes: []string{"far"}}
			for i := range 2 * b.Config.StockJobs {
				b.Stock(100+i, uint64(999+i), 1, 6*hour).Partition = "far"
			}
			b.see()
		}},
		"a queued job's own turn": {budget: 0, change: func(b *bench, _ *slurmctl.Job) { b.Evolving(9, 999, "7@1h", 6*hour); b.see() }},
	} {
		b := newBench(t, 8)
		b.Config.MaxDelay, b.Config.StockJobs = c.budget, 100
		j := b.Evolving(1, 1000, "1@7h,7@1h", 9*hour)
		b.begin(j) // n8 is free
		b.Stock(2, 10, 2, 8*hour)
		b.see()
		if c.change != nil {
			c.change(b, &b.s.Jobs[1])
		}
		b.later(time.Second)
		if lapses := len(j.Plan) < len(j.Profile); lapses != c.lapses {
			t.Errorf("%s: the promise lapses: %v, want %v", name, lapses, c.lapses)
		}
	}
}

// TestDelayBesideQueued: queued jobs of the holder's user have their turn first, and leave a stock job the
// nodes that nobody holds. The promise lapses only for a job that does not fit on those within its budget.
func TestDelayBesideQueued(t *testing.T) {
	for nodes, lapses := range map[int]bool{2: false, 4: true} {
		b := newBench(t, 8)
		b.Config.MaxDelay, b.Config.StockJobs = time.Hour, 100
		b.Stock(5, 2000, 1, 10*time.Minute)
		runs := &b.s.Jobs[0]
		runs.State, runs.NodeList, runs.StartTime, runs.EndTime = slurmctl.Running, []string{"n8"}, b.s.Taken, b.s.Taken.Add(10*time.Minute)
		b.see()
		j := b.Evolving(7, 1000, "1@1m,6@7h", 9*time.Hour)
		b.begin(j)
		b.Evolving(8, 999, "1@5m,2@10m", 23*time.Minute)
		b.Evolving(9, 998, "1@5m,2@10m", 23*time.Minute)
		b.Stock(10, 10, nodes, 8*time.Hour)
		b.see()
		b.later(time.Second)
		if j.Lapsed() != lapses {
			t.Errorf("a stock job of %d nodes: the promise lapses: %v, want %v", nodes, j.Lapsed(), lapses)
		}
	}
}

// TestDelayBehindManyJobs: 500 earlier jobs of one user that fit nowhere take no budget from another user's job.
func TestDelayBehindManyJobs(t *testing.T) {
	b := newBench(t, 8)
	b.Config.MaxDelay, b.Config.StockJobs = time.Hour, 500
	j := b.Evolving(1, 1000, "1@7h,8@1h", 9*time.Hour)
	b.begin(j)
	for i := range b.Config.StockJobs {
		b.Stock(i+100, 999, 8, 8*time.Hour)
	}
	b.Stock(2, 10, 1, 450*time.Minute)
	b.see()
	b.later(time.Second)
	if !j.Lapsed() {
		t.Errorf("the promise does not lapse; held up: %v", b.Delays.Jobs)
	}
}

// TestDelayNeeded: a promise within a stock job's budget stays, though the job could start at once without it.
func TestDelayNeeded(t *testing.T) {
	b := newBench(t, 8)
	b.Config.MaxDelay, b.Config.StockJobs = time.Hour, 100
	small := b.Evolving(1, 2000, "1@10m,3@5m", time.Hour)
	b.begin(small)
	large := b.Evolving(2, 1000, "1@20m,5@7h", 9*time.Hour)
	b.begin(large)
	b.Stock(10, 10, 5, 8*time.Hour)
	b.see()
	b.later(time.Second)
	if small.Lapsed() || !large.Lapsed() {
		t.Errorf("the promise of ten minutes has lapsed: %v, that of hours: %v; %+v", small.Lapsed(), large.Lapsed(), b.Delays.Jobs[10])
	}
}

// TestFreedStay: the nodes for which a promise gave way stay kept while its hold still stands, so
// that queued jobs of the holder's user cannot take them.
func TestFreedStay(t *testing.T) {
	b := newBench(t, 8)
	b.Config.MaxDelay, b.Config.StockJobs = time.Hour, 100
	j := b.Evolving(7, 1000, "1@1m,7@7h", 9*time.Hour)
	b.begin(j)
	greedy := []*state.Job{b.Evolving(8, 999, "1@5m,2@10s,1@10s", 23*time.Minute), b.Evolving(9, 998, "1@5m,2@10s,1@10s", 23*time.Minute)}
	b.Stock(10, 10, 4, 8*time.Hour)
	b.see()
	b.later(time.Second)
	freed := slices.Clone(b.Delays.Jobs[10].Nodes)
	if !j.Lapsed() || len(freed) != 4 {
		t.Fatalf("the promise has lapsed: %v, for %v", j.Lapsed(), freed)
	}
	for _, step := range []string{"the hold stands", "the hold is gone"} {
		b.later(time.Second)
		b.plan(b.s)
		if h := b.Delays.Jobs[10]; !slices.Equal(h.Nodes, freed) || h.From > b.s.Taken.Unix() {
			t.Errorf("%s: it has %v from %d", step, h.Nodes, h.From-b.s.Taken.Unix())
		}
		for _, g := range greedy {
			for _, s := range g.Plan {
				if s.Start < b.s.Taken.Add(8*time.Hour).Unix() && len(msg.Common(s.Nodes, freed)) > 0 {
					t.Errorf("%s: job %d is planned on %v", step, g.SlurmID, s.Nodes)
				}
			}
		}
		hold.ForgetHold(b.Core, "evo_7_2_1")
	}
	// a hold that is far away leaves these nodes at once, and others when there is time
	hold.SetHold(b.Core, slurmctl.Reservation{Name: "evo_9_2_7", Nodes: freed[:1]})
	hold.SetHold(b.Core, slurmctl.Reservation{Name: "evo_9_3_8", Nodes: []string{"n1"}})
	for name, want := range map[string]bool{"evo_9_2_7": true, "evo_9_3_8": false} {
		if got := hold.KeepsFreed(b.Core, msg.ChangeHold{Name: name, Change: slurmctl.ReservationUpdate{Nodes: []string{"n1"}}}); got != want {
			t.Errorf("%s keeps freed nodes: %v, want %v", name, got, want)
		}
	}
}

// TestDelayCounts: the time counts from when a job could first have started, though it is planned to
// start soon all the time.
func TestDelayCounts(t *testing.T) {
	b := newBench(t, 4)
	b.Config.MaxDelay = 30 * time.Minute
	j := b.Evolving(1, 1000, "1@10m,4@10m", 3*time.Hour)
	b.begin(j)
	b.Stock(2, 10, 2, time.Hour)
	b.see()
	b.later(time.Second)
	if h := b.Delays.Jobs[2]; j.Lapsed() || h == nil || !h.Now {
		t.Fatalf("%v, lapsed %v: it could wait for %v", h, j.Lapsed(), b.Config.MaxDelay)
	}
	// the step lasts longer, and the growth is planned later and later
	for range b.Config.StockJobs {
		b.later(time.Minute)
		if j.Lapsed() {
			break
		}
		plan := slices.Clone(j.Plan)
		for i := range plan {
			plan[i].End += 60
			if i > 0 {
				plan[i].Start += 60
			}
		}
		b.StorePlan(j, plan)
	}
	waited := b.Now.Sub(b.Delays.Jobs[2].Since)
	if !j.Lapsed() || waited > 15*time.Minute { // then it would start half an hour after it could have
		t.Errorf("after %v: lapsed %v", waited, j.Lapsed())
	}
}

// TestFreedNodes: nobody else is planned on nodes for which a promise gave way, and a job that does not
// start there loses its claim, and its user's other jobs lose theirs.
func TestFreedNodes(t *testing.T) {
	b := newBench(t, 4)
	j := b.Evolving(1, 1000, "1@7h,4@1h", 9*time.Hour)
	b.begin(j)
	b.Stock(2, 10, 3, 8*time.Hour)
	b.see()
	b.later(time.Second)
	if !j.Lapsed() {
		t.Fatal("the promise has not lapsed")
	}
	hold.ForgetHold(b.Core, "evo_1_2_1")
	other := b.Evolving(3, 2000, "1@1h", time.Hour)
	if in := b.startsIn(other); in < 8*time.Hour {
		t.Errorf("another job starts there in %v", in)
	}
	b.later(time.Second) // no hold is in its way
	b.later(plan.StartPatience + time.Second)
	if in := b.startsIn(other); in > 0 {
		t.Errorf("after %v the nodes are still kept: %v", plan.StartPatience, in)
	}
	if h := b.Delays.Jobs[2]; !h.Spent || b.Delays.Distrusted[h.UID].IsZero() {
		t.Errorf("%+v %v: it has a claim still", h, b.Delays.Distrusted)
	}
}

// TestOutranks: jobs of a higher PriorityTier, and those that preempt, have no patience with holds.
func TestOutranks(t *testing.T) {
	b := newBench(t, 4)
	b.Partition("high", 1, 4)
	cfg := slurmctl.Config{Values: map[string]string{"PreemptType": "preempt/qos", "PreemptMode": "REQUEUE"}}
	b.Rules.Limits = slurmctl.ParseLimits(cfg, slurmctl.LimitsText{Preemption: "urgent|normal|cluster\nnormal||cluster\n",
		Partitions: "PartitionName=main Nodes=n[1-4] PriorityTier=1\nPartitionName=high Nodes=n[1-4] PriorityTier=2\n"})
	for _, c := range []struct {
		partition, qos string
		want           bool
	}{{"main", "normal", false}, {"high", "normal", true}, {"main,high", "normal", true}, {"main", "urgent", true}} {
		r, holder := slurmctl.Job{Partition: c.partition, QOS: c.qos}, slurmctl.Job{Partition: "main", QOS: "normal"}
		if got := Outranks(b.Core, &r, &holder); got != c.want {
			t.Errorf("partition %s, QOS %s: %v, want %v", c.partition, c.qos, got, c.want)
		}
	}
}

// TestDelayInTurn: a stock job that stays on free nodes has no budget any more, unless another stock job came before it
// meanwhile.
func TestDelayInTurn(t *testing.T) {
	for _, behind := range []bool{true, false} {
		b := newBench(t, 8)
		b.Config.MaxDelay, b.Config.StockJobs = 9*time.Hour, 100
		j := b.Evolving(1, 1000, "1@7h,7@1h", 9*time.Hour)
		b.begin(j)
		b.Stock(2, 10, 2, 8*time.Hour)
		b.Stock(9, 999, 8, 6*time.Hour)
		before := func(is bool) {
			b.s.Jobs[2].Reason = map[bool]string{true: "Resources", false: "Dependency"}[is]
			b.see()
			b.later(time.Second)
		}
		before(false) // held up
		b.s.Jobs[1].TimeLimit = 6 * time.Hour
		before(behind) // it would end before the growth
		b.later(plan.StartPatience + time.Second)
		if h := b.Delays.Jobs[2]; h == nil || !h.Spent {
			t.Fatalf("it has its budget after waiting on free nodes: %+v", h)
		}
		b.s.Jobs[1].TimeLimit, b.Config.MaxDelay = 8*time.Hour, 0
		before(false)
		if j.Lapsed() != behind {
			t.Errorf("behind another one: %v, and the promise lapses: %v", behind, j.Lapsed())
		}
	}
}

// TestDelayWithoutHolds: when the last hold is given up, nodes stay kept for the stock job that it kept from starting, as
// long as some are idle, until Slurm has looked. Otherwise a queued job would get a hold there again.
func TestDelayWithoutHolds(t *testing.T) {
	b := newBench(t, 8)
	b.Config.MaxDelay, b.Config.StockJobs = 9*time.Hour, 100
	b.begin(b.Evolving(1, 1000, "1@7h,7@1h", 9*time.Hour))
	b.Stock(2, 10, 2, 8*time.Hour)
	b.see()
	b.later(time.Second)
	for _, h := range slices.Clone(b.Ours) {
		hold.ForgetHold(b.Core, h.Name)
	}
	for _, idle := range []bool{true, false} {
		b.later(time.Second)
		if keeps := plan.KeepsNodes(b.Core, b.Delays.Jobs[2], b.Now); keeps != idle {
			t.Errorf("nodes are idle: %v, and kept: %v", idle, keeps)
		}
		for _, n := range b.s.Nodes {
			b.s.InUse[n.Name] = true
		}
	}
}
