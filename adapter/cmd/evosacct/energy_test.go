package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/internal/config"
	"github.com/evoslurm/evoslurm/slurmctl"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest/must"
)

// energyOf prints the energy of the example's jobs.
func energyOf(t *testing.T, m *meter, args ...string) string {
	t.Helper()
	o, cmd := build()
	must.OK(t, cmd.ParseFlags(args))
	must.OK(t, o.prepare(now, func() (string, error) { return "1", nil }))
	if !o.wantsEnergy() {
		t.Errorf("%v: does not ask for energy", args)
	}
	var b bytes.Buffer
	must.OK(t, o.write(&b, example(), now, m, recorded))
	return b.String()
}

// watts returns a meter of a site whose busy nodes draw so much.
func watts(busy float64) *meter { return &meter{power: config.Power{Watts: config.Watts{Busy: busy}}} }

// TestEnergyOfTypes: n[1-2] draw 400 W, n3 has a GPU, and n5 is listed first.
func TestEnergyOfTypes(t *testing.T) {
	m := watts(400)
	m.power.Types = []config.NodeType{{Nodes: "n5", Watts: config.Watts{Busy: 100}}, {Feature: "gpu", Watts: config.Watts{Busy: 1000}}, {Nodes: "n[4-9]", Watts: config.Watts{Busy: 300}}}
	m.watts, m.features = m.power.WattsOf(), map[string][]string{"n3": {"ib", "gpu"}, "n5": {"gpu"}}
	if got, want := energyOf(t, m, "-n", "-P", "-o", "jobid,energy", "-j", "7"), "7|~1.067\n7/1|~0.333\n7/2|~0.733\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestEnergy: 9000 and 6000 node-seconds at 400 W are 1 and 0.667 kWh, by a model. Without watts, nothing is known.
func TestEnergy(t *testing.T) {
	for busy, want := range map[float64]string{400: "7|~1.000\n7/1|~0.333\n7/2|~0.667\n", 0: "7|\n7/1|\n7/2|\n"} {
		if got := energyOf(t, watts(busy), "-n", "-P", "-o", "jobid,energy", "-j", "7"); got != want {
			t.Errorf("%v W: %q, want %q", busy, got, want)
		}
	}
}

// step returns an srun step between two moments, in minutes ago.
func step(from, until int, joules int64, nodes string) slurmctl.MeasuredStep {
	s := slurmctl.MeasuredStep{Start: ago(from), Joules: joules, Nodes: nodes}
	if until >= 0 {
		s.End = ago(until)
	}
	return s
}

// TestMeasured: job 7 had n[1-2] from 90 to 70 minutes ago, n1 until 60 minutes ago, and then n[1-5] in its second step.
func TestMeasured(t *testing.T) {
	first := []slurmctl.MeasuredStep{step(90, 70, 720_000, "n[1-2]"), step(70, 60, 360_000, "n1")} // 0.3 kWh
	second := step(60, 40, 1_800_000, "n[1-5]")                                                    // 0.5 kWh
	for name, c := range map[string]struct {
		steps []slurmctl.MeasuredStep
		want  string
	}{
		"all measured":                    {append(first, second), "0.800 0.300 0.500"},
		"Slurm jobs of their own":         {append(first, step(60, 40, 720_000, "n[1-2]"), step(60, 40, 1_080_000, "n[3-5]")), "0.800 0.300 0.500"},
		"from one step into the other":    {[]slurmctl.MeasuredStep{step(90, 40, 1_500_000, "n1"), step(90, 70, 360_000, "n2"), step(60, 40, 1_440_000, "n[2-5]")}, "0.917 0.350 0.567"},
		"nothing":                         {nil, "~1.000 ~0.333 ~0.667"},
		"nothing measured":                {append(slices.Clone(first), step(60, 40, 0, "n[1-5]")), "~0.967 0.300 ~0.667"},
		"unknown, as NO_VAL64":            {append(slices.Clone(first), step(60, 50, -1, "n[1-5]"), step(50, 40, 900_000, "n[1-5]")), "~0.967 0.300 ~0.667"},
		"without an end":                  {append(slices.Clone(first), step(60, 50, 900_000, "n[1-5]"), step(50, -1, -1, "n[1-5]")), "~0.967 0.300 ~0.667"},
		"without an end, of a job before": {append(slices.Clone(first), second, step(95, -1, -1, "n[1-5]")), "0.800 0.300 0.500"},
		"cut off by a resize":             {append(slices.Clone(first), step(60, 45, 0, "n[1-5]"), step(45, 40, 450_000, "n[1-5]")), "~0.967 0.300 ~0.667"},
		"side by side on a node":          {append(slices.Clone(first), second, step(55, 45, 300_000, "n3")), "~0.967 0.300 ~0.667"},
		"only a short srun step":          {append(slices.Clone(first), step(60, 58, 180_000, "n[1-5]")), "~0.967 0.300 ~0.667"},
		"other nodes, and another time":   {append(slices.Clone(first), second, step(60, 40, 9_000_000, "m[1-5]"), step(30, 20, 9_000_000, "n[1-5]")), "0.800 0.300 0.500"},
		"an end in the same second":       {append(slices.Clone(first), step(60, 40, 1_800_000, "n[1-5]"), step(40, 40, 9_000_000, "n1")), "0.800 0.300 0.500"},
		"more nodes than can be counted":  {append(slices.Clone(first), second, step(90, 40, 1, "x[1-65000]x[1-65000]")), "0.800 0.300 0.500"},
	} {
		m := watts(400)
		must.OK(t, m.measure(example(), now, func(uid uint32, _, _ time.Time) ([]slurmctl.MeasuredStep, error) {
			return slices.Clone(c.steps), nil
		}))
		got := strings.Fields(energyOf(t, m, "-n", "-P", "-o", "energy", "-j", "7"))
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s: %v, want %s", name, got, c.want)
		}
	}
}

