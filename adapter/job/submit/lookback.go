package submit

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/evoslurm/evoslurm/adapter/internal/getopt"
	"github.com/evoslurm/evoslurm/adapter/internal/legible"
	"github.com/evoslurm/evoslurm/adapter/job/request"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// parkedAhead is how far ahead the begin time of a job lies, at least, that waits for
// Evoslurm (ParkedUntil).
const parkedAhead = 5 * 365 * 24 * time.Hour

// sender submits jobs by sbatch, and sees that they still carry their requests.
type sender struct {
	sbatch
	site site
}

// lookBack checks that a new job still carries its request in its comment or script. If not, the
// job would wait forever, so it is cancelled.
func (s sender) lookBack(ctx context.Context, r submission, want request.Request, id slurmctl.JobID) error {
	if ctx.Err() != nil || s.site.cluster == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	unknown := func(err error) error {
		fmt.Fprintf(s.stderr, "evosbatch: warning: what this site's plugins have made of job %d is not known: %v\n", id, err)
		return nil
	}
	jobs, err := s.site.cluster.Glance(ctx, id)
	if err != nil {
		return unknown(err)
	}
	if len(jobs) == 0 || jobs[0].State != slurmctl.Pending {
		return nil // it runs already, or has ended
	}
	job := jobs[0]
	if err := s.site.checkMoved(ctx, r, want, job); err != nil {
		return s.takeBack(ctx, id, err)
	}
	if marks(job.Comment, want) {
		return s.mayGrow(ctx, want, id)
	}
	text, err := s.site.cluster.BatchScript(ctx, id)
	var none *slurmctl.CommandError
	if err != nil && (!errors.As(err, &none) || none.ExitCode != 0) {
		return unknown(err)
	}
	inScript := carries([]byte(text), want)
	if inScript && job.StartTime.After(time.Now().Add(parkedAhead)) {
		return s.mayGrow(ctx, want, id)
	}
	return s.takeBack(ctx, id, r.lost(want, job, inScript))
}

// marks reports whether a comment carries the request, or says that the script does.
func marks(comment string, want request.Request) bool {
	got, asked, err := request.ParseMarker(comment)
	return asked && err == nil && (got.Same(want) || got.Profile == nil)
}

// lost returns the error for a job that plugins have changed so that Evoslurm would not know it.
func (r submission) lost(want request.Request, job slurmctl.Job, inScript bool) error {
	why, remedy := "neither its comment nor its script says what it asked for any more", "ask your administrators to leave the part of comments that begins with evo: and ends in ;; as it is"
	switch cannot := r.cannotCarry(); {
	case inScript:
		why, remedy = "its comment and its begin time are not as they were submitted", "ask your administrators to leave one of them as it is"
	case cannot != "":
		why, remedy = "its comment does not say what it asked for any more, and "+cannot, "write the request into the script, as #EVO --profile="+legible.Brief(want.Profile.String())
	}
	return fmt.Errorf("this site's submission plugins have changed job %d: %s (the comment is now %q). Evoslurm would never start it; %s", job.ID, why, legible.Brief(job.Comment), remedy)
}

// checkMoved checks a new job as what plugins have made of it.
func (s site) checkMoved(ctx context.Context, r submission, want request.Request, job slurmctl.Job) error {
	moved := r.doubt != nil
	r.doubt, r.options.become = nil, nil
	for _, now := range [][2]string{{"partition", job.Partition}, {"account", job.Account}, {"qos", job.QOS}} {
		if moved = moved || now[1] != r.options.value(now[0]); now[1] != "" {
			r.options.become = append(r.options.become, getopt.Option{Name: now[0], Value: now[1], HasValue: true})
		}
	}
	if !s.movesJobs(ctx) || !moved && r.request.Malleable == nil {
		return nil
	}
	if link := want.Chain; link != nil { // each of its jobs may be moved elsewhere
		r.request.Profile = r.request.Profile[link.Step-1 : link.Step]
	}
	s.placed, s.cuts, s.stderr = true, s.stderr, io.Discard // the rest was said already
	check := s.fit
	if r.request.Moldable != nil {
		check = s.checkAlternatives
	}
	_, err := check(ctx, r)
	if err == nil {
		err = s.allowed(ctx, r.options)
	}
	if err != nil {
		return fmt.Errorf("in partition %s, account %s and QOS %s, where Slurm has put job %d: %w", orNone(job.Partition), orNone(job.Account), orNone(job.QOS), job.ID, err)
	}
	return nil
}

// mayGrow sees that the site lets the job that was just submitted grow. Otherwise, the job is
// cancelled.
func (s sender) mayGrow(ctx context.Context, want request.Request, id slurmctl.JobID) error {
	slurm, ok := s.site.cluster.(interface {
		Request(context.Context, slurmctl.JobID, slurmctl.Config) (slurmctl.JobRequest, error)
		MayAllocate(context.Context, slurmctl.AllocateRequest) error
	})
	grows := want.Whole()
	if !ok || want.Chain != nil || request.MostAtOnce(grows) == 0 {
		return nil
	}
	var asked slurmctl.JobRequest
	cfg, err := s.site.cluster.Config(ctx)
	if err == nil {
		asked, err = slurm.Request(ctx, id, cfg)
	}
	if gres, bad := asked.GRESPerNode(grows[0].Nodes); err == nil && bad == nil { // otherwise the sidecar asks again
		if why := request.MayGrow(ctx, slurm, asked, request.MostAtOnce(grows), gres, nil); why != nil {
			return s.takeBack(ctx, id, why)
		}
	}
	return nil
}

// takeBack cancels a job because of err.
func (s sender) takeBack(ctx context.Context, id slurmctl.JobID, err error) error {
	if failed := s.site.cluster.Cancel(ctx, id); failed != nil {
		return fmt.Errorf("%w. Cancelling it failed (%v): scancel %d", err, failed, id)
	}
	return fmt.Errorf("%w. The job is cancelled", err)
}
