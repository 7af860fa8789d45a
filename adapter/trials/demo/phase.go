package demo

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
	"time"

	"github.com/evoslurm/evoslurm/adapter/internal/drivemode"
	"github.com/evoslurm/evoslurm/slurmctl"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest"
)

// result is one job's result in a phase.
type result struct {
	Job
	id        uint32
	owner     string
	submitted time.Time
	endState  string
	drive     string
	promised  time.Time // the start that was planned first
	planned   []planned // an evolving job's plan when it started
	trace     trace
}

// planned is a step of a plan.
type planned struct {
	start, end time.Time
	nodes      int
}

// outcome is the outcome of all jobs in a phase.
type outcome struct {
	title     string
	nodes     int // of the cluster
	jobs      []*result
	leftovers slurmtest.Leftovers
}

// begin returns when the first job was submitted.
func (o outcome) begin() time.Time { return o.jobs[0].submitted }

// makespan returns the time from the first submission until the last job's end.
func (o outcome) makespan() time.Duration {
	var last time.Time
	for _, r := range o.jobs {
		if r.trace.end.After(last) {
			last = r.trace.end
		}
	}
	if last.IsZero() {
		return 0
	}
	return last.Sub(o.begin())
}

// phase runs all jobs once: evolving ones evolving, or rigid at their peaks.
type phase struct {
	lab   *lab
	drive drivemode.Mode
	rigid bool
	name  string // of its traces
	watch *watch
}

// phaseTime bounds a phase: what takes so long hangs.
const phaseTime = 5 * time.Minute

// run submits the jobs, each at its time, and waits until all have ended and
// Slurm is clean.
func (p *phase) run(ctx context.Context, jobs []Job) (outcome, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, phaseTime, fmt.Errorf("the jobs have not ended after %v", phaseTime))
	defer cancel()
	begin := time.Now()
	out := outcome{title: p.watch.title, nodes: p.lab.cluster.Options().Nodes}
	for next := 0; ; {
		for ; next < len(jobs) && time.Since(begin) >= jobs[next].After; next++ {
			r, err := p.submit(ctx, jobs[next])
			if err != nil {
				return out, err
			}
			out.jobs = append(out.jobs, r)
			p.watch.add(r)
		}
		if err := p.lab.alive(); err != nil {
			return out, err
		}
		over, err := p.watch.look(ctx)
		if err != nil && ctx.Err() == nil {
			return out, err
		}
		if over && next == len(jobs) {
			break
		}
		select {
		case <-ctx.Done():
			return out, context.Cause(ctx)
		case <-time.After(p.watch.interval):
		}
	}
	if err := p.clean(ctx, &out); err != nil {
		return out, err
	}
	return out, p.collect(&out)
}

// submit submits a job as its user would.
func (p *phase) submit(ctx context.Context, j Job) (*result, error) {
	u := p.lab.user(j.User)
	r := &result{Job: j, owner: u.Name}
	profile := j.Profile
	command, args := "sbatch", []string{}
	switch {
	case j.Evolving && !p.rigid:
		command = p.lab.path("bin", "evosbatch")
		args = append(args, "--profile="+profile.String(), "--drive="+string(p.drive))
		if j.Limit != 0 {
			args = append(args, "--expand-limit="+j.Limit.String())
		}
	default:
		if j.Evolving {
			profile = j.rigid()
		}
		limit := (profile.Duration() + 59) / 60 // in minutes: as tight as Slurm has it
		args = append(args, "--nodes="+strconv.Itoa(profile[0].Nodes), "--exclusive", "--time="+strconv.FormatInt(limit, 10))
	}
	trace := p.lab.path("traces", u.Name, p.name+"-"+j.Name)
	args = append(args, "--parsable", "--job-name="+j.Name, "--output="+trace+".out", p.lab.path("job.sh"), trace)
	for _, s := range profile {
		args = append(args, strconv.FormatInt(s.Duration, 10))
	}
	r.submitted = time.Now()
	text, err := p.lab.run(ctx, u, command, args...)
	if err != nil {
		return nil, err
	}
	id, err := strconv.ParseUint(strings.TrimSpace(text), 10, 32)
	if err != nil {
		return nil, fmt.Errorf("%s printed %q instead of a job's number", command, text)
	}
	r.id = uint32(id)
	return r, nil
}

// cleanTime is how long Slurm and the sidecar may take to clean up after the last job.
const cleanTime = 15 * time.Second

// clean waits until nothing is left in Slurm; what is left all the same is noted.
func (p *phase) clean(ctx context.Context, out *outcome) error {
	deadline := time.Now().Add(cleanTime)
	for {
		left, err := p.lab.cluster.Leftovers(ctx)
		if err != nil {
			return err
		}
		if out.leftovers = left; left.None() || time.Now().After(deadline) {
			return nil
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// collect reads the traces, and how the jobs ended by Slurm's word.
func (p *phase) collect(out *outcome) error {
	ids := make([]slurmctl.JobID, len(out.jobs))
	for i, r := range out.jobs {
		ids[i] = slurmctl.JobID(r.id)
	}
	ctx, cancel := context.WithTimeout(context.Background(), stopTime)
	defer cancel()
	records, err := p.lab.cluster.Client().JobsByID(ctx, ids...)
	if err != nil {
		return err
	}
	for _, r := range out.jobs {
		for _, record := range records {
			if uint32(record.ID) == r.id {
				r.endState = string(record.State)
			}
		}
		r.trace, err = readTrace(p.lab.path("traces", r.owner, p.name+"-"+r.Name))
		if err != nil && !errors.Is(err, fs.ErrNotExist) { // a job that never ran has none
			return err
		}
	}
	return nil
}
