package sim

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/evoslurm/evoslurm/adapter/internal/energy"
	"github.com/evoslurm/evoslurm/adapter/lab/workload"
)

// Green is Georgiou's experiment with idle nodes that are switched off (thesis 2010, section 6.3.2, table 6.2). Beside OAR's
// normal and green modes, it has Slurm's power saving, plans that switch nodes off, and one that knows all arrivals.
type Green struct {
	Loads               []GreenLoad
	Busy, Booting, Off  float64 // watts of these states, in percent of an idle node's
	Boot, Shutdown      int64   // seconds that these take
	IdleTime, SleepTime int64   // OAR's: seconds since a node's last job, and until its next reservation
	Suspend             []int64 // Slurm's SuspendTime
	Reserves            []int   // nodes that the plan keeps awake
	Declared            []int   // percent of the jobs that the plan knows ahead
	Notice              int64   // seconds
	Tests               int
	Seed                uint64
}

// GreenLoad is one of the thesis's two workloads.
type GreenLoad struct {
	workload.Green
	Idle      float64                 // watts of an idle node
	Published map[string]GreenFigures // of table 6.2, by mode
}

// GreenFigures holds published figures.
type GreenFigures struct {
	KWh  float64 `json:"kwh"`
	Wait float64 `json:"wait"`
}

// DefaultGreen holds the published values, and what the text suggests:
//
//   - Jobs sleep, so a busy node draws as much as an idle one: in the normal mode, an idle node's share of the energy over 5
//     hours. The thesis explains the two loads' difference with other machines.
//   - The difference between "powered-OFF and idle powered-ON states" is 60 %.
//   - The peaks "in the end of the power-ON phase" are only drawn. A booting node draws what a computing one does: section 6.3.2
//     saves 7.2 kWh, "13 % of the total computation", on 32 nodes in 5 hours, so 346 W or 130 % of an idle node. A node that
//     shuts down draws what an idle one does.
//   - OAR's times are not given. Its documentation has 600 s for both.
var DefaultGreen = Green{
	Loads: []GreenLoad{
		{workload.Green{Nodes: 32, Seconds: 5 * 3600, Load: 50.32, Jobs: 309, LargeJobs: 5, LargeWork: 90}, 42.7e3 / 32 / 5,
			map[string]GreenFigures{greenNormal: {42.7, 8}, GreenOAR: {30.6, 829}}},
		{workload.Green{Nodes: 32, Seconds: 5 * 3600, Load: 89.62, Jobs: 188}, 40.7e3 / 32 / 5,
			map[string]GreenFigures{greenNormal: {40.7, 1}, GreenOAR: {36.6, 218}}},
	},
	Busy: 100, Booting: 130, Off: 40, Boot: 154, Shutdown: 15, IdleTime: 600, SleepTime: 600,
	Suspend: []int64{60, 300, 600}, Reserves: []int{0, 2, 4, 8, 16}, Declared: []int{100}, Notice: 900, Tests: 20, Seed: 1,
}

// The series of rows. A node goes off at once when the plan has no use for it, or after it was idle for as long as costs a
// shutdown and a boot.
const (
	greenNormal      = "normal"
	GreenOAR         = "OAR green"
	greenSlurm       = "Slurm, by SuspendTime"
	greenPlan        = "plan, by nodes awake"
	greenLate        = "plan, after break-even, by nodes awake"
	greenDeclared    = "plan, by percent declared"
	greenClairvoyant = "clairvoyant"
)

