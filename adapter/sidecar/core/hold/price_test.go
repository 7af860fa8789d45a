package hold

import (
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/internal/config"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/pace"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
	"github.com/evoslurm/evoslurm/planner"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// TestPrice: a future hold costs what it keeps from a waiting job, and nothing else.
func TestPrice(t *testing.T) {
	at := time.Unix(sharesNow, 0)
	stock := func(nodes int, limit time.Duration, partition string) slurmctl.Job {
		return slurmctl.Job{ID: 90, User: "bob", State: slurmctl.Pending, Reason: "Resources", Priority: 5, Partition: partition, NumNodes: nodes, Exclusive: true, TimeLimit: limit, ArrayTasks: 1}
	}
	array := stock(2, time.Hour, "main")
	array.ArrayTasks = 9
	held := stock(3, time.Hour, "main")
	held.Reason, held.Priority = "JobHeldUser", 0
	for name, c := range map[string]struct {
		waits slurmctl.Job
		busy  []string // beside n5 and the nodes after it
		site  []string // reserved by the site
		far   int      // more urgent jobs of n5 and n6, which wait too
		want  int      // of n1 to n3, which are held from in ten minutes on; n4 is not
	}{
		"wants all":                {waits: stock(4, time.Hour, "main"), want: 3},
		"wants fewer":              {waits: stock(2, time.Hour, "main"), want: 1},
		"fits beside":              {waits: stock(1, time.Hour, "main"), want: 0},
		"ends before":              {waits: stock(4, 5*time.Minute, "main"), want: 0},
		"never fits":               {waits: stock(5, time.Hour, "main"), want: 0},
		"is held":                  {waits: held, want: 0},
		"other nodes":              {waits: stock(1, time.Hour, "half"), want: 0},
		"tasks of an array":        {waits: array, want: 3},
		"behind many elsewhere":    {waits: stock(4, time.Hour, "main"), far: 2 * config.Default().StockJobs, want: 3},
		"some of them are in use":  {waits: stock(2, time.Hour, "main"), busy: []string{"n1", "n2"}, want: 1},
		"the site has reserved n4": {waits: stock(3, time.Hour, "main"), site: []string{"n4"}, want: 3},
	} {
		core := state.New(msg.Site{Root: true}, config.Default(), msg.Strategy{}, at)
		j := sharesJob(core, 7, "alice", "main", row.Running)
		holding := slurmctl.Reservation{Name: "evo_7_2_1", Nodes: []string{"n1", "n2", "n3"}, Start: at.Add(10 * time.Minute), End: at.Add(time.Hour), Flags: msg.HoldFlags, Users: []string{"root"}}
		seen := msg.Observation{Begun: at, Jobs: []slurmctl.Job{c.waits, {ID: 91, User: "bob", State: slurmctl.Running, Partition: "main", NodeList: append([]string{"n5", "n6"}, c.busy...)}},
			Partitions:   []slurmctl.Partition{{Name: "main", Up: true, Nodes: []string{"n1", "n2", "n3", "n4", "n5", "n6"}}, {Name: "half", Up: true, Nodes: []string{"n5", "n6"}}},
			Reservations: []slurmctl.Reservation{holding}}
		for i := range c.far {
			other := stock(1, time.Hour, "half")
			other.ID, other.UID, other.Priority = slurmctl.JobID(1000+i), uint32(i), 9
			seen.Jobs = append(seen.Jobs, other)
		}
		if c.site != nil {
			seen.Reservations = append(seen.Reservations, slurmctl.Reservation{Name: "maintenance", Nodes: c.site, Start: at.Add(time.Minute), End: at.Add(time.Hour)})
		}
		for _, n := range []string{"n1", "n2", "n3", "n4", "n5", "n6"} {
			seen.Nodes = append(seen.Nodes, slurmctl.Node{Name: n, State: "idle", CPUs: 4})
		}
		core.Snapshot = pace.NewSnapshot(core, seen)
		TakeReservations(core, core.Snapshot)
		Charge(core, at)
		Price(core, core.Snapshot)
		if core.Prices.Nodes != c.want {
			t.Errorf("%s: %d nodes are kept from it, want %d", name, core.Prices.Nodes, c.want)
		}
		core.Now = at.Add(1500 * time.Millisecond)
		Charge(core, core.Now)
		core.Now = at.Add(3 * time.Second)
		Charge(core, core.Now)
		if j.IdleHeld() != int64(3*c.want) {
			t.Errorf("%s: the job has cost %d node-seconds in 3 s, want %d", name, j.IdleHeld(), 3*c.want)
		}
	}
}

// TestPriceWhileThere: between two slow polls, a hold costs only while its row is open.
func TestPriceWhileThere(t *testing.T) {
	at := time.Unix(sharesNow, 0)
	for name, c := range map[string]struct {
		made, ended time.Duration // 0: before, not yet
		want        int64
	}{
		"all the time":    {0, 0, 120},
		"found later":     {50 * time.Second, 0, 20},
		"given up":        {0, 40 * time.Second, 80},
		"made, given up":  {20 * time.Second, 30 * time.Second, 20},
		"given up before": {0, -time.Second, 0},
	} {
		core := state.New(msg.Site{Root: true}, config.Default(), msg.Strategy{}, at)
		j, b := sharesJob(core, 7, "alice", "main", row.Running), &state.Booked{Hold: row.Hold{Made: at.Add(c.made)}}
		if c.ended != 0 {
			b.Ended = at.Add(c.ended)
		}
		Charge(core, at)
		core.Prices.Kept = []state.Keeping{{Job: j, Row: b, Nodes: 2}}
		if Charge(core, at.Add(time.Minute)); b.Idle != c.want*1000 || j.IdleHeld() != c.want {
			t.Errorf("%s: %d node-milliseconds of the hold, %d node-seconds of the job, want %d s", name, b.Idle, j.IdleHeld(), c.want)
		}
	}
}

// TestPriceOfItsOwn: a hold costs nothing where only its own job waits.
func TestPriceOfItsOwn(t *testing.T) {
	cfg := config.Default()
	c := sharesCore(cfg)
	own, other := sharesJob(c, 1, "alice", "main", row.Queued), sharesJob(c, 2, "bob", "main", row.Queued)
	for i, j := range []*state.Job{own, other} {
		j.Profile = planner.Profile{{Duration: 3600, Nodes: 16}}
		j.Step, j.Plan = 0, []msg.PlannedStep{{Start: sharesNow + 600, End: sharesNow + 4200}}
		j.Record = slurmctl.Job{ID: j.BaseID(), State: slurmctl.Pending, Reason: "BeginTime", Priority: uint64(9 - i), Partition: "main", NumNodes: 16, TimeLimit: time.Hour}
	}
	c.Snapshot.Reservations["evo_1_1_1"] = slurmctl.Reservation{Name: "evo_1_1_1", Nodes: c.Snapshot.Partitions["main"].Nodes, Start: time.Unix(sharesNow+600, 0), End: time.Unix(sharesNow+4200, 0), Flags: msg.StartFlags}
	c.Snapshot.Holds["evo_1_1_1"] = state.OwnName{Job: 1, Step: 1, Attempt: 1}
	TakeReservations(c, c.Snapshot)
	if Price(c, c.Snapshot); c.Prices.Nodes != 0 {
		t.Errorf("%d nodes are kept from those who could have them only after the hold's job", c.Prices.Nodes)
	}
	c.Active = c.Active[1:]
	c.ByID[1] = own
	if Price(c, c.Snapshot); c.Prices.Nodes != 16 || len(c.Prices.Kept) != 1 || c.Prices.Kept[0].Job != own {
		t.Errorf("%d nodes are kept from another job, want 16 (%v)", c.Prices.Nodes, c.Prices.Kept)
	}
}
