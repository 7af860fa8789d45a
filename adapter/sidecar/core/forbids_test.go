package core

import (
	"strings"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/slurm"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// TestForbiddenPartition: a job of several partitions is not planned in those whose limits
// forbid it, and has the words where all do.
func TestForbiddenPartition(t *testing.T) {
	const free = "PartitionName=a Nodes=n[1-2] TotalNodes=2 TotalCPUs=8\nPartitionName=b Nodes=n[3-8] TotalNodes=6 TotalCPUs=24 "
	for name, c := range map[string]struct {
		b, qos string // of partition b
		asked  slurmctl.JobRequest
		want   string
	}{
		"none":           {},
		"AllowAccounts":  {b: "AllowAccounts=physics", want: "partition b is not for account proj (AllowAccounts, DenyAccounts)"},
		"DenyQos":        {b: "DenyQos=normal", want: "partition b is not for QOS normal"},
		"MinNodes":       {b: "MinNodes=2", want: "takes jobs of at least 2 (MinNodes)"},
		"MaxNodes":       {b: "MaxNodes=1", want: "takes jobs of at most 1 (MaxNodes)"},
		"MaxTime":        {b: "MaxTime=00:05:00", want: "allows 5 min (MaxTime)"},
		"QOS of it":      {b: "QoS=small", qos: "small||node=1||||||||||||\n", want: "QOS small may have 1 in all (GrpTRES=node=1)"},
		"MaxMemPerNode":  {b: "MaxMemPerNode=500", asked: slurmctl.JobRequest{MemoryPerNode: 600}, want: "allows 500 (MaxMemPerNode)"},
		"MaxMemPerCPU":   {b: "MaxMemPerCPU=100", asked: slurmctl.JobRequest{MemoryPerNode: 600}, want: "allows 100 for each (MaxMemPerCPU)"},
		"all its memory": {b: "MaxMemPerNode=900", want: "has 1000 MB of memory, but partition b allows 900"},
		"no such node":   {asked: slurmctl.JobRequest{MemoryPerNode: 1001}, want: "partition b has 0 with 1001 MB of memory"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, 8)
			b.Partition("a", 1, 2)
			b.Partition("b", 3, 8)
			b.Limited(free+c.b, "", c.qos)
			j := b.Evolving(1, 1, "1@5m,2@5m", time.Hour)
			j.Account, j.QOS, j.Asked = "proj", "normal", &c.asked
			j.Partition, j.Record.Partition, j.Record.Account, j.Record.QOS = "a,b", "a,b", "proj", "normal"
			b.Stock(2, 1000, 2, time.Hour) // partition a would be later
			b.s.Jobs[1].Partition = "a"
			switch at := b.startsOrNever(j); {
			case name == "no such node": // a has none either
				if len(j.Plan) > 0 || !strings.Contains(j.Reason().Words(), c.want) {
					t.Errorf("planned in %v: %s", at, j.Reason().Words())
				}
			case c.want == "" && (at != 0 || slurm.PartitionFor(b.Core, b.s, j) != "b"), c.want != "" && slurm.PartitionFor(b.Core, b.s, j) != "a":
				t.Errorf("planned in %v in partition %q: %s", at, slurm.PartitionFor(b.Core, b.s, j), j.Reason().Words())
			}
			if c.want == "" {
				return
			}
			if why := slurm.Unsuited(b.Core, b.s, j, "b"); !strings.Contains(why, c.want) && !strings.Contains(why, "partition b allows") {
				t.Errorf("in words: %q, want %q", why, c.want)
			}
			alone := j.Record
			if alone.Partition = "b"; !strings.Contains(strings.Join(slurm.Never(b.Core, b.Rules.Limits, &alone, j.Profile, false, j.Asked), "; "), c.want) {
				t.Errorf("at adoption, of partition b alone: %q, want %q", slurm.Never(b.Core, b.Rules.Limits, &alone, j.Profile, false, j.Asked), c.want)
			}
		})
	}
}

// startsOrNever is startsIn of a job that may have no plan.
func (b *bench) startsOrNever(j *state.Job) time.Duration {
	if b.plan(b.s); len(j.Plan) == 0 {
		return -1
	}
	return b.startsIn(j)
}

// TestLimitsUnread: a job of several partitions keeps its plan until it is known which of
// them limits forbid.
func TestLimitsUnread(t *testing.T) {
	b := newBench(t, 8)
	b.Partition("a", 1, 2)
	b.Partition("b", 3, 8)
	j := b.Evolving(1, 1, "1@5m,2@5m", time.Hour)
	j.Partition, j.Record.Partition = "a,b", "a,b"
	b.startsIn(j)
	plan := j.Plan
	b.Rules = state.RuleBook{}
	if b.plan(b.s); len(j.Plan) != len(plan) || j.Reason() != state.Because(state.WhyLimitsUnread) {
		t.Errorf("plan %v: %s", j.Plan, j.Reason().Words())
	}
}

