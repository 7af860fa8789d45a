package drive

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// queue is a Slurm with some jobs of a name.
type queue struct {
	Slurm
	jobs      []slurmctl.Job
	cancelled []slurmctl.JobID
}

func (q *queue) Named(context.Context, uint32, string) ([]slurmctl.Job, error) { return q.jobs, nil }

func (q *queue) Cancel(_ context.Context, ids ...slurmctl.JobID) error {
	q.cancelled = append(q.cancelled, ids...)
	return nil
}

// TestSubmitted checks which job counts as the one that a process of the job was asked to submit, whatever it reports.
func TestSubmitted(t *testing.T) {
	good := slurmctl.Job{ID: 9, State: slurmctl.Running, Reservation: "evo_7_2_1", NodeList: []string{"n3", "n4"}}
	with := func(change func(*slurmctl.Job)) slurmctl.Job {
		k := good
		change(&k)
		return k
	}
	other := with(func(k *slurmctl.Job) { k.ID = 10 })
	for name, c := range map[string]struct {
		jobs    []slurmctl.Job
		refusal string
		want    string // of the error
		limited bool
		cancels int
	}{
		"as asked":                       {jobs: []slurmctl.Job{good}},
		"as asked, and reported refused": {jobs: []slurmctl.Job{good}, refusal: "no"},
		"still pending":                  {jobs: []slurmctl.Job{with(func(k *slurmctl.Job) { k.State, k.NodeList = slurmctl.Pending, nil })}},
		"twice":                          {jobs: []slurmctl.Job{other, good}},
		"never":                          {want: "did not submit"},
		"ended again":                    {jobs: []slurmctl.Job{with(func(k *slurmctl.Job) { k.State = slurmctl.Cancelled })}, want: "did not submit"},
		"refused":                        {refusal: "salloc: Job submit/allocate failed: Requested node configuration is not available", want: "reports: salloc"},
		"at a limit":                     {refusal: "Job submit/allocate failed: Job violates accounting/QOS policy (x); y", want: "policy", limited: true},
		"in an outage":                   {refusal: "salloc: error: Unable to contact slurm controller (connect failure)", want: "Unable to contact"},
		"pending at a limit":             {refusal: api.PendingRefusal + "AssocGrpNodeLimit", want: "AssocGrpNodeLimit", limited: true},
		"beside the hold":                {jobs: []slurmctl.Job{with(func(k *slurmctl.Job) { k.Reservation = "" })}, want: "was to bring", cancels: 1},
		"on fewer nodes":                 {jobs: []slurmctl.Job{with(func(k *slurmctl.Job) { k.NodeList = []string{"n3"} })}, want: "was to bring", cancels: 1},
		"on others":                      {jobs: []slurmctl.Job{with(func(k *slurmctl.Job) { k.NodeList = []string{"n3", "n5"} })}, want: "was to bring", cancels: 1},
	} {
		slurm := &queue{jobs: c.jobs}
		g := &growth{Driver: &Driver{Slurm: slurm}, Grow: msg.Grow{As: 1001, Name: "evo_7_2_2", Hold: "evo_7_2_1", Nodes: []string{"n3", "n4"}, Refusal: c.refusal}}
		k, err := g.submitted(t.Context())
		if (c.want == "") != (err == nil && k.ID == 9) || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: job %d, %v; want %q", name, k.ID, err, c.want)
		}
		if errors.Is(err, slurmctl.ErrUnreachable) {
			t.Errorf("%s: a user's word makes an outage of slurmctld, which is waited for without end: %v", name, err)
		}
		if _, limited := slurmctl.Limited(err); limited != c.limited || len(slurm.cancelled) != c.cancels {
			t.Errorf("%s: limited %v, cancelled %v (%v)", name, limited, slurm.cancelled, errors.Unwrap(err))
		}
	}
}
