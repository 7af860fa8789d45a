package sweep

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/spf13/pflag"

	"github.com/evoslurm/evoslurm/adapter/internal/config"
	"github.com/evoslurm/evoslurm/adapter/internal/wholefile"
	"github.com/evoslurm/evoslurm/adapter/lab/outcome"
	"github.com/evoslurm/evoslurm/adapter/lab/simulate"
	"github.com/evoslurm/evoslurm/adapter/lab/trace"
	"github.com/evoslurm/evoslurm/planner"
	"github.com/evoslurm/evoslurm/slurmctl/slurmsim"
)

// Done is the outcome of a cell.
type Done struct {
	Cell
	Nodes   int              `json:"nodes"`
	LeftOut int              `json:"left_out"` // jobs of the trace that something is wrong with, or too large
	Metrics simulate.Metrics `json:"metrics"`
	Jobs    []job            `json:"jobs"`
}

// job is the part of a job's outcome that is kept.
type job struct {
	ID       string `json:"id"`
	Evolving bool   `json:"evolving,omitempty"`
	Start    int64  `json:"start"`
}

func (d *Done) outcome() []outcome.Job {
	jobs := make([]outcome.Job, len(d.Jobs))
	for i, j := range d.Jobs {
		jobs[i] = outcome.Job{ID: j.ID, Evolving: j.Evolving, Start: j.Start}
	}
	return jobs
}

// Folder is where outcomes are, and how traces are read.
type Folder struct {
	Path string
	More []trace.Format

	traces sync.Map // of the sweep, by number: func() (trace.Trace, error)
}

// Left returns the numbers of the cells that have no outcome yet.
func (f *Folder) Left(s *Sweep) (left []int) {
	for i, c := range s.Cells() {
		if info, err := os.Stat(filepath.Join(f.Path, s.file(c))); err != nil || !info.Mode().IsRegular() {
			left = append(left, i)
		}
	}
	return left
}

// Run runs cells, that many at a time, and writes the result of each; progress is called after
// each.
func (f *Folder) Run(ctx context.Context, s *Sweep, cells []int, workers int, progress func()) error {
	if err := os.MkdirAll(f.Path, 0o777); err != nil { //nolint:gosec // as umask has it
		return err
	}
	all := s.Cells()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var next atomic.Int64
	var group sync.WaitGroup
	for range min(workers, len(cells)) {
		group.Go(func() {
			for ctx.Err() == nil {
				i := int(next.Add(1)) - 1
				if i >= len(cells) {
					return
				}
				c := all[cells[i]]
				if err := f.one(ctx, s, c); err != nil {
					cancel(fmt.Errorf("%s, %s, share %g, seed %d, %s: %w", c.Trace, c.Shape, c.Share, c.Seed, c.Strategy, err))
					return
				}
				progress()
			}
		})
	}
	group.Wait()
	return context.Cause(ctx)
}

// one runs a cell.
func (f *Folder) one(ctx context.Context, s *Sweep, c Cell) error {
	e, left, err := f.experiment(s, c)
	if err != nil {
		return err
	}
	var r *simulate.Result
	if slices.Contains(simulate.Besides, c.Strategy) {
		r, err = e.Beside(ctx, c.Strategy)
	} else {
		r, err = e.Run(ctx)
	}
	if err != nil {
		return err
	}
	s.Power.Account(r)
	r.Fill(s.lengths)
	d := Done{Cell: c, Nodes: r.Nodes, LeftOut: left, Metrics: r.Metrics}
	for _, j := range r.Jobs {
		d.Jobs = append(d.Jobs, job{j.ID, j.Evolving, j.Start})
	}
	return wholefile.Write(filepath.Join(f.Path, s.file(c)), 0o666, func(w io.Writer) error { return json.NewEncoder(w).Encode(d) })
}

// config returns the sidecar's configuration.
func (s *Sweep) config() (config.Config, error) {
	if s.Config == "" {
		return config.Default(), nil
	}
	own := pflag.NewFlagSet("", pflag.ContinueOnError)
	config.AddFlag(own)
	if err := own.Set("config", s.Config); err != nil {
		return config.Config{}, err
	}
	c, _, err := config.Load(own)
	return c, err
}