// TestTiers: Slurm considers no job of a lower PriorityTier before those of a higher one,
// whatever their priorities.
func TestTiers(t *testing.T) {
	const tiers = "PartitionName=main Nodes=n[1-4] PriorityTier=5\nPartitionName=low Nodes=n[1-4] PriorityTier=1\nPartitionName=high Nodes=n[1-4] PriorityTier=9\n"
	for _, c := range []struct {
		stock, evolving string // partitions
		waits           bool
	}{{"main", "main", true}, {"low", "main", false}, {"high", "main", true}, {"main", "high", false}, {"main", "high,low", true}, {"main,low", "main", true}} {
		b := newBench(t, 4)
		b.Partition("low", 1, 4)
		b.Partition("high", 1, 4)
		b.Limited(tiers, "", "")
		b.Stock(1, 100, 4, time.Hour)
		b.s.Jobs[0].Partition = c.stock
		j := b.Evolving(2, 50, "4@1h", time.Hour)
		j.Partition, j.Record.Partition = c.evolving, c.evolving
		if in := b.startsIn(j); (in >= time.Hour) != c.waits {
			t.Errorf("of partition %s, beside a stock job of higher priority of %s: it starts in %v", c.evolving, c.stock, in)
		}
		b.s.Jobs[0].Priority = 10 // lower
		if in := b.startsIn(j); (in >= time.Hour) != (c.stock == "high" || c.evolving == "high,low") {
			t.Errorf("of partition %s, beside a stock job of lower priority of %s: it starts in %v", c.evolving, c.stock, in)
		}
	}
}

// TestMaxJobsAccrue: of those who share an allowance the age of so many counts as it says, of
// stock jobs too, and that of the next one from then on.
func TestMaxJobsAccrue(t *testing.T) {
	const hour = time.Hour
	assocs := "ClusterName=c Account=proj UserName=user(1000) Partition= ID=4\n    MaxJobsAccrue=2(1)\n"
	for name, c := range map[string]struct {
		assocs, qos string
		stock       string // whose job the stock one is; "": there is none
		want        []uint64
	}{
		"no bound":           {want: []uint64{350, 250, 150}},
		"of an association":  {assocs: assocs, want: []uint64{350, 250, 50}},
		"a stock job counts": {assocs: assocs, stock: "user", want: []uint64{350, 50, 50}},
		"another user's":     {assocs: assocs, stock: "other", want: []uint64{350, 250, 50}},
		"of a QOS":           {qos: "normal|||||||||||||||1||\n", stock: "other", want: []uint64{50, 50, 50}},
		"of a QOS, per user": {qos: "normal|||||||||||||||||1\n", stock: "other", want: []uint64{350, 50, 50}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, 4)
			b.Limited("PartitionName=main Nodes=n[1-4]\n", c.assocs, c.qos)
			b.Ageing = slurmctl.Ageing{Weight: 1000, MaxAge: 10 * hour, Period: time.Minute, Limits: true}
			b.Calculated = b.s.Taken
			if c.stock != "" {
				b.Stock(9, 1, 1, hour)
				b.s.Jobs[0].User, b.s.Jobs[0].Account, b.s.Jobs[0].QOS, b.s.Jobs[0].SubmitTime = c.stock, "proj", "normal", b.s.Taken.Add(-5*hour)
			}
			var all []*state.Job
			for i := range 3 {
				j := b.Evolving(i+1, 50, "4@1h", hour)
				j.Record.User, j.Record.Account, j.Record.QOS = "user", "proj", "normal"
				j.Record.SubmitTime = b.s.Taken.Add(-time.Duration(3-i) * hour)
				all = append(all, j)
			}
			b.plan(b.s)
			for i, j := range all {
				if j.Priority != c.want[i] {
					t.Errorf("job %d has priority %d, want %d", i+1, j.Priority, c.want[i])
				}
			}
			if name != "of an association" {
				return
			}
			all[0].Record.Priority, all[0].Record.Reason = 0, "JobHeldUser" // makes room
			if b.plan(b.s); all[2].Priority != 50 {
				t.Errorf("the third has priority %d as its age begins", all[2].Priority)
			}
			later := *b.s
			later.Taken, b.Calculated = b.s.Taken.Add(hour), b.s.Taken.Add(hour)
			b.Now = later.Taken
			if b.plan(&later); all[2].Priority != 150 {
				t.Errorf("the third has priority %d an hour later, want 150", all[2].Priority)
			}
		})
	}
}
