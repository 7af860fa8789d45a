package slurmctl

import (
	"reflect"
	"slices"
	"testing"
	"time"
)

// TestPower checks what sinfo of 20.11 to 26.05 prints for a node that powers down and up
// (node_state_string of those versions). sinfo shows one mark only, and prefers the power mark to
// "*".
func TestPower(t *testing.T) {
	for state, want := range map[string]struct {
		power         Power
		usable, awake bool
	}{
		"idle":       {PowerOn, true, true},
		"reserved":   {PowerOn, true, true},
		"planned":    {PowerOn, true, true},
		"mixed-":     {PowerOn, true, true},
		"idle*":      {PowerOn, false, false},
		"unknown":    {PowerOn, true, false}, // slurmctld was restarted
		"unknown*":   {PowerOn, false, false},
		"idle~":      {PoweredDown, true, false},
		"allocated~": {PoweredDown, true, false}, // just allocated to a job
		"mixed~":     {PoweredDown, true, false},
		"idle#":      {PowerUp, true, false},
		"ALLOCATED#": {PowerUp, true, false},
		"mixed#":     {PowerUp, true, false},
		"idle%":      {PowerDown, true, false},
		"idle!":      {PowerDrain, true, false}, // from 21.08 on
		"allocated!": {PowerDrain, true, false},
		"planned~":   {PoweredDown, true, false},
		"down~":      {PoweredDown, false, false}, // ResumeTimeout reached
		"down#":      {PowerUp, false, false},
		"down%":      {PowerDown, false, false},
		"drained~":   {PoweredDown, false, false},
		"draining!":  {PowerDrain, false, false},
		"drng@":      {PowerOn, false, false},
		"idle@":      {PowerOn, false, false},
		"idle^":      {PowerOn, false, false},
		"maint":      {PowerOn, true, true}, // hides other states
		"idle$":      {PowerOn, true, true},
		"future~":    {PoweredDown, false, false},
		"blocked":    {PowerOn, false, false},
	} {
		var n Node
		n.State, n.Flags = splitState(state)
		if n.Power() != want.power || n.Usable() != want.usable || n.Awake() != want.awake {
			t.Errorf("%q: power %v, usable %v, awake %v; want %+v", state, n.Power(), n.Usable(), n.Awake(), want)
		}
	}
}

// TestPowerSaving checks that a cluster saves power if it can power nodes down and up.
func TestPowerSaving(t *testing.T) {
	parse := func(text string) Config {
		c, err := parseConfig("SLURM_VERSION = 22.05.8\n" + text)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	if _, on := parse("ResumeProgram = (null)\nSuspendProgram = (null)\nSuspendTime = INFINITE\nResumeTimeout = 60 sec\n").PowerSaving(); on {
		t.Error("a cluster without programs saves power")
	}
	p, on := parse("ResumeProgram = /a\nSuspendProgram = /b\nSuspendTime = 300 sec\nSuspendTimeout = 45 sec\nResumeTimeout = 600 sec\nSuspendRate = 60 nodes/min\nResumeRate = 0 nodes/min\n").PowerSaving()
	if want := (PowerSaving{5 * time.Minute, 45 * time.Second, 10 * time.Minute, 60, 0}); !on || p != want {
		t.Errorf("got %+v %v, want %+v", p, on, want)
	}
	// partitions may have a SuspendTime of their own
	p, on = parse("ResumeProgram = /a\nSuspendProgram = /b\nSuspendTime = INFINITE\n").PowerSaving()
	if want := (PowerSaving{0, 30 * time.Second, time.Minute, 0, 0}); !on || p != want {
		t.Errorf("got %+v %v, want %+v", p, on, want)
	}
	for text, want := range map[string]bool{"OFF": false, "REQUEUE": false, "GANG,SUSPEND": true, "SUSPEND": true, "SUSPEND,GANG": true} {
		if got := parse("PreemptMode = " + text + "\n").SuspendsJobs(); got != want {
			t.Errorf("PreemptMode=%s suspends jobs: %v", text, got)
		}
	}
	if parse("PrivateData = jobs,cloud\n").HidesCloud() || !parse("PrivateData = jobs\n").HidesCloud() {
		t.Error("PrivateData=cloud shows cloud nodes that are off")
	}
}

// TestKeepUpIdleOnly checks that only simply idle nodes are set to idle.
func TestKeepUpIdleOnly(t *testing.T) {
	sep := table{"<SEP>", 2}
	out := ""
	for name, state := range map[string]string{"n1": "idle", "n2": "drained", "n3": "idle~", "n4": "reserved", "n5": "allocated", "n6": "idle*", "n7": "planned", "n8": "idle!"} {
		out += name + sep.sep + state + sep.sep + "\n"
	}
	got, err := parseIdle(sep, out)
	slices.Sort(got)
	if want := []string{"n1", "n4", "n7"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("got %v %v, want %v", got, err, want)
	}
}

// TestUnshown checks which nodes of a partition are hidden.
func TestUnshown(t *testing.T) {
	l := ParseLimits(Config{}, LimitsText{Partitions: "PartitionName=compute Nodes=n[1-8] TotalNodes=8\n"})
	shown := []Node{{Name: "n1"}, {Name: "n2"}, {Name: "other"}}
	if got := CompressNodes(l.Unshown("compute", shown)); got != "n[3-8]" {
		t.Errorf("unshown are %s", got)
	}
	if got := l.Unshown("elsewhere", shown); got != nil {
		t.Errorf("of a partition that is not known: %v", got)
	}
}

// TestPowerExceptions checks which nodes Slurm keeps on, by each form of the settings.
func TestPowerExceptions(t *testing.T) {
	of := func(text string) PowerExceptions {
		c, err := parseConfig("SLURM_VERSION = 24.11.5\n" + text)
		if err != nil {
			t.Fatal(err)
		}
		return c.PowerExceptions()
	}
	for text, want := range map[string]PowerExceptions{
		"SuspendExcNodes = (null)\nSuspendExcParts = (null)\n": {},
		"SuspendExcNodes = n[1-2]\nSuspendExcParts = debug,login\n": {Nodes: []ExceptedNodes{{[]string{"n1", "n2"}, 0}},
			Partitions: []string{"debug", "login"}},
		"SuspendExcNodes = n[1,3]:1,m[1-2],x:7\n": {Nodes: []ExceptedNodes{{[]string{"n1", "n3"}, 1}, {[]string{"m1", "m2"}, 0}, {[]string{"x"}, 7}}},
		"SuspendExcNodes = n[1-2]:much\n":         {Unclear: "SuspendExcNodes=n[1-2]:much"},
		"SuspendExcNodes = n[1-\n":                {Unclear: "SuspendExcNodes=n[1-"},
		"SuspendExcStates = PLANNED,down\n":       {},
		"SuspendExcStates = CLOUD\n":              {Unclear: "SuspendExcStates=CLOUD"},
	} {
		if got := of(text); !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %+v, want %+v", text, got, want)
		}
	}
}
