package injob

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// salloc records what it is asked for.
type salloc struct {
	asked []slurmctl.AllocateRequest
	left  time.Duration
	err   error
}

func (s *salloc) Allocate(ctx context.Context, q slurmctl.AllocateRequest) (slurmctl.Job, error) {
	s.asked = append(s.asked, q)
	until, _ := ctx.Deadline()
	s.left = time.Until(until)
	return slurmctl.Job{}, s.err
}

// TestSubmitter checks that a process submits only what brings nodes to its own job, within bounds.
func TestSubmitter(t *testing.T) {
	good := api.Submission{Job: 7, Seconds: 10, Request: slurmctl.AllocateRequest{Nodes: 2, Name: "evo_7_2_1", Comment: "evox:v1 job 7 step 2", Reservation: "evo_7_2_2", Partition: "main"}}
	for name, c := range map[string]struct {
		change func(*api.Submission)
		err    error
		want   string
	}{
		"as it should be":          {func(*api.Submission) {}, nil, ""},
		"to be merged":             {func(s *api.Submission) { s.Request.ExpandJob = 7 }, nil, ""},
		"for very long":            {func(s *api.Submission) { s.Seconds = 1 << 40 }, nil, ""},
		"for another job":          {func(s *api.Submission) { s.Job = 8 }, nil, "of job 8"},
		"under another name":       {func(s *api.Submission) { s.Request.Name = "evo_70_2_1" }, nil, "none of its own"},
		"without the mark":         {func(s *api.Submission) { s.Request.Comment = "" }, nil, "none of its own"},
		"in another's reservation": {func(s *api.Submission) { s.Request.Reservation = "maint" }, nil, "maint"},
		"to expand another job":    {func(s *api.Submission) { s.Request.ExpandJob = 8 }, nil, "of job 8"},
		"pending":                  {func(*api.Submission) {}, &slurmctl.PendingError{Reason: "AssocGrpNodeLimit", Err: errors.New("x")}, api.PendingRefusal + "AssocGrpNodeLimit"},
		"where nodes may not":      {func(*api.Submission) {}, &slurmctl.CommandError{Args: []string{"salloc"}, ExitCode: 1, Stderr: "Access/permission denied"}, "AllocNodes= of partition main"},
	} {
		slurm, s := &salloc{err: c.err}, good
		c.change(&s)
		err := Submitter(slurm)(t.Context(), 7, s)
		text := ""
		if err != nil {
			text = err.Error()
		}
		if !strings.Contains(text, c.want) || (c.want == "") != (err == nil) {
			t.Errorf("%s: %q, want %q", name, text, c.want)
		}
		if tried := len(slurm.asked) > 0; tried != (c.err != nil || c.want == "") || slurm.left > mostSeconds*time.Second {
			t.Errorf("%s: submitted %+v within %v", name, slurm.asked, slurm.left)
		}
	}
}
