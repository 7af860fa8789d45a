package sim

import (
	"context"
	"fmt"

	"github.com/evoslurm/evoslurm/adapter/lab/machine"
	"github.com/evoslurm/evoslurm/adapter/lab/workload"
)

// OAR is Georgiou's experiment with malleability beside OAR (thesis 2010, section 5.5, table 5.3).
// On what a rigid background leaves free, it runs malleable jobs one after the other, or moldable
// best-effort jobs, which are killed when a rigid job needs their cores.
type OAR struct {
	Background workload.OAR
	Work       int64 // core-seconds of a malleable or moldable job, which scales perfectly
	Reaction   int64 // seconds that OAR takes to start an unobstructed job
	Grace      int64 // seconds in which a Dynamic MPI application must release nodes
	Tests      int
	Seed       uint64
}

// DefaultOAR holds the published values. The work is that of 8 jobs that use 57 % of the cores for 5
// hours, as given. The reaction is the rigid jobs' wait if something only has to be killed.
var DefaultOAR = OAR{Background: workload.DefaultOAR, Work: 82_000, Reaction: 8, Grace: 40, Tests: 1000, Seed: 1}

// Validate returns what cannot be simulated.
func (e OAR) Validate() error {
	if err := e.Background.Validate(); err != nil {
		return err
	}
	switch {
	case e.Work < 1 || e.Work > 1e12:
		return fmt.Errorf("work: %d is not within 1 … 10^12 core-seconds", e.Work)
	case e.Reaction < 0 || e.Reaction > 3600:
		return fmt.Errorf("reaction: %d is not within 0 … 3600 s", e.Reaction)
	case e.Grace < 0 || e.Grace > 3600:
		return fmt.Errorf("grace: %d is not within 0 … 3600 s", e.Grace)
	case e.Tests < 1 || e.Tests > 1_000_000:
		return fmt.Errorf("tests: %d is not within 1 … 1000000", e.Tests)
	}
	return nil
}

// OARColumns lists the columns of table 5.3, and what they leave open, with their names in JSON.
var OARColumns = []string{"utilisation", "terminated", "errors", "wait", "lost"}

// OARRow holds one strategy's figures, by column: percent of all cores in use, numbers of ended and
// of killed jobs, mean wait of rigid jobs in seconds, and percent of all cores used by killed jobs.
type OARRow struct {
	Strategy string           `json:"strategy"`
	Columns  map[string]Range `json:"columns"`
}

// OARPublished is table 5.3.
var OARPublished = map[string]map[string]float64{
	"dynamic-cpuset":      {"utilisation": 97, "terminated": 8, "errors": 0, "wait": 81},
	"dynamic-mpi":         {"utilisation": 98, "terminated": 8, "errors": 0, "wait": 44},
	"moldable-besteffort": {"utilisation": 72, "terminated": 5, "errors": 4, "wait": 8},
}

// strategies returns the strategies: a malleable job's rigid part is one core of every node with
// Dynamic CPUSETs mapping, and one node with Dynamic MPI.
func (e OAR) strategies() []oar {
	b := e.Background
	return []oar{
		{name: "dynamic-cpuset", least: b.Cores / b.Node},
		{name: "dynamic-mpi", least: b.Node, grace: e.Grace},
		{name: "moldable-besteffort", least: b.Node, killed: true},
	}
}

// Runs returns the number of simulations.
func (e OAR) Runs() int { return e.Tests * len(e.strategies()) }

// Run runs the experiment on that many workers. progress, if not nil, is called after every
// simulation.
func (e OAR) Run(ctx context.Context, workers int, progress func()) ([]OARRow, error) {
	if err := e.Validate(); err != nil {
		return nil, err
	}
	strategies := e.strategies()
	figures := make([]map[string]float64, e.Runs())
	err := each(ctx, len(figures), workers, func(ctx context.Context, i int) (err error) {
		figures[i], err = e.simulate(ctx, strategies[i%len(strategies)], i/len(strategies))
		return err
	}, progress)
	if err != nil {
		return nil, err
	}
	var rows []OARRow
	for s, strategy := range strategies {
		row := OARRow{strategy.name, make(map[string]Range)}
		for _, column := range OARColumns {
			var g gather
			for test := range e.Tests {
				g.add(figures[test*len(strategies)+s][column])
			}
			row.Columns[column] = g.Range
		}
		rows = append(rows, row)
	}
	return rows, nil
}

