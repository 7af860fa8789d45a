package controller

import (
	"context"
	"errors"
	"io"
	"path/filepath"
	"testing"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/internal/config"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/store"
	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
	"github.com/evoslurm/evoslurm/planner"
	"github.com/evoslurm/evoslurm/slurmctl"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest/must"
)

// TestEndedAfterRestart: jobs that ended before the sidecar was started are shown with
// what they held, as many as it keeps.
func TestEndedAfterRestart(t *testing.T) {
	b, ctx, began := newIdle(t), context.Background(), time.Unix(1_700_000_000, 0)
	const jobs = msg.MostEnded + 2
	for i := range jobs {
		id := uint32(i + 1)
		end := began.Add(time.Duration(jobs-i) * time.Minute) // the later, the sooner it ended
		j := &store.Job{Owned: row.Owned{SlurmID: id, Submitted: began, Name: "amr", User: "alice", UID: 1001, Partition: "main"}, Terms: row.Terms{Drive: "merge", Profile: planner.Profile{{Duration: 60, Nodes: 2}}}, Life: row.Life{State: store.Running, Step: 1, Started: began, StepStarted: began}}
		must.OK(t, b.store.AddJob(ctx, j))
		must.OK(t, b.store.SetPlans(ctx, map[int64][]store.Span{j.ID: {{Step: 1, Start: began, End: began.Add(time.Minute), Nodes: 2, NodeList: "n[1-2]"}}}))
		for _, nodes := range []int{2, 0} {
			must.OK(t, b.store.SetAllocation(ctx, j.ID, 1, map[int]time.Time{2: began, 0: end}[nodes], nodes, "n[1-2]"))
		}
		j.State, j.Ended, j.EndState = store.Ended, end, "COMPLETED"
		must.OK(t, b.store.UpdateJob(ctx, j))
	}
	books, err := b.books.read()
	must.OK(t, err)
	b.core.Step(time.Now(), books)
	b.publish()
	if shown, err := b.Jobs(ctx, false); !errors.Is(err, api.ErrUnavailable) {
		t.Errorf("before Slurm was seen: %v %v", shown, err)
	}
	shown, err := b.Jobs(ctx, true)
	if err != nil || len(shown) != msg.MostEnded {
		t.Fatalf("%d ended jobs are shown, want %d (%v)", len(shown), msg.MostEnded, err)
	}
	if first, last := shown[0], shown[msg.MostEnded-1]; first.ID != msg.MostEnded || last.ID != 1 {
		t.Errorf("from job %d to job %d, want those that ended last, by their ends", first.ID, last.ID)
	}
	j, err := b.Job(ctx, 7)
	if err != nil || j.State != "ended" || j.EndState != "COMPLETED" || len(j.Past) != 1 || j.Past[0].NodeList != "n[1-2]" ||
		!j.Past[0].End.Equal(j.End) || len(j.Plan) != 1 || j.Nodes != 0 {
		t.Errorf("job 7: %+v %v", j, err)
	}
	if uid, err := b.Owner(ctx, 7); err != nil || uid != 1001 {
		t.Errorf("owner %d %v", uid, err)
	}
}

// newIdle returns a controller that does not run.
func newIdle(t *testing.T) *Controller {
	t.Helper()
	cfg := config.Default()
	cfg.Database = filepath.Join(t.TempDir(), "evoslurm.db")
	st, err := store.Open(context.Background(), cfg.Database)
	must.OK(t, err)
	t.Cleanup(func() { st.Close() })
	log := logrus.New()
	log.SetOutput(io.Discard)
	c, err := New(cfg, &slurmctl.Client{}, st, log, "test")
	must.OK(t, err)
	c.books.ctx = context.Background()
	return c
}
