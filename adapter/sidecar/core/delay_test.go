package core

import (
	"slices"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// begin has a planned job run, with its holds in place.
func (b *bench) begin(j *job) {
	b.t.Helper()
	b.plan(b.s)
	if len(j.plan) == 0 || j.plan[0].start > b.s.taken.Unix() {
		b.t.Fatalf("job %d does not start: %v %s", j.SlurmID, j.plan, j.reason.words())
	}
	j.State, j.Step, j.Started, j.StepStarted = row.Running, 1, b.s.taken, b.s.taken
	j.record.State, j.record.NodeList = slurmctl.Running, j.plan[0].nodes
	j.record.StartTime, j.record.EndTime = b.s.taken, b.s.taken.Add(j.record.TimeLimit)
	j.held = []Part{{ID: j.id(), Step: 1, Nodes: j.plan[0].nodes}}
	for _, h := range b.holdsOf(j, b.s.taken.Unix()) {
		b.setHold(slurmctl.Reservation{Name: ownName{j.id(), h.step, 1}.String(), Start: time.Unix(h.start, 0), End: time.Unix(h.end, 0), Nodes: h.nodes, Flags: h.flags()})
	}
	b.see()
}

// see takes over what the bench's jobs are.
func (b *bench) see() {
	b.s.inUse = set{}
	for i := range b.s.jobs {
		r := &b.s.jobs[i]
		if j := b.byID[r.ID]; j != nil {
			*r = j.record
		}
		r.UID = uint32(r.Priority) // everybody has one job
		b.s.byID[r.ID] = r
		b.s.inUse.add(r.NodeList)
	}
	b.s.eligibles = nil
}

// later lets time go by.
func (b *bench) later(by time.Duration) {
	b.now = b.now.Add(by)
	b.s.taken = b.now
	b.watchDelays(b.s)
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
		"one before it in order": {budget: 0, change: func(b *bench, _ *slurmctl.Job) { b.stock(9, 999, 7, 6*hour); b.see() }},
		"one before it is held": {budget: 0, lapses: true, change: func(b *bench, _ *slurmctl.Job) {
			b.stock(9, 999, 7, 6*hour)
			b.s.jobs[2].Reason = "Dependency"
			b.see()
		}},
		"a queued job's own turn": {budget: 0, change: func(b *bench, _ *slurmctl.Job) { b.evolving(9, 999, "7@1h", 6*hour); b.see() }},
	} {
		b := newBench(t, 8)
		b.cfg.MaxDelay, b.cfg.StockJobs = c.budget, 100
		j := b.evolving(1, 1000, "1@7h,7@1h", 9*hour)
		b.begin(j) // n8 is free
		b.stock(2, 10, 2, 8*hour)
		b.see()
		if c.change != nil {
			c.change(b, &b.s.jobs[1])
		}
		b.later(time.Second)
		if lapses := j.lapsed(); lapses != c.lapses {
			t.Errorf("%s: the promise lapses: %v, want %v", name, lapses, c.lapses)
		}
	}
}

// TestDelayBesideQueued: queued jobs of the holder's user have their turn first, and leave a stock job the
// nodes that nobody holds. The promise lapses only for a job that does not fit on those within its budget.
func TestDelayBesideQueued(t *testing.T) {
	for nodes, lapses := range map[int]bool{2: false, 4: true} {
		b := newBench(t, 8)
		b.cfg.MaxDelay, b.cfg.StockJobs = time.Hour, 100
		b.stock(5, 2000, 1, 10*time.Minute)
		runs := &b.s.jobs[0]
		runs.State, runs.NodeList, runs.StartTime, runs.EndTime = slurmctl.Running, []string{"n8"}, b.s.taken, b.s.taken.Add(10*time.Minute)
		b.see()
		j := b.evolving(7, 1000, "1@1m,6@7h", 9*time.Hour)
		b.begin(j)
		b.evolving(8, 999, "1@5m,2@10m", 23*time.Minute)
		b.evolving(9, 998, "1@5m,2@10m", 23*time.Minute)
		b.stock(10, 10, nodes, 8*time.Hour)
		b.see()
		b.later(time.Second)
		if j.lapsed() != lapses {
			t.Errorf("a stock job of %d nodes: the promise lapses: %v, want %v", nodes, j.lapsed(), lapses)
		}
	}
}

// TestDelayNeeded: a promise within a stock job's budget stays, though the job could start at once without it.
func TestDelayNeeded(t *testing.T) {
	b := newBench(t, 8)
	b.cfg.MaxDelay, b.cfg.StockJobs = time.Hour, 100
	small := b.evolving(1, 2000, "1@10m,3@5m", time.Hour)
	b.begin(small)
	large := b.evolving(2, 1000, "1@20m,5@7h", 9*time.Hour)
	b.begin(large)
	b.stock(10, 10, 5, 8*time.Hour)
	b.see()
	b.later(time.Second)
	if small.lapsed() || !large.lapsed() {
		t.Errorf("the promise of ten minutes has lapsed: %v, that of hours: %v; %+v", small.lapsed(), large.lapsed(), b.delays.jobs[10])
	}
}