// Validate returns what cannot be simulated.
func (e Green) Validate() error {
	for _, load := range e.Loads {
		if err := load.Validate(); err != nil {
			return err
		}
	}
	for i, percent := range []float64{e.Busy, e.Booting, e.Off} {
		if !(percent >= 0 && percent <= 1000) {
			return fmt.Errorf("%s: %v is not within 0 … 1000 %%", []string{"busy", "booting", "off"}[i], percent)
		}
	}
	for _, x := range []struct {
		name        string
		value       int64
		least, most int64
		unit        string
	}{
		{"boot", e.Boot, 1, 86400, " s"}, {"shutdown", e.Shutdown, 1, 86400, " s"},
		{"idle time", e.IdleTime, 0, 1e6, " s"}, {"sleep time", e.SleepTime, 0, 1e6, " s"},
		{"notice", e.Notice, 0, 1e6, " s"},
		{"tests", int64(e.Tests), 1, 100_000, ""},
	} {
		if x.value < x.least || x.value > x.most {
			return fmt.Errorf("%s: %d is not within %d … %d%s", x.name, x.value, x.least, x.most, x.unit)
		}
	}
	for _, x := range []struct {
		name   string
		values []int
		most   int
	}{{"reserves", e.Reserves, 1024}, {"declared", e.Declared, 100}} {
		for _, v := range x.values {
			if v < 0 || v > x.most {
				return fmt.Errorf("%s: %d is not within 0 … %d", x.name, v, x.most)
			}
		}
	}
	for _, s := range e.Suspend {
		if s < 0 || s > 1e6 {
			return fmt.Errorf("suspend: %d is not within 0 … 1000000 s", s)
		}
	}
	return nil
}

// watts returns what a node draws. A node that shuts down draws as much as an idle one.
func (e Green) watts(l GreenLoad) energy.Watts {
	return energy.Watts{energy.Busy: l.Idle * e.Busy / 100, energy.Idle: l.Idle, energy.Boot: l.Idle * e.Booting / 100, energy.Shutdown: l.Idle, energy.Off: l.Idle * e.Off / 100}
}

// GreenRow holds the figures of one way to switch nodes off, over the workloads.
type GreenRow struct {
	Mode   string `json:"mode"`
	Series string `json:"series"`
	KWh    Range  `json:"kwh"`
	Saved  Range  `json:"saved"` // percent of the normal mode's energy
	Wait   Range  `json:"wait"`  // mean wait of a workload's jobs, in seconds
	Boots  Range  `json:"boots"`
	End    Range  `json:"end"` // when the last job ended, in seconds
}

// GreenTable holds the rows of a load.
type GreenTable struct {
	Load      float64                 `json:"load"`
	Jobs      int                     `json:"jobs"`
	Idle      float64                 `json:"idle"`       // watts of an idle node
	BreakEven *int64                  `json:"break_even"` // seconds; null if nodes that are off draw no less than idle ones
	Least     Range                   `json:"least"`      // kWh if idle nodes were off at once and booted for nothing
	Rows      []GreenRow              `json:"rows"`
	Published map[string]GreenFigures `json:"published"`
	Tenth     float64                 `json:"tenth"`          // of the wait that the thesis's green mode adds, in seconds
	Best      string                  `json:"best,omitempty"` // the plan with the least energy that adds no more wait than that
}

// policies returns the modes that are simulated, the normal one first.
func (e Green) policies(w energy.Watts) []powerPolicy {
	gap := int64(never)
	if even, ok := w.BreakEven(e.Shutdown, e.Boot); ok {
		gap = e.Shutdown + e.Boot + even
	}
	all := []powerPolicy{{name: greenNormal, series: greenNormal, after: never}, {name: GreenOAR, series: GreenOAR, after: e.IdleTime, gap: e.SleepTime}}
	for _, s := range e.Suspend {
		all = append(all, powerPolicy{name: fmt.Sprintf("Slurm, SuspendTime=%d", s), series: greenSlurm, after: s})
	}
	for _, r := range e.Reserves {
		all = append(all, powerPolicy{name: fmt.Sprintf("plan, %d awake", r), series: greenPlan, gap: gap, reserve: r, plans: true})
	}
	for _, r := range e.Reserves {
		all = append(all, powerPolicy{name: fmt.Sprintf("plan, %d awake, after break-even", r), series: greenLate, after: gap, gap: gap, reserve: r, plans: true})
	}
	for _, d := range e.Declared {
		all = append(all, powerPolicy{name: fmt.Sprintf("plan, %d %% declared", d), series: greenDeclared, gap: gap, declared: d, plans: true})
	}
	return all
}

// Runs returns the number of workloads.
func (e Green) Runs() int { return e.Tests * len(e.Loads) }

// greenRun holds the figures of one workload and mode.
type greenRun struct {
	seconds energy.Seconds
	wait    float64
	boots   int
	end     int64
}

