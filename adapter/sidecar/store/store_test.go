package store

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
	"github.com/evoslurm/evoslurm/planner"
	"github.com/evoslurm/evoslurm/planner/malleable"
)

func open(t *testing.T, path string) *Store {
	t.Helper()
	s, err := Open(context.Background(), path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func sample(id uint32) *Job {
	at := time.Unix(1_800_000_000, 0)
	return &Job{
		Owned: row.Owned{SlurmID: id, Submitted: at, Name: "a 'b'\n\"c\" ü", User: "alice", UID: 2001, GID: 2002, Account: "proj", QOS: "normal", Partition: "main"},
		Terms: row.Terms{Profile: planner.Profile{{Duration: 600, Nodes: 2}, {Duration: 60, Nodes: 5}}, ExpandLimit: planner.Infinite, Drive: "merge"},
		Life:  row.Life{State: Queued},
	}
}

func TestJobsSurviveReopening(t *testing.T) {
	ctx, path := context.Background(), filepath.Join(t.TempDir(), "sub", "evoslurm.db?x=%20")
	s := open(t, path)
	job := sample(7)
	job.Malleable = &row.Malleable{Max: []int{4, 5}, Sizes: malleable.Pow2, Grace: 30, Speedup: "amdahl:0.9", BestEffort: row.Cancelled}
	job.Components = []row.Component{{Name: "ocean", Sizes: []int{2, 1}}, {Name: "atm", Sizes: []int{0, 4}}}
	job.Aim = planner.AimNear
	job.Frequencies = []string{"", "2100000"}
	job.Restarts, job.Losses = 2, []row.Loss{{Step: 1, Nodes: []string{"n1"}}, {Step: 2, Nodes: []string{"n2", "n3"}}}
	job.Array, job.Task = 5, 3
	if err := s.AddJob(ctx, job); err != nil {
		t.Fatal(err)
	}
	job.AimSince, job.AimStart = 1_800_000_000, 1_800_000_300
	job.Malleable = &row.Malleable{Max: []int{8, 5}, Sizes: 3}
	job.Components = []row.Component{{Name: "ocean", Sizes: []int{2, 1}, Nodes: []string{"n1", "n2"}}, {Name: "atm", Sizes: []int{0, 4}}}
	job.Growing = &row.Growing{Profile: job.Profile, Max: []int{8, 5}, Postpones: []row.Postponed{{Job: 8, Seconds: 60, Nodes: 2, Would: 1_800_000_000}}}
	job.State, job.Step, job.Guess, job.BatchHost, job.HeldIdle = Waiting, 1, 1, "n1", 4_000_000_000
	job.Started, job.StepStarted, job.StepEnded = time.Unix(10, 0), time.Unix(11, 0), time.Unix(12, 0)
	job.Changes = []row.Change{{ID: "a", Step: 1}, {ID: "b", Open: true}}
	if err := s.UpdateJob(ctx, job); err != nil {
		t.Fatal(err)
	}
	plan := []Span{{Step: 1, Start: time.Unix(10, 0), End: time.Unix(610, 0), Nodes: 2, NodeList: "n[1-2]"}}
	held := []Span{{Step: 1, Start: time.Unix(10, 0), End: time.Unix(12, 0), Nodes: 2, NodeList: "n[1-2]"},
		{Step: 2, Start: time.Unix(12, 0), Nodes: 5, NodeList: "n[1-5]"}}
	parts := []Part{{SlurmID: 9, Step: 2, NodeList: "n[3-5]"}}
	err := errors.Join(s.SetPlans(ctx, map[int64][]Span{job.ID: append(plan, Span{Step: 2})}), s.SetPlans(ctx, map[int64][]Span{job.ID: plan}), s.SetParts(ctx, job.ID, parts),
		s.SetAllocation(ctx, job.ID, 1, held[0].Start, 2, "n[1-2]"), s.SetAllocation(ctx, job.ID, 2, held[1].Start, 5, "n[1-5]"))
	if err != nil {
		t.Fatal(err)
	}
	s.Close()

	s = open(t, path)
	active, err := s.ActiveJobs(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]*Job{job}, active); diff != "" {
		t.Errorf("active jobs (-want +got):\n%s", diff)
	}
	gotPlan, err1 := s.Plan(ctx, job.ID)
	gotHeld, err2 := s.Allocations(ctx, job.ID)
	gotParts, err3 := s.Parts(ctx, job.ID)
	if err := errors.Join(err1, err2, err3); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(plan, gotPlan) + cmp.Diff(held, gotHeld) + cmp.Diff(parts, gotParts); diff != "" {
		t.Errorf("plan, allocations, parts (-want +got):\n%s", diff)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("database file: %v %v, want mode 0600", info.Mode(), err)
	}
}

func TestEndedJobs(t *testing.T) {
	ctx, s := context.Background(), open(t, filepath.Join(t.TempDir(), "db"))
	for id := uint32(1); id <= 3; id++ {
		j := sample(id)
		if err := s.AddJob(ctx, j); err != nil {
			t.Fatal(err)
		}
		j.State, j.Ended = Ended, time.Unix(int64(100-id), 0)
		if err := s.UpdateJob(ctx, j); err != nil {
			t.Fatal(err)
		}
	}
	ended, err := s.EndedJobs(ctx, 2)
	if err != nil || len(ended) != 2 || ended[0].SlurmID != 2 || ended[1].SlurmID != 1 {
		t.Errorf("the last two ended: %v %v, want jobs 2 and 1", ended, err)
	}
	if active, err := s.ActiveJobs(ctx); err != nil || len(active) != 0 {
		t.Errorf("active: %v %v, want none", active, err)
	}
}

func TestEventLogIsAppendOnly(t *testing.T) {
	ctx, s := context.Background(), open(t, filepath.Join(t.TempDir(), "db"))
	at := time.UnixMicro(1_800_000_000_123_456)
	if err := s.AddEvent(ctx, 0, at, "started", map[string]int{"nodes": 8}); err != nil {
		t.Fatal(err)
	}
	for _, statement := range []string{`UPDATE events SET kind = 'x'`, `DELETE FROM events`} {
		if _, err := s.db.ExecContext(ctx, statement); err == nil || !strings.Contains(err.Error(), "append-only") {
			t.Errorf("%s: %v, want a refusal", statement, err)
		}
	}
	events, err := s.Events(ctx, 0, 0, 10)
	if err != nil || len(events) != 1 || !events[0].At.Equal(at) || string(events[0].Detail) != `{"nodes":8}` {
		t.Errorf("events: %+v %v", events, err)
	}
}

func TestIntents(t *testing.T) {
	ctx, s := context.Background(), open(t, filepath.Join(t.TempDir(), "db"))
	now := time.Now()
	first, err1 := s.Intend(ctx, Intent{At: now, Action: "grow", Detail: "a"})
	second, err2 := s.Intend(ctx, Intent{At: now, Action: "shrink", Detail: "b"})
	if err := errors.Join(err1, err2, s.Settle(ctx, first, now, "refused")); err != nil {
		t.Fatal(err)
	}
	pending, err := s.OpenIntents(ctx)
	if err != nil || len(pending) != 1 || pending[0].ID != second || pending[0].Action != "shrink" {
		t.Errorf("open intents: %+v %v, want the second", pending, err)
	}
}

func TestForeignKeys(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "db"))
	if err := s.SetPlans(context.Background(), map[int64][]Span{42: {{Step: 1, Nodes: 1}}}); err == nil {
		t.Error("a plan of no job was accepted")
	}
}

