package simulate

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/evoslurm/evoslurm/adapter/internal/config"
	"github.com/evoslurm/evoslurm/adapter/internal/drivemode"
	"github.com/evoslurm/evoslurm/planner"
	"github.com/evoslurm/evoslurm/planner/malleable"
	"github.com/evoslurm/evoslurm/slurmctl"
	"github.com/evoslurm/evoslurm/slurmctl/slurmsim"
)

// Experiment is a workload on a cluster with a sidecar.
type Experiment struct {
	Cluster  slurmsim.Options // Cluster.Events belongs to the experiment
	Jobs     []Submission
	Config   config.Config
	Strategy planner.Strategy

	// EveryPoll makes the sidecar poll Slurm at every interval, even if nothing can have changed.
	// The result is the same, but takes a hundred times as long.
	EveryPoll bool

	// Until is the second at which to stop; 0 for the end of all jobs. Left, if set, receives the
	// point at which the run stopped, also if the context ended. Resume is an earlier stopping
	// point: the run goes there, checks that the jobs' outcome is the same, and continues, with the
	// strategy Then if set.
	Until  int64
	Left   func(Checkpoint)
	Resume *Checkpoint
	Then   planner.Strategy

	// Progress, if set, is called now and then with the number of ended jobs.
	Progress func(ended int)
}

// Submission is a job to submit. It is evolving if it has several steps or asks for more nodes, and
// a stock job if it has a single step and is neither moldable nor malleable.
type Submission struct {
	ID          string
	Submit      int64 // seconds from the start
	Profile     planner.Profile
	ExpandLimit planner.ExpandLimit // 0 for the site's

	Alternatives []planner.Profile // of a moldable job; Profile is the first
	By           planner.Preference

	// Least and Most are the bounds of a malleable job; 0 for other jobs. Its Profile is one step:
	// its size as a rigid job, and its duration there. Speedup is its speed on other sizes; nil for
	// n times as fast on n nodes.
	Least, Most int
	Speedup     malleable.Speedup

	Demand *Demand // of a job with one step that asks for more nodes

	Limit     int64  // time limit in seconds; 0 for a minute more than it needs
	User      int    // owner: 0, 1, …
	Partition string // "" for the default one
	First     bool   // stock job with a higher priority than others
}

// Evolves reports whether it is an evolving job.
func (s Submission) Evolves() bool {
	return len(s.Profile) > 1 || len(s.Alternatives) > 0 || s.Malleable() || s.Demand != nil
}

// Malleable reports whether it is a malleable job.
func (s Submission) Malleable() bool { return s.Most > 0 }

// Bounds of experiments.
const (
	// idleFor is how long nothing may run or start, once all jobs are submitted, before waiting
	// jobs count as waiting forever.
	idleFor = 24 * time.Hour
)

// longest bounds the duration of an experiment: clocks cannot count nanoseconds beyond twice that.
var longest = 2 * planner.MaxDuration * time.Second

// trial is a running experiment.
type trial struct {
	*Experiment
	cluster *slurmsim.Cluster
	began   time.Time
	sidecar *Sidecar // nil if no job evolves

	jobs      []*subject
	of        map[slurmctl.JobID]*subject // Slurm's jobs, except expanders
	nodes     map[slurmctl.JobID]int      // that Slurm's jobs have
	submitted int
	running   int // Slurm's jobs
	ended     int // of the experiment's
	lastEvent time.Duration

	allocated int   // nodes, at present
	used      int64 // node-microseconds so far
	kept      int
	idle      int64 // node-microseconds of nodes that are held and idle
	version   uint64
	metered   time.Duration
	errs      []error
}

// subject is a job in an experiment.
type subject struct {
	*Submission
	app    *App
	id     slurmctl.JobID
	links  int // its Slurm jobs that have not ended
	result JobResult
}

