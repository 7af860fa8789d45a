package simulate

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/evoslurm/evoslurm/adapter/internal/config"
	"github.com/evoslurm/evoslurm/adapter/lab/outcome"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
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
	Outages  []Outage
	Islands  []slurmctl.Switch // results tell on how many of them a job begins
	Kinds    []int             // of each node, in the order of the cluster: results have node-seconds by kind; nil: all nodes are alike

	// EveryPoll makes the sidecar poll Slurm at every interval, even if nothing can have changed.
	// The result is the same, but takes a hundred times as long.
	EveryPoll bool

	// Until is the second at which to stop; 0 for the end of all jobs. Left, if set, receives a
	// checkpoint when the run stops early, also if the context ended. The run then goes on until no
	// command is under way. Resume is a checkpoint to continue from, with the strategy Then if set.
	Until  int64
	Left   func(*Checkpoint)
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

	Limit     int64       // time limit in seconds; 0 for a minute more than it needs
	User      int         // owner: 0, 1, …
	Partition string      // "" for the default one
	First     bool        // has a higher priority than others
	Planned   bool        // submitted with evosbatch though it has one step
	Aim       planner.Aim // of its placement, if it is submitted with evosbatch
	Nice      int         // the higher, the later it starts
	CPUs      int         // of every node, for a stock job; 0 for whole nodes
}

// Evolves reports whether it is an evolving job, or planned as one.
func (s Submission) Evolves() bool {
	return s.Planned || len(s.Profile) > 1 || len(s.Alternatives) > 0 || s.Malleable() || s.Demand != nil
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
	sidecar *Sidecar // nil if no job evolves
	errs    []error
	tally
}

// tally holds what a checkpoint of a trial has besides the cluster and the sidecar.
type tally struct {
	Began     time.Time
	Subjects  []*subject
	Of        map[slurmctl.JobID]*subject // Slurm's jobs, except expanders
	Sizes     map[slurmctl.JobID]int      // that Slurm's jobs have
	Submitted int
	Active    int // Slurm's jobs
	Ended     int // of the experiment's
	LastEvent time.Duration

	Allocated int   // nodes, at present
	Used      int64 // node-microseconds so far
	Kept      []int // nodes that are held and idle, at present
	Idle      int64 // node-microseconds of such nodes
	HeldIdle  []outcome.Use
	Version   uint64
	Metered   time.Duration

	ByKind []Kind // nil without power saving and kinds of nodes
}

// subject is a job in an experiment.
type subject struct {
	*Submission `codec:"-"`
	App         *App
	Slurm       slurmctl.JobID
	Links       int // its Slurm jobs that have not ended
	Result      JobResult
	Uses        []KindUse // with kinds of nodes
}

