package simulate_test

import (
	"bytes"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/internal/config"
	"github.com/evoslurm/evoslurm/adapter/internal/energy"
	"github.com/evoslurm/evoslurm/adapter/lab/simulate"
	"github.com/evoslurm/evoslurm/planner"
	"github.com/evoslurm/evoslurm/slurmctl"
	"github.com/evoslurm/evoslurm/slurmctl/slurmsim"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest/must"
)

var watts = energy.Watts{energy.Busy: 360, energy.Idle: 180, energy.Boot: 400, energy.Shutdown: 180, energy.Off: 18}

// account computes a run's energy by these watts.
func account(t *testing.T, r *simulate.Result) {
	t.Helper()
	p := simulate.DefaultPower
	p.Watts = "busy=360,idle=180,boot=400,off=18"
	must.OK(t, p.Validate("--", config.Power{}))
	p.Account(r)
}

func near(a, b float64) bool { return math.Abs(a-b) <= .002*max(a, b) }

// powered returns an experiment of 3000 s on four nodes, which Slurm switches off after 100 s without a job.
func powered(t *testing.T, suspend time.Duration) simulate.Experiment {
	e := experiment(t, 0)
	e.Cluster = slurmsim.Options{Nodes: 4, CPUs: 1, Accounting: true, PermitJobExpansion: true, PowerSaving: slurmsim.PowerSaving{
		SuspendTime: suspend, SuspendTimeout: 15 * time.Second, Boot: 154 * time.Second, ResumeTimeout: 400 * time.Second}}
	e.Jobs = []simulate.Submission{
		{ID: "a", Submit: 1000, User: 1, Profile: planner.Profile{{Duration: 500, Nodes: 2}}},
		{ID: "b", Submit: 2500, User: 2, Profile: planner.Profile{{Duration: 500, Nodes: 1}}},
	}
	return e
}

// TestEnergy: without power saving, a node is busy or idle.
func TestEnergy(t *testing.T) {
	r := outcome(t, powered(t, 0))
	account(t, r)
	e := r.Metrics.Energy
	all := 4*float64(r.Metrics.Makespan) - 1500
	if !near(e.Busy, 1500*.36/3600) || !near(e.Idle, all*.18/3600) || e.Boot+e.Shutdown+e.Off+e.HeldIdle != 0 || !near(e.KWh, e.Busy+e.Idle) {
		t.Errorf("%+v", e)
	}
	if u, jobs := e.Users, r.Jobs; len(u) != 2 || u[0].User != 1 || u[1].User != 2 || u[0].KWh != jobs[0].KWh || u[1].KWh != jobs[1].KWh || !near(u[0].KWh, .1) || !near(u[1].KWh, .05) {
		t.Errorf("users: %v, jobs: %v", u, jobs)
	}
	var out bytes.Buffer
	must.OK(t, r.Table(&out, true))
	for _, want := range []string{"KWH", "kWh: 0.", "0.00 off\n", "kWh by user: 1: 0.10, 2: 0.05\n", "kWh if a plan that knows all jobs switched idle nodes off: 0."} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in:\n%s", want, out.String())
		}
	}
}

// TestEnergyPowerSaving: the states add up to all node-seconds, three boots are paid for, and a job waits for them, and does
// not pay.
func TestEnergyPowerSaving(t *testing.T) {
	r := outcome(t, powered(t, 100*time.Second))
	account(t, r)
	e := r.Metrics.Energy
	seconds := 0.
	for s, kwh := range []float64{e.Busy, e.Idle, e.Boot, e.Shutdown, e.Off} {
		seconds += kwh * 3.6e6 / watts[s]
	}
	if want := 4 * float64(r.Metrics.Makespan); !near(seconds, want) || !near(e.KWh, e.Busy+e.Idle+e.Boot+e.Shutdown+e.Off) {
		t.Errorf("%v of %v node-seconds: %+v", seconds, want, e)
	}
	// slurmctld sees some seconds later that a node is up, which has the job by then
	if most := (1500 + 3*20) * .36 / 3600; !near(e.Boot, 3*154*.4/3600) || e.Busy < .15 || e.Busy > most || e.Off == 0 {
		t.Errorf("%+v", e)
	}
	for i, j := range r.Jobs {
		if j.Wait < 154 || j.Wait > 175 || !near(j.KWh, []float64{.1, .05}[i]) {
			t.Errorf("%+v", j)
		}
	}
}

