package machine_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/evoslurm/evoslurm/adapter/lab/machine"
	"github.com/evoslurm/evoslurm/planner/malleable"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest/must"
)

// job returns a job of one phase that takes so many seconds on its preferred nodes.
func job(kind machine.Kind, submit int64, seconds float64, least, preferred, most int) machine.Job {
	return machine.Job{Submit: submit, Kind: kind, Phases: []machine.Phase{phase(seconds, least, preferred, most)}}
}

func phase(seconds float64, least, preferred, most int) machine.Phase {
	return machine.Phase{Work: seconds * float64(preferred), Speed: machine.Linear(most), Min: least, Pref: preferred, Max: most}
}

func simulate(t *testing.T, nodes int, s machine.Scheduler, jobs ...machine.Job) []*machine.Run {
	t.Helper()
	runs, err := machine.Simulate(t.Context(), nodes, jobs, s, machine.Options{Watch: watch(t)})
	must.OK(t, err)
	return runs
}

// watch checks invariants of a machine.
func watch(t interface{ Fatalf(string, ...any) }) func(*machine.Machine) {
	return func(m *machine.Machine) {
		used := m.Free
		for _, r := range m.Running {
			used += r.Size
			least, most := r.Bounds()
			switch {
			case r.Size > most:
				t.Fatalf("second %d: job %d has %d nodes, at most %d", m.Now, r.Number, r.Size, most)
			case r.Size < least && r.Short() != least-r.Size:
				t.Fatalf("second %d: job %d computes on %d nodes, needs %d", m.Now, r.Number, r.Size, least)
			case !r.Kind.Resizable() && r.Changing():
				t.Fatalf("second %d: job %d is %s and changes", m.Now, r.Number, r.Kind)
			}
			used += r.Reserved()
		}
		for _, r := range m.Queue {
			used += r.Held
		}
		if m.Free < 0 || used != m.Nodes {
			t.Fatalf("second %d: %d nodes free, %d in all, of %d", m.Now, m.Free, used, m.Nodes)
		}
	}
}

// times returns start-end of all jobs.
func times(runs []*machine.Run) string {
	var b strings.Builder
	for _, r := range runs {
		fmt.Fprintf(&b, " %d-%d", r.Start, r.End)
	}
	return b.String()[1:]
}

// TestOrders checks which rigid jobs start before which.
func TestOrders(t *testing.T) {
	jobs := []machine.Job{
		job(machine.Rigid, 0, 100, 6, 6, 6),
		job(machine.Rigid, 1, 100, 8, 8, 8), // waits for the first
		job(machine.Rigid, 2, 200, 3, 3, 3), // would delay it
		job(machine.Rigid, 3, 50, 2, 2, 2),  // would not delay it
	}
	for _, c := range []struct {
		s    machine.Scheduler
		want string
	}{
		{machine.Queue{}, "0-100 100-200 200-400 200-250"},
		{machine.Queue{Order: machine.EASY}, "0-100 100-200 200-400 3-53"},
		{machine.Queue{Order: machine.FirstFit}, "0-100 202-302 2-202 100-150"},
		{&machine.Planned{}, "0-100 202-302 2-202 100-150"},
		{&machine.Planned{Ahead: 1}, "0-100 100-200 200-400 3-53"},
	} {
		if got := times(simulate(t, 10, c.s, jobs...)); got != c.want {
			t.Errorf("%T %+v: %s, want %s", c.s, c.s, got, c.want)
		}
	}
}

// TestMalleable checks that running malleable jobs release nodes for a waiting job, at their
// points, take what is free, and do the same work at every size.
func TestMalleable(t *testing.T) {
	long := job(machine.Malleable, 0, 100, 2, 8, 10) // 800 node-seconds
	rigid := job(machine.Rigid, 10, 10, 6, 6, 6)
	q := machine.Queue{Order: machine.FirstFit, Policy: malleable.EGS{}}
	// 8 nodes at the start, 10 at once; 4 from 10 to 20; 10 again: 0-10: 100, 10-20: 40, 660 left.
	runs := simulate(t, 10, q, long, rigid)
	if got := times(runs); got != "0-86 10-20" {
		t.Errorf("any second: %s", got)
	}
	if r := runs[0]; r.Area != 100+40+660 || r.Shrunk != 1 || r.ShrBy != 6 || r.GrownBy != 8 {
		t.Errorf("area %d, shrunk %d by %d, grown by %d", r.Area, r.Shrunk, r.ShrBy, r.GrownBy)
	}
	// With ten points of 80 node-seconds: it starts on 8, grows to 10 at the first one, second 10,
	// and that is when it leaves 4 of these again: the points are 80 node-seconds apart.
	long.Phases[0].Points = 10
	runs = simulate(t, 10, q, long, rigid)
	if r := runs[1]; r.Start <= 10 || r.Start > 20 {
		t.Errorf("points: the other one starts at %d", r.Start)
	}
	long.Grace, long.Phases[0].Points = 40, 0
	if got := times(simulate(t, 10, q, long, rigid)); got != "0-86 50-60" {
		t.Errorf("grace: %s", got)
	}
}

