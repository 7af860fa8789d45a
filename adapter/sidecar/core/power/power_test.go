package power

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/internal/config"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state/statetest"
	"github.com/evoslurm/evoslurm/planner"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// watts make a break-even time of 70 s × 50 W / 100 W = 35 s. With 40 s to go off and 70 s to come up, a node goes off if its
// next use is more than 145 s away.
var watts = config.Watts{Busy: 300, Idle: 110, Off: 10, Booting: 160}

const away = 145 * time.Second

// saving returns a bench whose site saves power, with a mode.
func saving(t *testing.T, nodes int, mode config.PowerMode) *statetest.Bench {
	t.Helper()
	b := statetest.New(t, nodes)
	b.Power.SetSaving(statetest.SavesPower)
	b.Config.Power = config.Power{Mode: mode, MaxWait: time.Hour, Watts: watts}
	b.Started = b.Now.Add(-settling)
	return b
}

// commands returns the commands among the effects of a call.
func commands(b *statetest.Bench) (all []string) {
	b.Effects = nil
	Manage(b.Core, b.Seen)
	for _, e := range b.Effects {
		if t, is := e.(msg.Task); is {
			all = append(all, fmt.Sprint(t.Command))
		}
	}
	return all
}

// TestGoesOff checks which of the nodes n1 to n3 go off, and which ones are kept on.
func TestGoesOff(t *testing.T) {
	for name, c := range map[string]struct {
		change func(b *statetest.Bench)
		off    string
		keep   string
	}{
		"nothing is planned":        {nil, "n[1-3]", ""},
		"a use that is near enough": {func(b *statetest.Bench) { planned(b, away, "n1") }, "n[2-3]", "n1"},
		"a use a second later":      {func(b *statetest.Bench) { planned(b, away+time.Second, "n1") }, "n[1-3]", ""},
		"a step that is over":       {func(b *statetest.Bench) { planned(b, -2*time.Hour, "n1") }, "n[1-3]", ""},
		"a hold": {func(b *statetest.Bench) {
			b.Reservations["evo_7_2_1"] = slurmctl.Reservation{Name: "evo_7_2_1", Start: b.Now.Add(away), End: b.Now.Add(time.Hour), Nodes: []string{"n2"}}
		}, "n[1,3]", "n2"},
		"a reservation that has begun": {func(b *statetest.Bench) { reserved(b, -time.Second, time.Hour) }, "n[2-3]", ""},
		"a reservation to come soon":   {func(b *statetest.Bench) { reserved(b, away, time.Hour) }, "n[2-3]", "n1"},
		"a reservation that is over":   {func(b *statetest.Bench) { reserved(b, -time.Hour, -time.Second) }, "n[1-3]", ""},
		"a stock job that can start":   {func(b *statetest.Bench) { b.Stock(9, 1, 2, time.Hour) }, "n3", ""},
		"a stock job for later": {func(b *statetest.Bench) {
			runs(b, 8, away-10*time.Second, "n1")
			b.Stock(9, 1, 3, time.Hour)
		}, "", "n[2-3]"},
		"a stock job for much later": {func(b *statetest.Bench) {
			runs(b, 8, time.Hour, "n1")
			b.Stock(9, 1, 3, time.Hour)
		}, "n[2-3]", ""},
		"a job has it":                  {func(b *statetest.Bench) { runs(b, 8, time.Hour, "n3") }, "n[1-2]", ""},
		"CPUs in use":                   {func(b *statetest.Bench) { b.Seen.Nodes[0].CPUsAlloc = 1 }, "n[2-3]", ""},
		"drained":                       {func(b *statetest.Bench) { b.Seen.Nodes[0].State = "drained" }, "n[2-3]", ""},
		"completing":                    {func(b *statetest.Bench) { b.Seen.Nodes[0].State = "completing" }, "n[2-3]", ""},
		"in a maintenance":              {func(b *statetest.Bench) { b.Seen.Nodes[0].State = "maint" }, "n[2-3]", ""},
		"Slurm plans a job there":       {func(b *statetest.Bench) { b.Seen.Nodes[0].State = "planned" }, "n[2-3]", ""},
		"not responding":                {func(b *statetest.Bench) { b.Seen.Nodes[0].Flags = "*" }, "n[2-3]", ""},
		"off":                           {func(b *statetest.Bench) { b.Seen.Nodes[0].Flags = "~" }, "n[2-3]", ""},
		"coming up":                     {func(b *statetest.Bench) { b.Seen.Nodes[0].Flags = "#" }, "n[2-3]", ""},
		"going off":                     {func(b *statetest.Bench) { b.Seen.Nodes[0].Flags = "!" }, "n[2-3]", ""},
		"Slurm starts nothing there":    {func(b *statetest.Bench) { b.Suspect["n1"] = b.Now.Add(time.Hour) }, "n[2-3]", ""},
		"leaked":                        {func(b *statetest.Bench) { b.Leaked = []string{"n1"} }, "n[2-3]", ""},
		"SuspendExcNodes":               {excepts("SuspendExcNodes", "n[1-2]"), "n3", ""},
		"SuspendExcNodes with a number": {excepts("SuspendExcNodes", "n[1-3]:1"), "n[2-3]", ""},
		"SuspendExcParts":               {excepts("SuspendExcParts", "main"), "", ""},
		"SuspendExcStates that sinfo does not show": {excepts("SuspendExcStates", "CLOUD"), "", ""},
		"a partition that is not driven": {func(b *statetest.Bench) {
			b.Partition("other", 1, 1)
			b.Config.Partitions = []string{"main"}
		}, "n[2-3]", ""},
		"a reserve":                 {func(b *statetest.Bench) { b.Config.Power.Reserve = 2 }, "n3", "n[1-2]"},
		"a reserve of planned uses": {func(b *statetest.Bench) { b.Config.Power.Reserve = 1; planned(b, away, "n1") }, "n3", "n[1-2]"},
		"a reserve for each partition": {func(b *statetest.Bench) {
			b.Partition("gpu", 3, 3)
			b.Config.Power.Reserve = 1
		}, "n[1-2]", "n3"},
		"weights":                          {func(b *statetest.Bench) { b.Config.Power.Reserve = 1; b.Seen.Nodes[0].Weight = 9 }, "n[1,3]", "n2"},
		"kept on just now":                 {func(b *statetest.Bench) { b.Config.Power.Reserve = 3; b.Power.Kept["n1"] = b.Now }, "", "n[2-3]"},
		"Slurm switches two a minute off":  {rate("SuspendRate", 2), "n[2-3]", ""},
		"ResumeRate makes them come later": {func(b *statetest.Bench) { rate("ResumeRate", 1)(b); planned(b, away+time.Minute, "n1") }, "n[2-3]", "n1"},
		"Slurm saves no power":             {func(b *statetest.Bench) { b.Power.SetSaving(slurmctl.Config{}) }, "", ""},
		"SuspendTime is INFINITE":          {func(b *statetest.Bench) { b.Power.Saving.SuspendTime = 0 }, "", ""},
		"Slurm denies it":                  {func(b *statetest.Bench) { b.Power.Denied = b.Now.Add(1) }, "", ""},
		"power is off":                     {func(b *statetest.Bench) { b.Config.Power.Mode = config.PowerOff }, "", ""},
		"all jobs are released":            {func(b *statetest.Bench) { b.Config.Drain = "release" }, "", ""},
		"the sidecar has just started":     {func(b *statetest.Bench) { b.Started = b.Started.Add(1) }, "", ""},
		"after many failures":              {func(b *statetest.Bench) { b.Power.ByPlan.Paused = b.Now.Add(1) }, "", ""},
	} {
		b := saving(t, 3, config.PowerAct)
		if b.Power.ByPlan.As = b.Config.Power.Mode; c.change != nil {
			c.change(b)
		}
		var want []string
		if c.keep != "" {
			want = append(want, "keep up "+c.keep)
		}
		if c.off != "" {
			want = append(want, "power down "+c.off)
		}
		if got := commands(b); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q (%s)", name, got, want, b.Power.ByPlan.Why)
		}
	}
}