// Run runs the experiment on that many workers. progress, if not nil, is called after every workload.
func (e Green) Run(ctx context.Context, workers int, progress func()) ([]GreenTable, error) {
	if err := e.Validate(); err != nil {
		return nil, err
	}
	runs := make([][]greenRun, e.Runs())
	err := each(ctx, len(runs), workers, func(ctx context.Context, i int) (err error) {
		runs[i], err = e.simulate(ctx, e.Loads[i/e.Tests], i%e.Tests)
		return err
	}, progress)
	if err != nil {
		return nil, err
	}
	var tables []GreenTable
	for i, load := range e.Loads {
		tables = append(tables, e.table(load, runs[i*e.Tests:(i+1)*e.Tests]))
	}
	return tables, nil
}

// simulate runs one workload in every mode.
func (e Green) simulate(ctx context.Context, load GreenLoad, test int) (runs []greenRun, err error) {
	jobs, err := load.Generate(e.Seed, test)
	if err != nil {
		return nil, err
	}
	w := e.watts(load)
	var normal []poweredJob
	for _, policy := range e.policies(w) {
		p := powered{powerPolicy: policy, boot: e.Boot, shutdown: e.Shutdown}
		if err := p.simulate(ctx, load.Nodes, e.arrivals(jobs, test, policy.declared), load.Seconds); err != nil {
			return nil, fmt.Errorf("test %d: %s: %w", test+1, p.name, err)
		}
		r := greenRun{seconds: p.meter.Seconds, boots: p.boots, end: p.last}
		for _, j := range p.started {
			r.wait += float64(j.start-j.Submit) / float64(len(jobs))
		}
		if runs = append(runs, r); len(runs) == 1 {
			normal = p.started
		}
	}
	best := runs[0]
	best.seconds, best.boots = e.clairvoyant(w, load.Nodes, normal, max(load.Seconds, best.end))
	return append(runs, best), nil
}

// arrivals returns the jobs in the order in which they are known. The declared ones, drawn by the test, are known ahead.
func (e Green) arrivals(jobs []workload.GreenJob, test, declared int) []*poweredJob {
	random := rand.New(rand.NewPCG(e.Seed, uint64(test)))
	all := make([]*poweredJob, len(jobs))
	for i, j := range jobs {
		all[i] = &poweredJob{GreenJob: j, known: j.Submit}
		if random.IntN(100) < declared {
			all[i].known -= e.Notice
		}
	}
	slices.SortStableFunc(all, func(a, b *poweredJob) int { return cmp.Compare(a.known, b.known) })
	return all
}

// table gathers the figures of a load's workloads.
func (e Green) table(load GreenLoad, runs [][]greenRun) GreenTable {
	w := e.watts(load)
	t := GreenTable{Load: load.Load, Jobs: load.Jobs, Idle: load.Idle, Published: load.Published}
	if even, ok := w.BreakEven(e.Shutdown, e.Boot); ok {
		t.BreakEven = &even
	}
	var least gather
	for _, run := range runs {
		busy := run[0].seconds[energy.Busy]
		all := int64(load.Nodes) * max(load.Seconds, run[0].end)
		least.add(w.KWh(energy.Seconds{energy.Busy: busy, energy.Off: all - busy}))
	}
	t.Least = least.Range
	for i, p := range append(e.policies(w), powerPolicy{name: greenClairvoyant, series: greenClairvoyant}) {
		var kwh, saved, wait, boots, end gather
		for _, run := range runs {
			r, normal := run[i], w.KWh(run[0].seconds)
			kwh.add(w.KWh(r.seconds))
			saved.add(100 * (1 - w.KWh(r.seconds)/max(normal, 1e-9)))
			wait.add(r.wait)
			boots.add(float64(r.boots))
			end.add(float64(r.end))
		}
		t.Rows = append(t.Rows, GreenRow{p.name, p.series, kwh.Range, saved.Range, wait.Range, boots.Range, end.Range})
	}
	t.best()
	return t
}

// best finds the plan that the target asks for, among those that know only what was submitted.
func (t *GreenTable) best() {
	t.Tenth = (t.Published[GreenOAR].Wait - t.Published[greenNormal].Wait) / 10
	least := math.Inf(1)
	for _, r := range t.Rows {
		if (r.Series == greenPlan || r.Series == greenLate) && r.Wait.Avg-t.Rows[0].Wait.Avg <= t.Tenth && r.KWh.Avg < least {
			t.Best, least = r.Mode, r.KWh.Avg
		}
	}
}
