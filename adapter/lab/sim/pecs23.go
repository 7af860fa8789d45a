package sim

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/evoslurm/evoslurm/adapter/lab/machine"
	"github.com/evoslurm/evoslurm/adapter/lab/workload"
	"github.com/evoslurm/evoslurm/planner/malleable"
)

// PECS23 is the experiment of Posner, Hupfeld and Finnerty (PECS 2023), with additions: other
// schedulers and policies, and evolving applications.
type PECS23 struct {
	Model      workload.PECS23
	Seeds      int      // S0, S1, …
	Shares     []int    // percent of the jobs that are not rigid
	Schedulers []string // of the publication, or ORDER[+POLICY]
	Phases     int      // largest number of phases of evolving applications; 0 for none of these
	Policy     string   // policy for the malleable jobs of evolving applications
	Ahead      int      // number of waiting evolving applications that keep their place; the others start only if they can start at once
}

// PECS23Schedulers returns the names of the default schedulers: the publication's, and ours.
func PECS23Schedulers() []string {
	names := []string{"rigid_easy_backfill", "rigid_backfill", "pref_agreement", "easy", "first-fit"}
	for _, policy := range malleable.Policies() {
		names = append(names, "first-fit+"+policy)
	}
	return append(names, "easy+gain")
}

// DefaultPECS23 holds the published values, plus applications of up to five phases.
var DefaultPECS23 = PECS23{Model: workload.DefaultPECS23, Seeds: 10, Shares: []int{0, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100},
	Schedulers: PECS23Schedulers(), Phases: 5, Policy: "gain", Ahead: 1}

// PECS23Kinds lists the kinds of jobs for evolving applications.
var PECS23Kinds = []machine.Kind{machine.Rigid, machine.Moldable, machine.Malleable, machine.Evolving, machine.Both}

// pecsLead is the longest time that a job of the model computes between two points: two parts of a
// minute, which take four times as long on a quarter of the nodes.
const pecsLead = 600

// PECS23Figures are averages over the seeds.
type PECS23Figures struct {
	Wait        float64 `json:"wait"`        // seconds from submission to start
	Turnaround  float64 `json:"turnaround"`  // from submission to the end
	Runtime     float64 `json:"runtime"`     // from start to end
	Makespan    float64 `json:"makespan"`    // the last end
	Utilisation float64 `json:"utilisation"` // percent of all node-seconds until then, allocated
	Efficiency  float64 `json:"efficiency"`  // speed-up per node, in percent: work done per allocated node-second
	Changes     float64 `json:"changes"`     // size changes of running jobs, by the scheduler or the application
	Late        float64 `json:"late"`        // largest delay of a declared growth after its promise, in seconds
}

// PECS23Row holds a scheduler's figures, for every share.
type PECS23Row struct {
	Name    string          `json:"name"`
	Figures []PECS23Figures `json:"figures"`
}

// PECS23Result holds the measurements.
type PECS23Result struct {
	Nodes    int         `json:"nodes"`
	Days     int         `json:"days"`
	Seeds    int         `json:"seeds"`
	Shares   []int       `json:"shares"`
	Rows     []PECS23Row `json:"schedulers"`
	Phases   int         `json:"phases"`
	Policy   string      `json:"policy"`
	Ahead    int         `json:"ahead"`
	Evolving []PECS23Row `json:"evolving,omitempty"`
}

// Validate returns what cannot be simulated.
func (e PECS23) Validate() error {
	if err := e.Model.Validate(); err != nil {
		return err
	}
	if e.Seeds < 1 || e.Seeds > 10_000 {
		return fmt.Errorf("seeds: %d is not within 1 … 10000", e.Seeds)
	}
	if len(e.Shares) == 0 {
		return fmt.Errorf("shares: there is none")
	}
	for i, s := range e.Shares {
		if s < 0 || s > 100 {
			return fmt.Errorf("shares: %d is not within 0 … 100 %%", s)
		}
		if slices.Contains(e.Shares[:i], s) {
			return fmt.Errorf("shares: %d is there twice", s)
		}
	}
	if e.Phases != 0 {
		evolving := e.Model
		evolving.Phases = e.Phases
		if err := evolving.Validate(); err != nil {
			return err
		}
	}
	if e.Ahead < 0 || e.Ahead > 1_000_000 {
		return fmt.Errorf("ahead: %d is not within 0 … 1000000", e.Ahead)
	}
	for _, name := range e.Schedulers {
		if _, err := pecsScheduler(name); err != nil {
			return err
		}
	}
	if len(e.Schedulers) == 0 && e.Phases == 0 {
		return fmt.Errorf("schedulers: there is none")
	}
	_, err := malleable.PolicyByName(e.Policy)
	return err
}

// pecsRun says how one workload is run.
type pecsRun struct {
	kind  machine.Kind // kind of the jobs that are not rigid
	rigid bool         // the share changes nothing
	start func() (machine.Scheduler, machine.Options)
}

func pecsScheduler(name string) (pecsRun, error) {
	published := machine.Options{Every: true, Period: 60}
	switch name {
	case "rigid_easy_backfill", "rigid_backfill", "pref_agreement":
		rigid := name != "pref_agreement"
		return pecsRun{machine.Malleable, rigid, func() (machine.Scheduler, machine.Options) {
			return &agreement{rigid: rigid, backfill: name == "rigid_backfill", agreed: make(map[*machine.Run]int)}, published
		}}, nil
	}
	order, policy, shared := strings.Cut(name, "+")
	q := machine.Queue{}
	switch order {
	case "fcfs":
		q.Order = machine.FCFS
	case "easy":
		q.Order = machine.EASY
	case "first-fit":
		q.Order = machine.FirstFit
	default:
		return pecsRun{}, fmt.Errorf("unknown scheduler %q: must be rigid_easy_backfill, rigid_backfill, pref_agreement, or fcfs, easy or first-fit, or one of these with +POLICY", name)
	}
	if shared {
		p, err := malleable.PolicyByName(policy)
		if err != nil {
			return pecsRun{}, fmt.Errorf("scheduler %q: %w", name, err)
		}
		q.Policy = p
	}
	return pecsRun{machine.Malleable, !shared, func() (machine.Scheduler, machine.Options) { return q, machine.Options{} }}, nil
}