// planned gives a running job a step on some nodes, which begins after some time and lasts an hour.
func planned(b *statetest.Bench, in time.Duration, nodes ...string) {
	start := b.Now.Add(in).Unix()
	b.Active = append(b.Active, &state.Job{})
	b.Active[0].Plan = []msg.PlannedStep{{Start: start, End: start + 3600, Nodes: nodes}}
}

// reserved reserves n1 for others.
func reserved(b *statetest.Bench, from, until time.Duration) {
	b.Seen.Reservations["theirs"] = slurmctl.Reservation{Name: "theirs", Start: b.Now.Add(from), End: b.Now.Add(until), Nodes: []string{"n1"}}
}

// runs adds a stock job that runs for some time.
func runs(b *statetest.Bench, id int, left time.Duration, nodes ...string) {
	r := b.Stock(id, 1, len(nodes), time.Hour)
	r.State, r.NodeList, r.StartTime, r.EndTime = slurmctl.Running, nodes, b.Now.Add(-time.Minute), b.Now.Add(left)
	for _, n := range nodes {
		b.Seen.InUse[n] = true
		b.Seen.Nodes[b.Seen.Index[n]].State = "allocated"
	}
}

// excepts sets an exception of slurm.conf.
func excepts(key, value string) func(b *statetest.Bench) {
	return func(b *statetest.Bench) {
		b.Power.Except = slurmctl.Config{Values: map[string]string{key: value}}.PowerExceptions()
	}
}