// TestFreedStay: the nodes for which a promise gave way stay kept while its hold still stands, so
// that queued jobs of the holder's user cannot take them.
func TestFreedStay(t *testing.T) {
	b := newBench(t, 8)
	b.cfg.MaxDelay, b.cfg.StockJobs = time.Hour, 100
	j := b.evolving(7, 1000, "1@1m,7@7h", 9*time.Hour)
	b.begin(j)
	greedy := []*job{b.evolving(8, 999, "1@5m,2@10s,1@10s", 23*time.Minute), b.evolving(9, 998, "1@5m,2@10s,1@10s", 23*time.Minute)}
	b.stock(10, 10, 4, 8*time.Hour)
	b.see()
	b.later(time.Second)
	freed := slices.Clone(b.delays.jobs[10].nodes)
	if !j.lapsed() || len(freed) != 4 {
		t.Fatalf("the promise has lapsed: %v, for %v", j.lapsed(), freed)
	}
	for _, step := range []string{"the hold stands", "the hold is gone"} {
		b.later(time.Second)
		b.plan(b.s)
		if h := b.delays.jobs[10]; !slices.Equal(h.nodes, freed) || h.from > b.s.taken.Unix() {
			t.Errorf("%s: it has %v from %d", step, h.nodes, h.from-b.s.taken.Unix())
		}
		for _, g := range greedy {
			for _, s := range g.plan {
				if s.start < b.s.taken.Add(8*time.Hour).Unix() && len(common(s.nodes, freed)) > 0 {
					t.Errorf("%s: job %d is planned on %v", step, g.SlurmID, s.nodes)
				}
			}
		}
		b.forgetHold("evo_7_2_1")
	}
	// a hold that is far away leaves these nodes at once, and others when there is time
	b.setHold(slurmctl.Reservation{Name: "evo_9_2_7", Nodes: freed[:1]})
	b.setHold(slurmctl.Reservation{Name: "evo_9_3_8", Nodes: []string{"n1"}})
	for name, want := range map[string]bool{"evo_9_2_7": true, "evo_9_3_8": false} {
		if got := b.keepsFreed(ChangeHold{Name: name, Change: slurmctl.ReservationUpdate{Nodes: []string{"n1"}}}); got != want {
			t.Errorf("%s keeps freed nodes: %v, want %v", name, got, want)
		}
	}
}

// TestDelayCounts: the time counts from when a job could first have started, though it is planned to
// start soon all the time.
func TestDelayCounts(t *testing.T) {
	b := newBench(t, 4)
	b.cfg.MaxDelay = 30 * time.Minute
	j := b.evolving(1, 1000, "1@10m,4@10m", 3*time.Hour)
	b.begin(j)
	b.stock(2, 10, 2, time.Hour)
	b.see()
	b.later(time.Second)
	if h := b.delays.jobs[2]; j.lapsed() || h == nil || !h.now {
		t.Fatalf("%v, lapsed %v: it could wait for %v", h, j.lapsed(), b.cfg.MaxDelay)
	}
	// the step lasts longer, and the growth is planned later and later
	for range 20 {
		b.later(time.Minute)
		if j.lapsed() {
			break
		}
		plan := slices.Clone(j.plan)
		for i := range plan {
			plan[i].end += 60
			if i > 0 {
				plan[i].start += 60
			}
		}
		b.storePlan(j, plan)
	}
	waited := b.now.Sub(b.delays.jobs[2].since)
	if !j.lapsed() || waited > 15*time.Minute { // then it would start half an hour after it could have
		t.Errorf("after %v: lapsed %v", waited, j.lapsed())
	}
}

// TestFreedNodes: nobody else is planned on nodes for which a promise gave way, and a job that does not
// start there loses its claim, and its user's other jobs lose theirs.
func TestFreedNodes(t *testing.T) {
	b := newBench(t, 4)
	j := b.evolving(1, 1000, "1@7h,4@1h", 9*time.Hour)
	b.begin(j)
	b.stock(2, 10, 3, 8*time.Hour)
	b.see()
	b.later(time.Second)
	if !j.lapsed() {
		t.Fatal("the promise has not lapsed")
	}
	b.forgetHold("evo_1_2_1")
	other := b.evolving(3, 2000, "1@1h", time.Hour)
	if in := b.startsIn(other); in < 8*time.Hour {
		t.Errorf("another job starts there in %v", in)
	}
	b.later(time.Second) // no hold is in its way
	b.later(startPatience + time.Second)
	if in := b.startsIn(other); in > 0 {
		t.Errorf("after %v the nodes are still kept: %v", startPatience, in)
	}
	if h := b.delays.jobs[2]; !h.spent || b.delays.distrusted[h.uid].IsZero() {
		t.Errorf("%+v %v: it has a claim still", h, b.delays.distrusted)
	}
}

// TestOutranks: jobs of a higher PriorityTier, and those that preempt, have no patience with holds.
func TestOutranks(t *testing.T) {
	b := newBench(t, 4)
	b.partition("high", 1, 4)
	cfg := slurmctl.Config{Values: map[string]string{"PreemptType": "preempt/qos", "PreemptMode": "REQUEUE"}}
	b.rules.limits = slurmctl.ParseLimits(cfg, slurmctl.LimitsText{Preemption: "urgent|normal|cluster\nnormal||cluster\n",
		Partitions: "PartitionName=main Nodes=n[1-4] PriorityTier=1\nPartitionName=high Nodes=n[1-4] PriorityTier=2\n"})
	for _, c := range []struct {
		partition, qos string
		want           bool
	}{{"main", "normal", false}, {"high", "normal", true}, {"main,high", "normal", true}, {"main", "urgent", true}} {
		r, holder := slurmctl.Job{Partition: c.partition, QOS: c.qos}, slurmctl.Job{Partition: "main", QOS: "normal"}
		if got := b.outranks(&r, &holder); got != c.want {
			t.Errorf("partition %s, QOS %s: %v, want %v", c.partition, c.qos, got, c.want)
		}
	}
}
