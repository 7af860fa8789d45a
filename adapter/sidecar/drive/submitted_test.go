package drive

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// queue is a Slurm with some jobs of a name.
type queue struct {
	Slurm
	jobs      []slurmctl.Job
	later     []slurmctl.Job
	cancelled []slurmctl.JobID
}

func (q *queue) Named(context.Context, uint32, string) ([]slurmctl.Job, error) { return q.jobs, nil }

func (q *queue) Cancel(_ context.Context, ids ...slurmctl.JobID) error {
	q.cancelled = append(q.cancelled, ids...)
	return nil
}

func (q *queue) Glance(context.Context, ...slurmctl.JobID) ([]slurmctl.Job, error) {
	return q.later, nil
}

// TestSubmitted checks which job counts as the one that a process of the job was asked to submit, whatever it reports.
func TestSubmitted(t *testing.T) {
	good := slurmctl.Job{ID: 9, State: slurmctl.Running, Reservation: "evo_7_2_1", NodeList: []string{"n3", "n4"}, UID: 1001,
		Account: "proj", QOS: "normal", Partition: "main", TimeLimit: 5 * time.Minute}
	with := func(change func(*slurmctl.Job)) slurmctl.Job {
		k := good
		change(&k)
		return k
	}
	other := with(func(k *slurmctl.Job) { k.ID = 10 })
	for name, c := range map[string]struct {
		jobs    []slurmctl.Job
		change  func(*growth)
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
		"beside the hold":                {jobs: []slurmctl.Job{with(func(k *slurmctl.Job) { k.Reservation = "" })}, want: "from reservation", cancels: 1},
		"on fewer nodes":                 {jobs: []slurmctl.Job{with(func(k *slurmctl.Job) { k.NodeList = []string{"n3"} })}, want: "from reservation", cancels: 1},
		"on others":                      {jobs: []slurmctl.Job{with(func(k *slurmctl.Job) { k.NodeList = []string{"n3", "n5"} })}, want: "from reservation", cancels: 1},
		"for longer":                     {jobs: []slurmctl.Job{with(func(k *slurmctl.Job) { k.TimeLimit = time.Hour })}, want: "its time limit is 1h0m0s, not 5m0s", cancels: 1},
		"without a limit":                {jobs: []slurmctl.Job{with(func(k *slurmctl.Job) { k.TimeLimit = slurmctl.Unlimited })}, want: "it has no time limit", cancels: 1},
		"for less":                       {jobs: []slurmctl.Job{with(func(k *slurmctl.Job) { k.TimeLimit = time.Minute })}},
		"merged, with the job's limit":   {jobs: []slurmctl.Job{with(func(k *slurmctl.Job) { k.TimeLimit = time.Hour })}, change: func(g *growth) { g.Merge = true }},
		"by another account":             {jobs: []slurmctl.Job{with(func(k *slurmctl.Job) { k.Account = "free" })}, change: func(g *growth) { g.Moved = true }, want: `its account is "free", not "proj"`, cancels: 1},
		"by another QOS":                 {jobs: []slurmctl.Job{with(func(k *slurmctl.Job) { k.QOS = "free" })}, want: `its QOS is "free"`, cancels: 1},
		"in another partition":           {jobs: []slurmctl.Job{with(func(k *slurmctl.Job) { k.Partition = "free" })}, want: `its partition is "free"`, cancels: 1},
		"moved by a plugin":              {jobs: []slurmctl.Job{with(func(k *slurmctl.Job) { k.QOS, k.Partition = "large", "large" })}, change: func(g *growth) { g.Moved = true }},
	} {
		slurm := &queue{jobs: c.jobs}
		g := &growth{Driver: &Driver{Slurm: slurm}, Grow: msg.Grow{As: 1001, Name: "evo_7_2_2", Hold: "evo_7_2_1", Nodes: []string{"n3", "n4"}, Refusal: c.refusal,
			Request: slurmctl.AllocateRequest{Account: "proj", QOS: "normal", Partition: "main", TimeLimit: 5 * time.Minute}}}
		if c.change != nil {
			c.change(g)
		}
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

// TestChangedWhilePending: a job that was as asked for while it waited, and was changed since, is cancelled once it runs.
func TestChangedWhilePending(t *testing.T) {
	k := slurmctl.Job{ID: 9, State: slurmctl.Pending, Reservation: "evo_7_2_1", UID: 1001, TimeLimit: 5 * time.Minute}
	later := k
	later.State, later.NodeList, later.TimeLimit = slurmctl.Running, []string{"n3"}, time.Hour
	slurm := &queue{jobs: []slurmctl.Job{k}, later: []slurmctl.Job{later}}
	g := &growth{Driver: New(slurm, time.Now), Grow: msg.Grow{As: 1001, ByJob: true, Name: "evo_7_2_2", Hold: "evo_7_2_1", Nodes: []string{"n3"}, Request: slurmctl.AllocateRequest{TimeLimit: 5 * time.Minute}}}
	if err := g.bring(t.Context()); err == nil || len(slurm.cancelled) != 1 || len(g.Grown.Expanders) != 0 {
		t.Errorf("%v; cancelled %v, left %v", err, slurm.cancelled, g.Grown.Expanders)
	}
}