// rate sets SuspendRate or ResumeRate.
func rate(key string, nodes int) func(b *statetest.Bench) {
	return func(b *statetest.Bench) {
		if key == "SuspendRate" {
			b.Power.Saving.SuspendRate = nodes
		} else {
			b.Power.Saving.ResumeRate = nodes
		}
	}
}

// later lets time pass until the next poll.
func later(b *statetest.Bench, by time.Duration) {
	b.Now = b.Now.Add(by)
	b.Seen.Taken = b.Now
}

// done settles all pending tasks with an outcome.
func done(b *statetest.Bench, err error) {
	for id, p := range b.Work.Pending {
		delete(b.Work.Pending, id)
		b.Finish(nil, p, err)
		switch p.Kind {
		case state.KindPowerDown:
			SettlePowerDown(b.Core, nil, p, msg.Outcome{Task: id, Err: err})
		case state.KindDrainNodes:
			SettleDrainNodes(b.Core, nil, p, msg.Outcome{Task: id, Err: err})
		}
	}
}

// TestOffAndOn follows a node: it goes off, Slurm may do nothing, and it comes up for its use.
func TestOffAndOn(t *testing.T) {
	b := saving(t, 1, config.PowerAct)
	is := func(what string, want ...string) {
		t.Helper()
		if got := commands(b); !slices.Equal(got, want) {
			t.Fatalf("%s: %q, want %q", what, got, want)
		}
		done(b, nil)
	}
	is("it goes off", "power down n1")
	later(b, state.PowerCycle-time.Second)
	is("a moment later")
	later(b, state.PowerCycle)
	is("Slurm may take that long")
	later(b, 2*state.PowerCycle)
	is("Slurm did nothing", "power down n1")
	b.Seen.Nodes[0].Flags = "~"
	later(b, 5*time.Minute)
	if is("it is off"); len(b.Power.ByPlan.Naps) != 1 || b.Power.ByPlan.Boots != 0 {
		t.Errorf("it is no nap: %+v", b.Power.ByPlan)
	}
	planned(b, 300*time.Second, "n1")
	later(b, state.PowerCycle)
	is("its use is far away")
	later(b, 193*time.Second) // 97 s before
	is("a little too early")
	b.Power.ByPlan.Looked = time.Time{}
	later(b, time.Second) // Slurm's 70 s, a lead of 15 s, and the times between two polls and two looks
	is("its use is near", "power up n1")
	b.Seen.Nodes[0].Flags = "#"
	later(b, state.PowerCycle)
	if is("it comes up"); len(b.Power.ByPlan.Naps) != 0 || b.Power.ByPlan.Boots != 1 {
		t.Errorf("it is still off: %+v", b.Power.ByPlan)
	}
}