// Run runs the experiment. It ends with the context.
func (e Experiment) Run(ctx context.Context) (*Result, error) {
	t := &trial{Experiment: &e, of: map[slurmctl.JobID]*subject{}, nodes: map[slurmctl.JobID]int{}}
	e.Cluster.Events = t.event
	t.cluster = slurmsim.New(e.Cluster)
	defer t.cluster.Close()
	t.began = t.cluster.Now()
	size := t.cluster.Size()
	for i := range e.Jobs {
		s := &e.Jobs[i]
		if s.Evolves() && t.sidecar == nil {
			t.sidecar = &Sidecar{Cluster: t.cluster, Database: NewDatabase(), Config: e.Config, Strategy: e.Strategy, Skip: !e.EveryPoll}
		}
		j := &subject{Submission: s, result: JobResult{ID: s.ID, Submit: s.Submit, Evolving: s.Evolves(), Start: -1, End: -1}}
		t.jobs = append(t.jobs, j)
		if why := t.never(s, size); why != "" {
			j.result.State, j.result.Reason = Refused, why
			t.ended++
			t.submitted++
			continue
		}
		t.cluster.Later(time.Duration(s.Submit)*time.Second, submits{t, j})
	}
	if t.sidecar != nil {
		t.sidecar.Start()
	}
	left := func(step int) {
		if e.Left != nil {
			e.Left(t.checkpoint(step))
		}
	}
	step := 0
	for ; t.ended < len(t.jobs); step++ {
		if err := t.resumed(step); err != nil {
			return nil, err
		}
		if e.Until > 0 && t.cluster.Elapsed() >= time.Duration(e.Until)*time.Second {
			left(step)
			break
		}
		if step%4096 == 0 {
			if err := ctx.Err(); err != nil {
				left(step)
				return nil, err
			}
			if e.Progress != nil {
				e.Progress(t.ended)
			}
		}
		if t.cluster.Elapsed() > longest {
			return nil, fmt.Errorf("after %d seconds %d of %d jobs have not ended: more cannot be run", int64(longest/time.Second), len(t.jobs)-t.ended, len(t.jobs))
		}
		if t.over() || !t.advance() {
			break
		}
		t.meter()
	}
	if e.Resume != nil && step < e.Resume.Step {
		return nil, NotTheSame{e.Resume.Second}
	}
	if err := errors.Join(t.errs...); err != nil {
		return nil, err
	}
	return t.result(), nil
}

// never returns why a job cannot run, as evosbatch or sbatch would say; "" if it can.
func (t *trial) never(s *Submission, size int) string {
	if s.Malleable() {
		return t.neverMalleable(s, size)
	}
	if n := s.Profile.Peak(); n > size && len(s.Alternatives) == 0 {
		return fmt.Sprintf("it asks for %d nodes, the cluster has %d", n, size)
	}
	if !s.Evolves() {
		return ""
	}
	kept := s.Alternatives[:0:0]
	why := ""
	for _, p := range s.Alternatives {
		if n := p.Peak(); n > size {
			why = fmt.Sprintf("it asks for %d nodes, the cluster has %d", n, size)
		} else {
			kept = append(kept, p)
		}
	}
	if s.Alternatives = kept; len(kept) > 0 {
		return ""
	}
	return why
}

// advance runs the next event.
func (t *trial) advance() bool {
	if t.sidecar != nil {
		return t.sidecar.Advance()
	}
	return t.cluster.Step()
}

// over reports whether nothing more will happen.
func (t *trial) over() bool {
	return t.submitted == len(t.jobs) && t.running == 0 && t.cluster.Elapsed()-t.lastEvent > idleFor
}

// submits is the submission of a job.
type submits struct {
	T *trial
	J *subject
}

// Act implements slurmsim.Action.
func (s submits) Act(*slurmsim.Cluster) { s.T.submit(s.J) }

// submit submits a job.
func (t *trial) submit(j *subject) {
	t.submitted++
	t.lastEvent = t.cluster.Elapsed()
	s, user := j.Submission, experimenter(j.User)
	limit := time.Duration(s.Limit) * time.Second
	var id slurmctl.JobID
	var err error
	if j.links = 1; s.Evolves() {
		j.app = &App{User: user, Name: s.ID, Profile: s.Profile, ExpandLimit: s.ExpandLimit, Limit: limit, Partition: s.Partition, Alternatives: s.Alternatives, By: s.By, Demand: s.Demand}
		if s.Malleable() {
			j.app.bend(s, t.cluster.Size())
		}
		if t.Config.Drive == drivemode.Chain {
			j.app.Drive, j.links = drivemode.Chain, len(s.Profile)
		}
		id, err = t.sidecar.Submit(j.app)
	} else {
		lasts := time.Duration(s.Profile[0].Duration) * time.Second
		if limit == 0 {
			limit = lasts + time.Minute
		}
		nice := 0
		if s.First {
			nice = -mostUsers
		}
		id, err = t.cluster.Submit(slurmsim.Job{Nice: nice, User: user, Name: s.ID, Script: "#!/bin/bash\n", Partition: s.Partition, Nodes: s.Profile[0].Nodes,
			TimeLimit: limit, Lasts: lasts})
	}
	if err != nil {
		j.result.State, j.result.Reason = Refused, err.Error()
		t.ended++
		return
	}
	j.id = id
	for i := range j.links {
		t.of[id+slurmctl.JobID(i)] = j
	}
}