func (e OAR) simulate(ctx context.Context, s oar, test int) (map[string]float64, error) {
	b := e.Background
	jobs, err := b.Generate(e.Seed, test)
	if err != nil {
		return nil, err
	}
	s.asked, s.reaction = make(map[*machine.Run]int), e.Reaction
	s.job = machine.Job{Kind: machine.Malleable, GrowDelay: e.Reaction, Grace: s.grace, Phases: []machine.Phase{{
		Work: float64(e.Work), Speed: machine.Linear(b.Cores), Min: s.least, Pref: s.least, Max: b.Cores}}}
	if s.killed {
		s.job.Kind = machine.Moldable
	}
	runs, err := machine.Simulate(ctx, b.Cores, jobs, &s, machine.Options{Until: b.Seconds, Watch: nil})
	if err != nil {
		return nil, fmt.Errorf("test %d: %s: %w", test+1, s.name, err)
	}
	f := make(map[string]float64)
	all := float64(b.Cores) * float64(b.Seconds) / 100
	rigid := 0.
	for _, r := range runs {
		f["utilisation"] += float64(r.Area) / all
		switch {
		case r.Kind == machine.Rigid:
			rigid++
			if r.Start > 0 {
				f["wait"] += float64(r.Start - r.Submit)
			} else {
				f["wait"] += float64(b.Seconds - r.Submit)
			}
		case r.Failed:
			f["errors"]++
			f["lost"] += float64(r.Area) / all
		case r.End > 0:
			f["terminated"]++
		}
	}
	f["wait"] /= max(rigid, 1)
	return f, nil
}

// oar is OAR with the module that submits the malleable jobs, or with best-effort jobs.
type oar struct {
	name     string
	least    int   // cores that a malleable job needs to start and never releases
	grace    int64 // seconds
	killed   bool  // best effort: killed instead of shrunk
	reaction int64
	job      machine.Job

	guest *machine.Run         // the malleable or moldable job
	asked map[*machine.Run]int // cores that the guest must release for a rigid job
}

// Schedule implements machine.Scheduler. Rigid jobs start in order of submission, or earlier if
// they fit beside the waiting ones; the guest makes room for them and takes the rest.
func (s *oar) Schedule(m *machine.Machine) {
	if s.guest == nil || s.guest.End > 0 {
		s.guest = m.Submit(s.job)
	}
	waiting := append([]*machine.Run(nil), m.Queue...)
	for _, r := range waiting {
		switch {
		case m.Now < r.Submit+s.reaction:
			m.Wake(r.Submit + s.reaction)
		case r == s.guest:
			if s.killed && m.Free >= s.least {
				m.Start(r, m.Free)
			} else if m.Free >= s.least {
				m.Start(r, s.least)
			}
		default:
			s.start(m, r)
		}
	}
	if r := s.guest; !s.killed && r.Size > 0 && m.Free > 0 && len(s.asked) == 0 {
		if most := m.Nodes - r.Assigned(); most > 0 {
			m.Grow(r, min(m.Free, most))
		}
	}
}

// start starts a rigid job, or makes the guest release nodes for it.
func (s *oar) start(m *machine.Machine, r *machine.Run) {
	need := r.Phases[0].Pref
	guest := s.guest
	missing := need - m.Free - r.Held
	if missing > 0 && guest.Size > 0 {
		switch coming := s.asked[r] - r.Held; {
		case s.killed && missing <= guest.Size:
			m.Kill(guest)
			s.guest = m.Submit(s.job)
			m.Wake(m.Now + s.reaction)
			missing = 0
		case !s.killed && missing > coming && missing-coming <= guest.Assigned()-s.least:
			m.Shrink(guest, missing-coming, r)
			s.asked[r] += missing - coming
			missing = need - m.Free - r.Held // it may have them at once
		}
	}
	if missing <= 0 {
		m.Start(r, need)
		delete(s.asked, r)
	}
}