// TestReserveComesUp: nodes that are off come up for the reserve, as many within a minute as Slurm would.
func TestReserveComesUp(t *testing.T) {
	b := saving(t, 4, config.PowerAct)
	b.Config.Power.Reserve, b.Power.Saving.ResumeRate = 3, 2
	for i := range b.Seen.Nodes {
		b.Seen.Nodes[i].Flags = "~"
	}
	if got := commands(b); !slices.Equal(got, []string{"power up n[1-2]"}) {
		t.Errorf("%q", got)
	}
	done(b, nil)
	later(b, state.PowerCycle)
	if got := commands(b); got != nil {
		t.Errorf("within a minute: %q", got)
	}
	later(b, time.Minute)
	if got := commands(b); !slices.Equal(got, []string{"power up n3"}) {
		t.Errorf("a minute later: %q", got)
	}
}

// TestAdvise: it changes nothing, and shows what act would have saved.
func TestAdvise(t *testing.T) {
	b := saving(t, 3, config.PowerAdvise)
	b.Config.Power.Reserve = 1
	planned(b, time.Hour, "n3")
	for range 361 {
		if got := commands(b); got != nil {
			t.Fatalf("it does %q", got)
		}
		later(b, state.PowerCycle)
	}
	a := Show(b.Core)
	// n2 is off all the time except 30 s; n3 until 145 s before its use, and then it boots: 60 s × 50 W.
	want := 0.1 * (3600 - 30) / 3600
	want += 0.1*(3600-150-30)/3600 - 60*50/3.6e6
	if diff := a.KWh - want; a.Mode != "advise" || a.Nodes != 1 || a.Boots != 1 || a.Saves != 100 || diff > .001 || diff < -.001 {
		t.Errorf("%+v, want %v kWh", a, want)
	}
	shows(t, a)
	b.Config.Power.Mode = config.PowerOff
	if got := commands(b); got != nil || len(b.Power.ByPlan.Naps) > 0 || Show(b.Core).Why == "" {
		t.Errorf("off: %q, %+v", got, Show(b.Core))
	}
}

// shows checks the rest of what TestAdvise shows.
func shows(t *testing.T, a api.Power) {
	t.Helper()
	if len(a.Naps) != 1 || a.Naps[0].NodeList != "n2" || !a.Naps[0].Until.IsZero() || !a.Naps[0].Since.Equal(statetest.Start) {
		t.Errorf("naps: %+v", a.Naps)
	}
	if a.BreakEven != 35 || a.Boot != 70 || a.Shutdown != 40 || a.States.Idle != 3 || len(a.Reserve) != 1 || a.Reserve[0].Nodes != 1 {
		t.Errorf("%+v", a)
	}
}