// experiment returns a cell's experiment.
func (f *Folder) experiment(s *Sweep, c Cell) (e simulate.Experiment, left int, err error) {
	if e.Config, err = s.config(); err != nil {
		return e, 0, err
	}
	name := c.Strategy
	if slices.Contains(simulate.Besides, name) {
		name = "noX" // has nothing to do
	}
	if e.Strategy, err = planner.StrategyByName(name); err != nil {
		return e, 0, err
	}
	e.Config.Strategy = name
	e.Cluster = slurmsim.Options{CPUs: 1, Accounting: true, PermitJobExpansion: true, Seed: c.Seed}
	if s.Scheduler != "" {
		if err := e.Cluster.SetScheduler(s.Scheduler); err != nil {
			return e, 0, err
		}
	}
	once, _ := f.traces.LoadOrStore(c.trace, sync.OnceValues(func() (trace.Trace, error) { return f.read(&s.Traces[c.trace]) }))
	t, err := once.(func() (trace.Trace, error))()
	if err != nil {
		return e, 0, err
	}
	e.Cluster.Nodes = t.Header.Nodes
	s.Power.Apply(&e)
	if c.Shape == Steps {
		e.Jobs = simulate.FromTrace(t, 1, t.Header.Nodes, c.Share, c.Seed)
		return e, t.Report.Left, nil
	}
	t.Jobs = slices.Clone(t.Jobs)
	model := trace.Evolve{Share: c.Share, Shape: c.Shape, Seed: c.Seed, Shortest: 60, Speedup: s.speedup}
	for i := range t.Jobs {
		if err := model.Job(&t.Jobs[i], t.Header.Nodes); err != nil {
			return e, 0, err
		}
	}
	e.Jobs = simulate.FromTrace(t, 1, t.Header.Nodes, 0, c.Seed)
	return e, t.Report.Left, nil
}

// read reads a trace, or its part, and has it count by nodes, from second 0 on.
func (f *Folder) read(from *Trace) (trace.Trace, error) {
	file, err := os.Open(from.File)
	if err != nil {
		return trace.Trace{}, err
	}
	defer file.Close()
	o := trace.Options{AnyOrder: true, Lenient: true}
	if from.Nodes > 0 {
		o.Machine = planner.MaxNodes // what is too large for those is left out below
	}
	r, err := trace.NewReader(file, o, f.More...)
	if err != nil {
		return trace.Trace{}, fmt.Errorf("%s: %w", from.File, err)
	}
	t, err := r.ReadAll()
	if err != nil {
		return t, fmt.Errorf("%s: %w", from.File, err)
	}
	t.Report.Left += len(simulate.LeaveFar(&t, false))
	nodes := from.Nodes
	if nodes == 0 {
		if nodes = (t.Header.Machine() + from.CPUsPerNode - 1) / from.CPUsPerNode; nodes == 0 {
			return t, fmt.Errorf("%s does not tell of its machine (MaxNodes, MaxProcs); give nodes", from.File)
		}
		if t.Header.Nodes > 0 && from.CPUsPerNode > 1 {
			nodes = min(nodes, t.Header.Nodes)
		}
	}
	if nodes > simulate.MostNodes {
		return t, fmt.Errorf("%s: a machine of %d nodes; at most %d can be run: give nodes", from.File, nodes, simulate.MostNodes)
	}
	jobs, _ := t.Runnable()
	slices.SortStableFunc(jobs, func(a, b trace.Job) int { return cmp.Compare(a.Submit, b.Submit) })
	ran := len(jobs)
	jobs = slices.DeleteFunc(jobs, func(j trace.Job) bool { return (j.Size()+from.CPUsPerNode-1)/from.CPUsPerNode > nodes })
	t.Report.Left += ran - len(jobs)
	jobs = slices.Clone(jobs[min(from.Skip, len(jobs)):])
	if from.Jobs > 0 {
		jobs = jobs[:min(from.Jobs, len(jobs))]
	}
	if len(jobs) == 0 {
		return t, fmt.Errorf("%s: there is no job that ran", from.File)
	}
	first := jobs[0].Submit
	for i := range jobs {
		if from.CPUsPerNode > 1 && jobs[i].Kind() != trace.Rigid {
			return t, fmt.Errorf("%s: job %d is %s: its sizes cannot be counted by nodes of %d processors; scale the trace first, and have jobs evolve then", from.File, jobs[i].Number, jobs[i].Kind(), from.CPUsPerNode)
		}
		jobs[i].Submit -= first
		jobs[i].Processors = int64((jobs[i].Size() + from.CPUsPerNode - 1) / from.CPUsPerNode)
	}
	t.Jobs = jobs
	t.Header.Nodes, t.Header.Processors = nodes, nodes
	return t, nil
}