// TestMeasuredTogether: jobs of a user that ran at the same time are read at once, others on their own, so that it reads
// no periods in which none ran. A failure costs only the jobs of its user.
func TestMeasuredTogether(t *testing.T) {
	job := func(id, uid uint32, from, until int) api.Job {
		return api.Job{ID: id, UID: uid, State: "ended", Profile: "1@10m", Past: []api.Span{{Step: 1, Start: ago(from), End: ago(until), Nodes: 1, NodeList: fmt.Sprint("n", id)}}}
	}
	jobs := []api.Job{job(1, 5, 100, 80), job(2, 5, 90, 60), job(3, 5, 50, 40), job(4, 6, 100, 90), {ID: 5, UID: 7}, job(6, 8, 100, 90)}
	var asked []string
	m := &meter{}
	err := m.measure(jobs, now, func(uid uint32, from, until time.Time) ([]slurmctl.MeasuredStep, error) {
		asked = append(asked, fmt.Sprintf("%d %.0f-%.0f", uid, now.Sub(from).Minutes(), now.Sub(until).Minutes()))
		if uid == 6 {
			return nil, errors.New("sacct prints more than 16777216 bytes")
		}
		return []slurmctl.MeasuredStep{step(100, 80, 3_600_000, "n1"), step(100, 90, 3_600_000, "n6")}, nil
	})
	if want := "5 100-60, 5 50-40, 6 100-90, 8 100-90"; strings.Join(asked, ", ") != want {
		t.Errorf("asked for %s, want %s", strings.Join(asked, ", "), want)
	}
	if want := "what Slurm measured of jobs of user 6: sacct prints more than 16777216 bytes"; fmt.Sprint(err) != want {
		t.Errorf("%v, want %s", err, want)
	}
	if len(m.measured) != 2 || m.measured[placeOf(jobs[0], 1)] != 3.6e6 || m.measured[placeOf(jobs[5], 1)] != 3.6e6 {
		t.Errorf("measured %v", m.measured)
	}
}

// TestMeasuredBounds: what a user submitted does not size the work, nor does a user who prevents it from being read.
func TestMeasuredBounds(t *testing.T) {
	var jobs []api.Job
	for i := range 40 {
		jobs = append(jobs, api.Job{ID: uint32(i + 1), UID: 5, Past: []api.Span{{Step: 1, Start: ago(100), End: ago(90), Nodes: 65000, NodeList: fmt.Sprintf("n[%d-%d]", i*65000, (i+1)*65000-1)}}})
	}
	m := &meter{}
	must.OK(t, m.measure(jobs, now, func(uint32, time.Time, time.Time) ([]slurmctl.MeasuredStep, error) {
		return []slurmctl.MeasuredStep{step(100, 90, 1e9, jobs[0].Past[0].NodeList)}, nil
	}))
	if len(m.measured) != 0 {
		t.Errorf("more than %d nodes were looked at", mostWork/newSlot)
	}
	calls := 0
	for i := range jobs {
		jobs[i].UID = uint32(i)
	}
	err := m.measure(jobs, now, func(uint32, time.Time, time.Time) ([]slurmctl.MeasuredStep, error) {
		calls++
		return nil, errors.New("away")
	})
	if err == nil || calls != mostFailed {
		t.Errorf("%d calls while Slurm's accounting is away, want %d; %v", calls, mostFailed, err)
	}
}

// TestEnergySums: totals are of measured and modelled steps, and marked if any is modelled; JSON says which.
func TestEnergySums(t *testing.T) {
	m := watts(400)
	must.OK(t, m.measure(example()[1:2], now, func(uint32, time.Time, time.Time) ([]slurmctl.MeasuredStep, error) {
		return []slurmctl.MeasuredStep{step(60, 40, 1_800_000, "n[1-5]")}, nil
	}))
	if got, want := energyOf(t, m, "-a", "-n", "-P", "--totals=user"), "alice|2|12600|1300|~1.233\nbob|1|0|0|\n"; got != want {
		t.Errorf("totals %q, want %q", got, want)
	}
	var jobs []api.Job
	must.OK(t, json.Unmarshal([]byte(energyOf(t, m, "-j", "7", "--json")), &jobs))
	text, err := json.Marshal(jobs[0].Energy)
	must.OK(t, err)
	if want := `{"kwh":0.8333333333333333,"measured":false,"steps":[{"step":1,"kwh":0.3333333333333333,"measured":false},{"step":2,"kwh":0.5,"measured":true}]}`; string(text) != want {
		t.Errorf("JSON %s, want %s", text, want)
	}
}