// TestHeld checks that released nodes stay reserved for their job.
func TestHeld(t *testing.T) {
	var s scheduler = func(m *machine.Machine) {
		switch {
		case m.Now == 0:
			m.Start(m.Queue[0], 10)
		case m.Now == 5:
			m.Shrink(m.Running[0], 4, m.Queue[0])
		case len(m.Queue) > 0 && m.Queue[0].Held == 4:
			m.Start(m.Queue[0], 4)
		}
	}
	long := job(machine.Malleable, 0, 100, 2, 10, 10)
	long.Grace = 3
	if got := times(simulate(t, 10, s, long, job(machine.Rigid, 5, 10, 4, 4, 4))); got != "0-162 8-18" {
		t.Error(got)
	}
}

type scheduler func(*machine.Machine)

func (s scheduler) Schedule(m *machine.Machine) { s(m) }

// TestMistakes checks that a scheduler's mistakes end the simulation.
func TestMistakes(t *testing.T) {
	for what, s := range map[string]scheduler{
		"cannot start on 11 nodes":    func(m *machine.Machine) { m.Start(m.Queue[0], 11) },
		"cannot start on 1 nodes":     func(m *machine.Machine) { m.Start(m.Queue[0], 1) },
		"cannot shrink by 9 nodes":    func(m *machine.Machine) { m.Start(m.Queue[0], 10); m.Shrink(m.Running[0], 9, nil) },
		"cannot grow by 1 nodes":      func(m *machine.Machine) { m.Start(m.Queue[0], 10); m.Grow(m.Running[0], 1) },
		"cannot be killed":            func(m *machine.Machine) { m.Kill(m.Queue[0]) },
		"cannot be held":              func(m *machine.Machine) { m.Start(m.Queue[0], 10); m.Hold(m.Running[0]) },
		"job 1 never starts":          func(m *machine.Machine) {},
		"job 2: a time is negative":   func(m *machine.Machine) { m.Submit(machine.Job{Submit: 0, Grace: -1}) },
		"cannot start on 10 nodes":    func(m *machine.Machine) { r := m.Queue[0]; m.Start(r, 10); m.Start(r, 10) },
		"cannot shrink by -1 nodes":   func(m *machine.Machine) { m.Start(m.Queue[0], 10); m.Shrink(m.Running[0], -1, nil) },
		"job 1 cannot grow by 0 node": func(m *machine.Machine) { m.Start(m.Queue[0], 5); m.Grow(m.Running[0], 0) },
	} {
		_, err := machine.Simulate(t.Context(), 10, []machine.Job{job(machine.Malleable, 0, 10, 2, 5, 10)}, s, machine.Options{})
		if err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("got %v, want %q", err, what)
		}
	}
}