// TestEnergyByType: each node draws what its type does, by its list or its feature, whether Slurm places jobs or nobody does.
func TestEnergyByType(t *testing.T) {
	low, high := config.Watts{Busy: 360, Idle: 180, Off: 18, Booting: 360}, config.Watts{Busy: 3600, Idle: 1800, Off: 18, Booting: 3600}
	features := slurmsim.Options{CPUs: 1, Accounting: true, PermitJobExpansion: true}
	for i := range 4 {
		features.NodeList = append(features.NodeList, slurmctl.Node{Name: fmt.Sprint("c", i), CPUs: 1, Memory: 1000, Weight: 1, Features: [][]string{{"gpu"}, nil}[i/2]})
	}
	for name, c := range map[string]struct {
		types  []config.NodeType
		beside string
		fat    int                        // how many nodes draw more
		busy   [2]float64                 // node-seconds of jobs on these, and on the others
		change func(*simulate.Experiment) // nil: none
	}{
		"no type":                  {nil, "", 0, [2]float64{0, 1500}, nil},
		"a list":                   {[]config.NodeType{{Nodes: "n[1-3]", Watts: high}}, "", 3, [2]float64{1500, 0}, nil},
		"the first counts":         {[]config.NodeType{{Nodes: "n1", Watts: low}, {Nodes: "n[1-3]", Watts: high}}, "", 2, [2]float64{500, 1000}, nil},
		"nodes that are not there": {[]config.NodeType{{Nodes: "gpu[1-8]", Watts: high}}, "", 0, [2]float64{0, 1500}, nil},
		"a feature":                {[]config.NodeType{{Feature: "gpu", Watts: high}}, "", 2, [2]float64{1500, 0}, func(e *simulate.Experiment) { e.Cluster = features }},
		"FCFS has no nodes":        {[]config.NodeType{{Nodes: "n[1-2]", Watts: high}}, "fcfs", 2, [2]float64{1500, 0}, nil},
	} {
		e, p := powered(t, 0), simulate.DefaultPower
		if c.change != nil {
			c.change(&e)
		}
		p.Watts = simulate.ByConfig
		must.OK(t, p.Validate("--", config.Power{Watts: low, Types: c.types}))
		p.Apply(&e)
		var r *simulate.Result
		var err error
		if c.beside == "" {
			r, err = e.Run(t.Context())
		} else {
			r, err = e.Beside(t.Context(), c.beside)
		}
		must.OK(t, err)
		p.Account(r)
		got := r.Metrics.Energy
		idle := (4*float64(r.Metrics.Makespan) - 1500)
		fatIdle := float64(c.fat)*float64(r.Metrics.Makespan) - c.busy[0]
		want := (c.busy[0]*3600 + c.busy[1]*360 + fatIdle*1800 + (idle-fatIdle)*180) / 3.6e6
		jobs, types, nodes := r.Jobs[0].KWh+r.Jobs[1].KWh, 0., 0
		for _, one := range got.Types {
			types, nodes = types+one.KWh, nodes+one.Nodes
		}
		if !near(got.KWh, want) || !near(jobs, got.Busy) || len(c.types) > 0 && (!near(types, want) || nodes != 4 || len(got.Types) != len(c.types)+1) || got.ByPlan.KWh >= got.KWh || got.ByPlan.KWh < got.Busy {
			t.Errorf("%s: %v kWh, jobs %v, want %v: %+v, by plan %+v", name, got.KWh, jobs, want, got.Types, got.ByPlan)
		}
	}
}

// TestEnergyResumed: a run that was left and resumed has the energy of one that was not.
func TestEnergyResumed(t *testing.T) {
	e, p := powered(t, 100*time.Second), simulate.DefaultPower
	p.Watts = simulate.ByConfig
	must.OK(t, p.Validate("--", config.Power{Watts: config.Watts{Busy: 360, Idle: 180}, Types: []config.NodeType{{Nodes: "n1", Watts: config.Watts{Busy: 700, Idle: 500}}}}))
	p.Suspend = 0 // as the experiment has it
	p.Apply(&e)
	whole := outcome(t, e)
	var left *simulate.Checkpoint
	e.Until, e.Left = 1400, func(c *simulate.Checkpoint) { left = c }
	outcome(t, e)
	e.Until, e.Left, e.Resume = 0, nil, left
	resumed := outcome(t, e)
	p.Account(whole)
	p.Account(resumed)
	if got, want := resumed.Metrics.Energy.KWh, whole.Metrics.Energy.KWh; got != want {
		t.Errorf("%v kWh, want %v", got, want)
	}
}