// event handles every start, size change, and end of a Slurm job.
func (t *trial) event(e slurmsim.Event) {
	t.meter()
	at := int64(e.At.Sub(t.began) / time.Second)
	before, known := t.nodes[e.Job]
	t.allocated += e.Nodes - before
	t.lastEvent = t.cluster.Elapsed()
	switch {
	case e.Nodes > 0:
		if !known {
			t.running++
		}
		t.nodes[e.Job] = e.Nodes
	case known:
		t.running--
		delete(t.nodes, e.Job)
	}
	j := t.of[e.Job]
	if j == nil {
		return // an expander
	}
	r := &j.result
	switch {
	case e.Nodes == 0:
		delete(t.of, e.Job)
		r.End = at
		if r.State == "" || e.State != slurmctl.Completed {
			r.State = string(e.State)
		}
		if j.links--; j.links == 0 {
			t.ended++
		}
	case r.Start < 0:
		r.Start = at
		if j.app != nil {
			r.Planned = t.planned(e.Job)
		}
	}
	if n := len(r.Sizes); e.Nodes > 0 || n > 0 && r.Sizes[n-1].Nodes > 0 {
		if n > 0 && r.Sizes[n-1].At == at {
			r.Sizes[n-1].Nodes = e.Nodes
		} else if n == 0 || r.Sizes[n-1].Nodes != e.Nodes {
			r.Sizes = append(r.Sizes, Size{At: at, Nodes: e.Nodes})
		}
	}
}

// planned returns the planned sizes of a job.
func (t *trial) planned(id slurmctl.JobID) (sizes []Size) {
	j, _ := t.sidecar.Job(id)
	second := func(at time.Time) int64 { return max(int64(at.Sub(t.began)/time.Second), 0) }
	for k, s := range j.Plan {
		sizes = append(sizes, Size{At: second(s.Start), Nodes: s.Nodes})
		if k+1 == len(j.Plan) {
			sizes = append(sizes, Size{At: second(s.End)})
		}
	}
	return sizes
}

// meter counts node-seconds until now.
func (t *trial) meter() {
	if now := t.cluster.Elapsed(); now > t.metered {
		d := now.Microseconds() - t.metered.Microseconds()
		t.used += d * int64(t.allocated)
		t.idle += d * int64(t.kept)
		t.metered = now
	}
	if v := t.cluster.Version(); v != t.version {
		t.version, t.kept = v, t.cluster.KeptIdle()
	}
}

// profile returns the profile that the job got; for a malleable job, its work.
func (j *subject) profile() planner.Profile {
	if j.app != nil && !j.Malleable() {
		return j.app.Profile
	}
	return j.Profile
}

// result returns the outcome.
func (t *trial) result() *Result {
	r := &Result{Nodes: t.cluster.Size(), Strategy: t.Strategy.Name(), Jobs: make([]JobResult, len(t.jobs))}
	if t.Then != nil {
		r.Strategy += fmt.Sprintf(", from second %d on %s", t.Resume.Second, t.Then.Name())
	}
	if t.Until > 0 && t.ended < len(t.jobs) {
		r.Left = int64(t.cluster.Elapsed() / time.Second)
	}
	m := &r.Metrics
	for i, j := range t.jobs {
		one := &j.result
		if one.State == "" {
			switch one.State = Waiting; {
			case one.Start >= 0:
				one.State = string(slurmctl.Running)
			case r.Left > 0 && one.Submit > r.Left:
				one.State = ToCome
			}
		}
		if j.app != nil {
			for _, b := range j.app.Steps {
				one.Steps = append(one.Steps, StepResult{b.Step, b.Nodes, int64(b.At / time.Second)})
			}
			if j.app.Err != nil && one.Reason == "" {
				one.Reason = j.app.Err.Error()
			}
		}
		if one.Start >= 0 {
			one.Wait = one.Start - one.Submit
		}
		one.User, one.Area = j.User, j.profile().Area()
		r.Jobs[i] = *one
	}
	r.measure(float64(t.used)/1e6, float64(t.idle)/1e6)
	if s := t.sidecar; s != nil {
		r.Sidecar = true
		s.rested()
		m.LeftOut = s.skipped
		m.Commands, m.Polls = s.Commands()+perPoll*m.LeftOut+s.configs, s.Polls+m.LeftOut
		if v := s.View(); v != nil {
			reasons := map[uint32]string{}
			for _, j := range v.Jobs {
				reasons[j.ID] = j.Reason
			}
			for i, j := range t.jobs {
				if one := &r.Jobs[i]; one.Reason == "" && one.End < 0 {
					one.Reason = reasons[uint32(j.id)]
				}
			}
		}
	}
	return r
}

// perPoll is the number of commands in a poll.
const perPoll = 3