// TestValidate rejects impossible jobs.
func TestValidate(t *testing.T) {
	good := job(machine.Malleable, 0, 10, 2, 5, 10)
	for what, change := range map[string]func(*machine.Job){
		"a time is negative":              func(j *machine.Job) { j.Submit = -1 },
		"there is no phase":               func(j *machine.Job) { j.Phases = nil },
		"work is NaN":                     func(j *machine.Job) { j.Phases[0].Work = math.NaN() },
		"work is 0":                       func(j *machine.Job) { j.Phases[0].Work = 0 },
		"6 … 5 … 10 nodes":                func(j *machine.Job) { j.Phases[0].Min = 6 },
		"2 … 5 … 11 nodes":                func(j *machine.Job) { j.Phases[0].Max = 11 },
		"the speed-up is known up to 9":   func(j *machine.Job) { j.Phases[0].Speed = machine.Linear(9) },
		"the speed-up on 7 nodes is -1":   func(j *machine.Job) { j.Phases[0].Speed[7] = -1 },
		"points is -1":                    func(j *machine.Job) { j.Phases[0].Points = -1 },
		"there is no power of two within": func(j *machine.Job) { j.Sizes, j.Phases[0].Min, j.Phases[0].Max = malleable.Pow2, 5, 7 },
		"phase 2: a malleable job has":    func(j *machine.Job) { j.Phases = append(j.Phases, phase(10, 1, 5, 10)) },
	} {
		j := good
		j.Phases = []machine.Phase{good.Phases[0]}
		j.Phases[0].Speed = machine.Linear(10)
		change(&j)
		if err := j.Validate(10); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("got %v, want %q", err, what)
		}
	}
	if err := good.Validate(10); err != nil {
		t.Error(err)
	}
}

// drawJobs draws jobs of all kinds.
func drawJobs(t *rapid.T, nodes int, kinds []machine.Kind) []machine.Job {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) machine.Job {
		j := machine.Job{Submit: rapid.Int64Range(0, 500).Draw(t, "submit"), Kind: rapid.SampledFrom(kinds).Draw(t, "kind")}
		phases := 1
		if j.Kind != machine.Malleable || rapid.Bool().Draw(t, "several") {
			phases = rapid.IntRange(1, 4).Draw(t, "phases")
		}
		for i := range phases {
			least := rapid.IntRange(1, nodes).Draw(t, "least")
			preferred := rapid.IntRange(least, nodes).Draw(t, "preferred")
			p := machine.Phase{Work: rapid.Float64Range(.5, 2000).Draw(t, "work"), Min: least, Pref: preferred,
				Max: rapid.IntRange(preferred, nodes).Draw(t, "most"), Points: rapid.IntRange(0, 20).Draw(t, "points"),
				Speed: machine.Amdahl(rapid.Float64Range(.5, 1).Draw(t, "parallel"), nodes)}
			if i > 0 && j.Kind != machine.Evolving && j.Kind != machine.Both {
				p.Min, p.Pref, p.Max = j.Phases[0].Min, j.Phases[0].Pref, j.Phases[0].Max
			}
			j.Phases = append(j.Phases, p)
		}
		return j
	}), 1, 25).Draw(t, "jobs")
}

var everyKind = []machine.Kind{machine.Rigid, machine.Moldable, machine.Malleable, machine.Evolving, machine.Both}

// TestProperties checks for all jobs, orders, and policies: sizes within bounds, a constant number
// of nodes, jobs that end with their work done, and equal output for equal input.
func TestProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const nodes = 12
		kinds := everyKind
		var s func() machine.Scheduler
		var policy malleable.Policy
		if name := rapid.SampledFrom(append(malleable.Policies(), "")).Draw(t, "policy"); name != "" {
			policy, _ = malleable.PolicyByName(name)
		}
		if rapid.Bool().Draw(t, "planned") {
			ahead, lead := rapid.IntRange(0, 3).Draw(t, "ahead"), rapid.Int64Range(0, 600).Draw(t, "lead")
			s = func() machine.Scheduler { return &machine.Planned{Policy: policy, Ahead: ahead, Lead: lead} }
		} else {
			kinds = kinds[:3] // growths without a promise may deadlock
			order := rapid.SampledFrom([]machine.Order{machine.FCFS, machine.EASY, machine.FirstFit}).Draw(t, "order")
			s = func() machine.Scheduler { return machine.Queue{Order: order, Policy: policy} }
		}
		jobs := drawJobs(t, nodes, kinds)
		run := func() []*machine.Run {
			runs, err := machine.Simulate(t.Context(), nodes, jobs, s(), machine.Options{Watch: watch(t)})
			must.OK(t, err)
			return runs
		}
		runs := run()
		if len(runs) != len(jobs) {
			t.Fatalf("%d of %d jobs", len(runs), len(jobs))
		}
		for _, r := range runs {
			fastest, slowest := 0., 0.
			for _, p := range r.Phases {
				fastest += p.Work / p.Speed[p.Max]
				slowest += math.Ceil(p.Work/p.Speed[p.Min]) + 1
			}
			took := float64(r.End - r.Start)
			if r.Start < r.Submit || took < fastest-1e-3 || took > slowest+float64(r.ShortFor) {
				t.Fatalf("job %d: submitted %d, %d-%d; takes %.2f … %.2f s", r.Number, r.Submit, r.Start, r.End, fastest, slowest)
			}
		}
		if again := run(); times(again) != times(runs) {
			t.Fatalf("%s, and then %s", times(runs), times(again))
		}
	})
}

