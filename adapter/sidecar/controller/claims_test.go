package controller_test

import (
	"fmt"
	"testing"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/job/request"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest"
)

// TestClaims is the paper's section 2 on a real Slurm, on demand: two applications have half of the
// cluster each and will want more than half. The second does not begin before the first has ended,
// and each gets what it asks for.
func TestClaims(t *testing.T) {
	t.Parallel()
	l := newLab(t, slurmtest.Options{Accounting: true, PermitJobExpansion: true})
	claim := func(nodes int) uint32 { return l.submitSpec(request.Request{MaxNodes: nodes}, "4@10m") }
	l.run("half clusters", func(l *lab) {
		first := claim(6)
		l.running(first, 1)
		second := claim(6)
		l.eventually("the second one waits", func() error {
			job, err := l.Job(l.ctx(), second)
			if err == nil && (job.Reason != "waits for other jobs with claims: all could come to wait for each other's nodes" || job.Claim != 6) {
				err = fmt.Errorf("%s: %s, claim %d", job.State, job.Reason, job.Claim)
			}
			return err
		})
		l.has(*l.accepted(first, api.ChangeRequest{From: 1, Grow: &api.Grow{Nodes: 2}}).Has, 6)
		if a := l.changes(first, api.ChangeRequest{From: 2, Grow: &api.Grow{Nodes: 1}}); a.Accepted {
			t.Errorf("it grows beyond its claim: %+v", a)
		}
		if job, err := l.Job(l.ctx(), second); err != nil || job.State != "queued" {
			t.Errorf("the second one is %s (%v)", job.State, err)
		}
		l.cancel(first)
		l.ended(first)
		l.running(second, 1)
		l.has(*l.accepted(second, api.ChangeRequest{From: 1, Grow: &api.Grow{Nodes: 2}}).Has, 6)
		l.cancel(second)
		l.ended(second)
	})
	l.run("beyond the cluster", func(l *lab) {
		id := claim(9)
		l.eventually("it is refused", func() error {
			job, err := l.Job(l.ctx(), id)
			if err == nil && job.Reason[:min(len(job.Reason), 8)] != "refused:" {
				err = fmt.Errorf("%s: %s", job.State, job.Reason)
			}
			return err
		})
		l.cancel(id)
	})
}