// TestFailed: a node that does not come up is drained, and reported. If these are many, none is, and no node goes off for
// an hour.
func TestFailed(t *testing.T) {
	b := saving(t, 6, config.PowerAct)
	b.Config.Power.Reserve = 6
	b.Power.Failed = statetest.Names(1, 2)
	if got := strings.Join(commands(b), ";"); !strings.HasPrefix(got, "drain n[1-2]: evoslurm: did not come up") {
		t.Errorf("%q", got)
	}
	b.Effects = nil
	done(b, nil)
	if !slices.ContainsFunc(b.Effects, func(e msg.Effect) bool {
		event, is := e.(msg.AddEvent)
		return is && event.Kind == "nodes drained" && strings.Contains(fmt.Sprint(event.Detail), "State=RESUME NodeName=n[1-2]")
	}) {
		t.Errorf("no event: %v", b.Effects)
	}
	later(b, 59*time.Minute)
	b.Power.Failed = []string{"n3"}
	if got := strings.Join(commands(b), ";"); strings.Contains(got, "drain") || !b.Power.ByPlan.Paused.Equal(b.Now.Add(time.Hour)) || b.Power.ByPlan.Why == "" {
		t.Errorf("the third within an hour: %q, %+v", got, b.Power.ByPlan)
	}
	later(b, 2*time.Hour)
	b.Power.Failed = []string{"n4"}
	if got := strings.Join(commands(b), ";"); !strings.Contains(got, "drain n4") || b.Power.ByPlan.Why != "" {
		t.Errorf("hours later: %q", got)
	}
	b.Config.Power.Mode, b.Power.Failed = config.PowerAdvise, []string{"n5"}
	if got := commands(b); got != nil {
		t.Errorf("advise: %q", got)
	}
}

// TestDenied: what Slurm denies is left to it for a while; what fails otherwise is tried again.
func TestDenied(t *testing.T) {
	b := saving(t, 1, config.PowerAct)
	commands(b)
	done(b, errors.New("no answer"))
	later(b, state.PowerCycle)
	if got := commands(b); !slices.Equal(got, []string{"power down n1"}) {
		t.Errorf("%q", got)
	}
	done(b, fmt.Errorf("no: %w", slurmctl.ErrAccessDenied))
	later(b, state.PowerCycle)
	if got := commands(b); got != nil || !strings.Contains(b.Power.ByPlan.Why, "denies") || len(b.Power.ByPlan.Naps) > 0 {
		t.Errorf("%q, %+v", got, b.Power.ByPlan)
	}
}

// TestFirstUse: of several uses of a node, the first counts; without one, there is none.
func TestFirstUse(t *testing.T) {
	b := saving(t, 2, config.PowerAct)
	planned(b, time.Hour, "n1")
	b.Active[0].Plan = append(b.Active[0].Plan, msg.PlannedStep{Start: b.Now.Unix() + 60, End: b.Now.Unix() + 90, Nodes: []string{"n1"}})
	if got := firstUses(b.Core, b.Seen); got[0] != b.Now.Unix()+60 || got[1] != planner.Forever {
		t.Errorf("%v", got)
	}
}

// TestFiguresByType: n2 has a GPU, with which an idle node draws 500 W more and a boot 1,000 W more, so that it must be off for
// longer. What is off saves by its type.
func TestFiguresByType(t *testing.T) {
	b := saving(t, 3, config.PowerAdvise)
	plain := BreakEven(b.Core)
	b.Seen.Nodes[1].Features = []string{"ib", "gpu"}
	b.Config.Power.Types = []config.NodeType{{Feature: "gpu", Watts: config.Watts{Busy: 2000, Idle: 610, Off: 10, Booting: 2110}}}
	if even := BreakEven(b.Core); even <= plain || even != 175*time.Second {
		t.Errorf("break-even time %v, want 175s and more than %v", even, plain)
	}
	commands(b)
	if got := Show(b.Core).Saves; got != 100+600+100 {
		t.Errorf("saves %v W, want 800", got)
	}
	planned(b, 0, "n2")
	b.Now = b.Now.Add(state.PowerCycle)
	b.Seen.Taken = b.Now
	before := b.Power.ByPlan.Joules
	commands(b)
	if got := b.Power.ByPlan.Joules - before; got != -1500*b.Power.Saving.ResumeTimeout.Seconds() {
		t.Errorf("a boot of n2 costs %v J", got)
	}
}