// TestPromises checks that a declared growth has its nodes in time, whatever malleable jobs do and
// however long the lead is. A job that does not release nodes within the lead gets no loans.
func TestPromises(t *testing.T) {
	lent := make(map[int64]int)
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 0))
		var jobs []machine.Job
		for range 20 {
			j := machine.Job{Submit: random.Int64N(1500), Kind: everyKind[random.IntN(5)]}
			for i := range 1 + random.IntN(4) {
				n := 1 + random.IntN(10)
				p := phase(float64(60+random.IntN(500)), max(n/2, 1), n, min(2*n, 16))
				p.Points = max(int(p.Work)/n/(20+random.IntN(300)), 1)
				if i > 0 && j.Kind != machine.Evolving && j.Kind != machine.Both {
					p.Min, p.Pref, p.Max, p.Speed = j.Phases[0].Min, j.Phases[0].Pref, j.Phases[0].Max, j.Phases[0].Speed
				}
				j.Phases = append(j.Phases, p)
			}
			jobs = append(jobs, j)
		}
		for _, lead := range []int64{0, 50, 200, 1000} {
			s := &machine.Planned{Policy: malleable.Gain{}, Ahead: int(seed % 3), Lead: lead}
			for _, r := range simulate(t, 16, s, jobs...) {
				if r.Kind == machine.Malleable {
					lent[lead] += r.GrownBy
				}
			}
			if s.Late > 0 {
				t.Fatalf("seed %d, lead %d: %d s late", seed, lead, s.Late)
			}
		}
	}
	if lent[0] > 0 || lent[50] == 0 || lent[200] <= lent[50] {
		t.Errorf("nodes lent, by lead: %v", lent)
	}
}

// TestPlannedEvolves checks that an evolving job starts where all of its phases fit, and that one
// that is also malleable ends sooner if there is room.
func TestPlannedEvolves(t *testing.T) {
	evolving := machine.Job{Kind: machine.Evolving, Submit: 1, Phases: []machine.Phase{phase(50, 2, 2, 2), phase(50, 4, 8, 10)}}
	rigid := job(machine.Rigid, 0, 80, 4, 4, 4)
	runs := simulate(t, 10, &machine.Planned{Ahead: 1, Lead: 10}, rigid, evolving)
	if got := times(runs); got != "0-80 30-130" {
		t.Errorf("evolving: %s", got)
	}
	evolving.Kind = machine.Both // 4 … 10 nodes for 400 node-seconds
	runs = simulate(t, 10, &machine.Planned{Policy: malleable.EGS{}, Lead: 10}, rigid, evolving)
	// 6 nodes from 51 to 80, 174 node-seconds, then 10.
	if got := times(runs); got != "0-80 1-103" {
		t.Errorf("evolving and malleable: %s", got)
	}
	moldable := job(machine.Moldable, 1, 100, 1, 5, 10) // 500 node-seconds: on 4 nodes at once, on 8 or 10 later
	if got := times(simulate(t, 10, &machine.Planned{Ahead: 1}, rigid, moldable)); got != "0-80 1-126" {
		t.Errorf("moldable: %s", got)
	}
}

// TestLeft checks the remaining seconds as a job progresses.
func TestLeft(t *testing.T) {
	var left []int64
	var s scheduler = func(m *machine.Machine) {
		if m.Now == 0 {
			m.Start(m.Queue[0], 5)
		}
		for _, r := range m.Running {
			left = append(left, m.Now, m.Left(r, r.Size), int64(100*m.Progress(r)))
		}
	}
	j := job(machine.Malleable, 0, 100, 1, 5, 10)
	if _, err := machine.Simulate(t.Context(), 10, []machine.Job{j}, s, machine.Options{Period: 40}); err != nil {
		t.Fatal(err)
	}
	if want := []int64{0, 100, 0, 40, 60, 40, 80, 20, 80}; !reflect.DeepEqual(left, want) {
		t.Errorf("got %v, want %v", left, want)
	}
}