// Runs returns the number of simulations.
func (e PECS23) Runs() int { return len(e.plan()) }

// cell is one simulation.
type cell struct {
	evolving         bool
	row, share, seed int
}

// plan lists the simulations. Those with only rigid jobs run once.
func (e PECS23) plan() (cells []cell) {
	rows := func(evolving bool, n int, rigid func(i int) bool) {
		for row := range n {
			for share := range e.Shares {
				if share > 0 && rigid(row) {
					break
				}
				for seed := range e.Seeds {
					cells = append(cells, cell{evolving, row, share, seed})
				}
			}
		}
	}
	rows(false, len(e.Schedulers), func(i int) bool { r, _ := pecsScheduler(e.Schedulers[i]); return r.rigid })
	if e.Phases > 0 {
		rows(true, len(PECS23Kinds), func(i int) bool { return PECS23Kinds[i] == machine.Rigid })
	}
	return cells
}

// Run runs the experiment on that many workers. progress, if not nil, is called after every
// simulation.
func (e PECS23) Run(ctx context.Context, workers int, progress func()) (PECS23Result, error) {
	if err := e.Validate(); err != nil {
		return PECS23Result{}, err
	}
	cells := e.plan()
	figures := make([]PECS23Figures, len(cells))
	err := each(ctx, len(cells), workers, func(ctx context.Context, i int) (err error) {
		figures[i], err = e.simulate(ctx, cells[i])
		return err
	}, progress)
	if err != nil {
		return PECS23Result{}, err
	}
	result := PECS23Result{Nodes: e.Model.Nodes, Days: e.Model.Days, Seeds: e.Seeds, Shares: e.Shares, Phases: e.Phases, Policy: e.Policy, Ahead: e.Ahead}
	for _, name := range e.Schedulers {
		result.Rows = append(result.Rows, PECS23Row{name, make([]PECS23Figures, len(e.Shares))})
	}
	if e.Phases > 0 {
		for _, kind := range PECS23Kinds {
			result.Evolving = append(result.Evolving, PECS23Row{kind.String(), make([]PECS23Figures, len(e.Shares))})
		}
	}
	done := make(map[*PECS23Row]int)
	for i, c := range cells {
		row := &result.Rows
		if c.evolving {
			row = &result.Evolving
		}
		(*row)[c.row].Figures[c.share].add(figures[i], e.Seeds)
		done[&(*row)[c.row]] = c.share + 1
	}
	for row, shares := range done {
		for ; shares < len(row.Figures); shares++ {
			row.Figures[shares] = row.Figures[shares-1]
		}
	}
	return result, nil
}

// add adds the figures of one seed out of seeds.
func (f *PECS23Figures) add(g PECS23Figures, seeds int) {
	n := float64(seeds)
	f.Wait += g.Wait / n
	f.Turnaround += g.Turnaround / n
	f.Runtime += g.Runtime / n
	f.Makespan += g.Makespan / n
	f.Utilisation += g.Utilisation / n
	f.Efficiency += g.Efficiency / n
	f.Changes += g.Changes / n
	f.Late = max(f.Late, g.Late)
}

func (e PECS23) simulate(ctx context.Context, c cell) (PECS23Figures, error) {
	model, run, name := e.Model, pecsRun{}, ""
	if c.evolving {
		model.Phases = e.Phases
		run.kind = PECS23Kinds[c.row]
		name = run.kind.String()
		policy, _ := malleable.PolicyByName(e.Policy)
		run.start = func() (machine.Scheduler, machine.Options) {
			return &machine.Planned{Policy: policy, Ahead: e.Ahead, Lead: pecsLead}, machine.Options{}
		}
	} else {
		name = e.Schedulers[c.row]
		run, _ = pecsScheduler(name)
	}
	var jobs []machine.Job
	for _, j := range model.Generate("S" + strconv.Itoa(c.seed)) {
		kind := machine.Rigid
		if j.Draw*100 >= float64(100-e.Shares[c.share]) && !run.rigid {
			kind = run.kind
		}
		jobs = append(jobs, j.As(kind))
	}
	s, o := run.start()
	runs, err := machine.Simulate(ctx, model.Nodes, jobs, s, o)
	if err != nil {
		return PECS23Figures{}, fmt.Errorf("%s, %d %%, seed S%d: %w", name, e.Shares[c.share], c.seed, err)
	}
	f := pecsFigures(runs, model.Nodes)
	if p, ok := s.(*machine.Planned); ok {
		f.Late = float64(p.Late)
	}
	return f, nil
}

func pecsFigures(runs []*machine.Run, nodes int) (f PECS23Figures) {
	var area, end int64
	var work float64
	n := float64(len(runs))
	for _, r := range runs {
		f.Wait += float64(r.Start-r.Submit) / n
		f.Turnaround += float64(r.End-r.Submit) / n
		f.Runtime += float64(r.End-r.Start) / n
		f.Changes += float64(r.Grown + r.Shrunk)
		area += r.Area
		end = max(end, r.End)
		for _, p := range r.Phases {
			work += p.Work
		}
	}
	f.Makespan = float64(end)
	f.Utilisation = 100 * float64(area) / float64(end) / float64(nodes)
	f.Efficiency = 100 * work / float64(area)
	return f
}
