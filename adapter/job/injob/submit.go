package injob

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/job/request"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// allocator is the part of Slurm that submits.
type allocator interface {
	Allocate(ctx context.Context, q slurmctl.AllocateRequest) (slurmctl.Job, error)
}

// mostSeconds bounds how long a submission may take.
const mostSeconds = 60

// Submitter returns what submits the jobs that bring nodes to a job, for a sidecar that may not do so itself. It accepts
// only values, from which it makes salloc's arguments itself, and only what is named as an expander of the job that the
// process asked about.
func Submitter(slurm allocator) func(context.Context, uint32, api.Submission) error {
	return func(ctx context.Context, job uint32, s api.Submission) error {
		if err := checkSubmission(job, s); err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(ctx, time.Duration(min(max(s.Seconds, 1), mostSeconds))*time.Second)
		defer cancel()
		_, err := slurm.Allocate(ctx, s.Request)
		pending, isPending := errors.AsType[*slurmctl.PendingError](err)
		switch {
		case isPending:
			return errors.New(api.PendingRefusal + pending.Reason)
		case errors.Is(err, slurmctl.ErrAccessDenied) && s.Request.Partition != "":
			return fmt.Errorf("%w; where AllocNodes= of partition %s leaves this node out, add it", err, s.Request.Partition)
		}
		return err
	}
}

// checkSubmission returns why a submission is refused, or nil. slurmctl checks the values themselves.
func checkSubmission(job uint32, s api.Submission) error {
	q, prefix := s.Request, fmt.Sprintf("evo_%d_", job)
	switch {
	case s.Job != job:
		return fmt.Errorf("the sidecar asks for nodes of job %d, and this process is of job %d", s.Job, job)
	case !strings.HasPrefix(q.Name, prefix), !strings.Contains(q.Comment, request.ExpanderMark):
		return fmt.Errorf("the sidecar asks for a job with the name %q and the comment %q, which is none of its own", q.Name, q.Comment)
	case q.Reservation != "" && !strings.HasPrefix(q.Reservation, prefix):
		return fmt.Errorf("the sidecar asks for a job in reservation %q, which is not held for job %d", q.Reservation, job)
	case q.ExpandJob != 0 && q.ExpandJob != slurmctl.JobID(job):
		return fmt.Errorf("the sidecar asks for nodes of job %d, and this process is of job %d", q.ExpandJob, job)
	}
	return nil
}