// Run runs the experiment. It ends with the context.
func (e Experiment) Run(ctx context.Context) (*Result, error) {
	t := &trial{Experiment: &e, tally: tally{Of: map[slurmctl.JobID]*subject{}, Sizes: map[slurmctl.JobID]int{}}}
	e.Cluster.Events = t.event
	e.Config.Allow, e.Config.Deny = config.Names{}, config.Names{} // they name the site's users, not the model's
	t.cluster = slurmsim.New(e.Cluster)
	defer t.cluster.Close()
	t.Began = t.cluster.Now()
	size := t.cluster.Size()
	for i := range e.Jobs {
		s := &e.Jobs[i]
		if s.Evolves() && t.sidecar == nil {
			t.sidecar = &Sidecar{Cluster: t.cluster, Database: NewDatabase(), Config: e.Config, Strategy: e.Strategy, Skip: !e.EveryPoll}
		}
		j := &subject{Submission: s, Result: JobResult{ID: s.ID, Submit: s.Submit, Evolving: s.Evolves(), Start: -1, End: -1}}
		t.Subjects = append(t.Subjects, j)
		if why := t.never(s, size); why != "" {
			j.Result.State, j.Result.Reason = Refused, why
			t.Ended++
			t.Submitted++
			continue
		}
		t.cluster.Later(time.Duration(s.Submit)*time.Second, submits{t, j})
	}
	for i, o := range e.Outages {
		o.plan(t.cluster, i)
	}
	if err := t.start(); err != nil {
		return nil, err
	}
	t.meter()
	var stopped error
	left := false
	for step := 0; t.Ended < len(t.Subjects); step++ {
		if stopped != nil || e.Until > 0 && t.cluster.Elapsed() >= time.Duration(e.Until)*time.Second {
			if left = true; e.Left == nil || !t.cluster.Busy() {
				break
			}
		} else if step%4096 == 0 {
			if stopped = ctx.Err(); e.Progress != nil {
				e.Progress(t.Ended)
			}
		}
		if t.cluster.Elapsed() > longest {
			return nil, fmt.Errorf("after %d seconds %d of %d jobs have not ended: more cannot be run", int64(longest/time.Second), len(t.Subjects)-t.Ended, len(t.Subjects))
		}
		if t.over() || !t.advance() {
			break
		}
		t.meter()
	}
	if e.Left != nil && left && t.Ended < len(t.Subjects) {
		c, err := t.checkpoint()
		if err != nil {
			return nil, err
		}
		e.Left(c)
	}
	if err := errors.Join(append(t.errs, stopped)...); err != nil {
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
	return t.Submitted == len(t.Subjects) && t.Active == 0 && t.cluster.Elapsed()-t.LastEvent > idleFor
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
	t.Submitted++
	t.LastEvent = t.cluster.Elapsed()
	s, user := j.Submission, experimenter(j.User)
	limit, nice := time.Duration(s.Limit)*time.Second, s.Nice
	if s.First {
		nice -= mostUsers
	}
	var id slurmctl.JobID
	var err error
	if j.Links = 1; s.Evolves() {
		j.App = &App{User: user, Name: s.ID, Profile: s.Profile, ExpandLimit: s.ExpandLimit, Limit: limit, Partition: s.Partition, Alternatives: s.Alternatives, By: s.By, Aim: s.Aim, Demand: s.Demand, Asks: slurmsim.Job{Nice: nice}}
		if s.Malleable() {
			j.App.bend(s, t.cluster.Size())
		}
		if t.Config.Drive.Means().StepsAreJobs {
			j.App.Drive, j.Links = t.Config.Drive, len(s.Profile)
		}
		id, err = t.sidecar.Submit(j.App)
	} else {
		lasts := time.Duration(s.Profile[0].Duration) * time.Second
		if limit == 0 {
			limit = lasts + time.Minute
		}
		id, err = t.cluster.Submit(slurmsim.Job{Nice: nice, User: user, Name: s.ID, Script: "#!/bin/bash\n", Partition: s.Partition, Nodes: s.Profile[0].Nodes, CPUs: s.CPUs,
			TimeLimit: limit, Lasts: lasts})
	}
	if err != nil {
		j.Result.State, j.Result.Reason = Refused, err.Error()
		t.Ended++
		return
	}
	j.Slurm = id
	for i := range j.Links {
		t.Of[id+slurmctl.JobID(i)] = j
	}
}

// event handles every start, size change, and end of a Slurm job.
func (t *trial) event(e slurmsim.Event) {
	t.meter()
	at := int64(e.At.Sub(t.Began) / time.Second)
	before, known := t.Sizes[e.Job]
	t.Allocated += e.Nodes - before
	t.LastEvent = t.cluster.Elapsed()
	switch {
	case e.Nodes > 0:
		if !known {
			t.Active++
		}
		t.Sizes[e.Job] = e.Nodes
	case known:
		t.Active--
		delete(t.Sizes, e.Job)
	}
	j := t.Of[e.Job]
	if j == nil {
		return // an expander
	}
	j.use(t.Kinds, t.cluster.NodesOf(e.Job), at)
	r := &j.Result
	switch {
	case e.Nodes == 0:
		delete(t.Of, e.Job)
		r.End = at
		if r.State == "" || e.State != slurmctl.Completed {
			r.State = string(e.State)
		}
		if j.Links--; j.Links == 0 {
			t.Ended++
		}
	case r.Start < 0 && e.State != slurmctl.Configuring: // until its nodes are up
		r.Start, r.Islands = at, t.islands(e.Job)
		if j.App != nil {
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

// islands returns on how many of the experiment's islands a job is.
func (t *trial) islands(id slurmctl.JobID) int {
	job, _ := t.cluster.Record(id)
	n := 0
	for _, s := range t.Islands {
		if len(msg.Common(s.Nodes, job.NodeList)) > 0 {
			n++
		}
	}
	return n
}

// planned returns the planned sizes of a job.
func (t *trial) planned(id slurmctl.JobID) (sizes []Size) {
	j, _ := t.sidecar.Job(id)
	second := func(at time.Time) int64 { return max(int64(at.Sub(t.Began)/time.Second), 0) }
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
	if now := t.cluster.Elapsed(); now > t.Metered {
		d := now.Microseconds() - t.Metered.Microseconds()
		t.Used += d * int64(t.Allocated)
		t.Idle += d * int64(len(t.Kept))
		t.hold(outcome.Use{From: int64(t.Metered / time.Second), To: int64(now / time.Second), Nodes: len(t.Kept)})
		t.draw(d)
		t.Metered = now
	}
	t.look()
	if v := t.cluster.Version(); v != t.Version {
		t.Version, t.Kept = v, t.cluster.KeptIdle()
	}
}

// hold notes nodes that are held and idle in a period.
func (t *trial) hold(u outcome.Use) {
	last := len(t.HeldIdle) - 1
	switch {
	case u.Nodes == 0 || u.From == u.To:
	case last >= 0 && t.HeldIdle[last].To == u.From && t.HeldIdle[last].Nodes == u.Nodes:
		t.HeldIdle[last].To = u.To
	default:
		t.HeldIdle = append(t.HeldIdle, u)
	}
}

// profile returns the profile that the job got; for a malleable job, its work.
func (j *subject) profile() planner.Profile {
	if j.App != nil && !j.Malleable() {
		return j.App.Profile
	}
	return j.Profile
}

// result returns the outcome.
func (t *trial) result() *Result {
	r := &Result{Nodes: t.cluster.Size(), Strategy: t.Strategy.Name(), Jobs: make([]JobResult, len(t.Subjects)), HeldIdle: t.HeldIdle}
	if t.Then != nil {
		r.Strategy += fmt.Sprintf(", from second %d on %s", t.Resume.Second, t.Then.Name())
	}
	if t.Until > 0 && t.Ended < len(t.Subjects) {
		r.Left = int64(t.cluster.Elapsed() / time.Second)
	}
	m := &r.Metrics
	for i, j := range t.Subjects {
		one := &j.Result
		if one.State == "" {
			switch one.State = Waiting; {
			case one.Start >= 0:
				one.State = string(slurmctl.Running)
			case r.Left > 0 && one.Submit > r.Left:
				one.State = ToCome
			}
		}
		if j.App != nil {
			for _, b := range j.App.Steps {
				one.Steps = append(one.Steps, StepResult{b.Step, b.Nodes, int64(b.At / time.Second)})
			}
			if j.App.Err != nil && one.Reason == "" {
				one.Reason = j.App.Err.Error()
			}
		}
		if one.Start >= 0 {
			one.Wait = one.Start - one.Submit
		}
		one.User, one.Area = j.User, j.profile().Area()
		r.Jobs[i] = *one
	}
	r.measure(float64(t.Used)/1e6, float64(t.Idle)/1e6)
	t.share(r)
	if s := t.sidecar; s != nil {
		r.Sidecar = true
		m.Moved = slices.Sorted(maps.Values(s.Database.Moved))
		s.rested()
		m.LeftOut = s.Skipped
		m.Commands, m.Polls = s.Commands()+perPoll*m.LeftOut+s.Configs*uint64(s.Cluster.ConfigCommands()), s.Polls+m.LeftOut
		if v := s.View(); v != nil {
			reasons := map[uint32]string{}
			for _, j := range v.Jobs {
				reasons[j.ID] = j.Reason
			}
			for i, j := range t.Subjects {
				if one := &r.Jobs[i]; one.Reason == "" && one.End < 0 {
					one.Reason = reasons[uint32(j.Slurm)]
				}
			}
		}
	}
	return r
}

// perPoll is the number of commands in a poll.
const perPoll = 3