func TestTogether(t *testing.T) {
	ctx, path := context.Background(), filepath.Join(t.TempDir(), "db")
	s := open(t, path)
	job := sample(7)
	refused := errors.New("refused")
	write := func(outcome error) error {
		return s.Together(ctx, func(tx *Store) error {
			return errors.Join(tx.AddJob(ctx, job), tx.SetParts(ctx, job.ID, []Part{{SlurmID: 9, Step: 2}}),
				tx.AddEvent(ctx, job.ID, time.Now(), "adopted", nil), outcome)
		})
	}
	if err := write(refused); !errors.Is(err, refused) {
		t.Fatalf("error %v, want the one of the function", err)
	}
	active, err1 := s.ActiveJobs(ctx)
	events, err2 := s.Events(ctx, 0, 0, 10)
	if len(active)+len(events) > 0 || errors.Join(err1, err2) != nil {
		t.Errorf("after a failure there are %d jobs and %d events (%v %v), want none", len(active), len(events), err1, err2)
	}
	if err := write(nil); err != nil {
		t.Fatal(err)
	}
	active, err1 = s.ActiveJobs(ctx)
	events, err2 = s.Events(ctx, 0, 0, 10)
	if len(active) != 1 || len(events) != 1 || errors.Join(err1, err2) != nil {
		t.Errorf("%d jobs and %d events (%v %v), want one each", len(active), len(events), err1, err2)
	}
}
