package controller

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/sidecar/store"
	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest/must"
)

// TestReportByDay: days are the site's, and add up to the total. What is held from 23:30 to 00:30 counts for both.
func TestReportByDay(t *testing.T) {
	ctx := context.Background()
	st, err := store.Open(ctx, filepath.Join(t.TempDir(), "db"))
	must.OK(t, err)
	defer st.Close()
	job := &store.Job{Owned: row.Owned{SlurmID: 7, User: "ann"}, Life: row.Life{State: row.Running}}
	must.OK(t, st.AddJob(ctx, job))
	made := time.Date(2026, 11, 20, 23, 30, 0, 0, time.Local)
	h := row.Hold{ID: 1, Job: job.ID, Name: "evo_7_2_1", Made: made, Counted: made.Add(time.Hour), Held: 3600_000 * 6, Idle: 3600_000 * 4}
	must.OK(t, st.SaveHold(ctx, h))
	q := api.ReportQuery{Start: made.AddDate(0, 0, -1), End: made.Add(2 * time.Hour), By: "day"}
	r, err := reportOf(ctx, st, q, 500, made.Add(2*time.Hour))
	if err != nil || len(r.Rows) != 3 || r.Total.Held != 6 || r.Total.HeldIdle != 4 {
		t.Fatalf("%+v, %v", r, err)
	}
	for i, want := range []api.ReportRow{{Name: "2026-11-19"}, {Name: "2026-11-20", Held: 3, HeldIdle: 2, HeldIdleKWh: 1}, {Name: "2026-11-21", Held: 3, HeldIdle: 2, HeldIdleKWh: 1}} {
		if r.Rows[i] != want {
			t.Errorf("%+v, want %+v", r.Rows[i], want)
		}
	}
	q.By = "user"
	if r, err := reportOf(ctx, st, q, 0, made); err != nil || len(r.Rows) != 1 || r.Rows[0].Name != "ann" || r.More != 0 || r.Rows[0].HeldIdle != 4 {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestReportIdle: operators see what idle nodes drew. A user's own report has none, as Slurm may hide other nodes.
func TestReportIdle(t *testing.T) {
	st, err := store.Open(t.Context(), filepath.Join(t.TempDir(), "db"))
	must.OK(t, err)
	defer st.Close()
	at := time.Date(2026, 11, 20, 23, 30, 0, 0, time.Local)
	must.OK(t, st.AddIdle(t.Context(), at, store.Idle{Seconds: 7200, Joules: 3.6e6}))
	q := api.ReportQuery{Start: at.Add(-time.Hour), End: at.Add(time.Hour)}
	r, err := reportOf(t.Context(), st, q, 500, at.Add(time.Hour))
	if err != nil || r.Idle == nil || *r.Idle != (api.ReportIdle{NodeHours: 2, KWh: 1}) {
		t.Errorf("%+v, %v", r.Idle, err)
	}
	q.Owner = new(uint32)
	if r, err = reportOf(t.Context(), st, q, 500, at.Add(time.Hour)); err != nil || r.Idle != nil {
		t.Errorf("a user's own report has idle nodes: %+v, %v", r.Idle, err)
	}
}

// TestReportsTakeTurns: one report is made at a time, and operators do not wait for others.
func TestReportsTakeTurns(t *testing.T) {
	var turns reports
	done, err := turns.take(t.Context(), false)
	must.OK(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := turns.take(ctx, false); err == nil {
		t.Error("two reports at a time")
	}
	operators, err := turns.take(ctx, true)
	must.OK(t, err)
	operators()
	done()
	if done, err = turns.take(ctx, false); err != nil {
		t.Fatal(err)
	}
	done()
}
