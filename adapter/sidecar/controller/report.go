package controller

import (
	"context"
	"sync"
	"time"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/sidecar/store"
)

// reports lets one report be made at a time for operators, and one for all others: it keeps a processor busy.
type reports struct{ operators, others sync.Mutex }

// take waits for a caller's turn, or until ctx ends.
func (r *reports) take(ctx context.Context, operator bool) (done func(), err error) {
	turn := &r.others
	if operator {
		turn = &r.operators
	}
	for !turn.TryLock() {
		select {
		case <-ctx.Done():
			return nil, api.Errorf(api.ErrUnavailable, "other reports are being made")
		case <-time.After(50 * time.Millisecond):
		}
	}
	return turn.Unlock, nil
}

// Report implements api.Backend. It sums up in the database, so a long period takes time and no memory.
func (c *Controller) Report(ctx context.Context, q api.ReportQuery) (api.Report, error) {
	done, err := c.reports.take(ctx, c.Operator(api.Caller(ctx)))
	if err != nil {
		return api.Report{}, err
	}
	defer done()
	return reportOf(ctx, c.store, q, c.view.Load().Idle.Mean, time.Now())
}

// reportOf makes a report; an idle node draws that many watts.
func reportOf(ctx context.Context, st *store.Store, q api.ReportQuery, watts float64, now time.Time) (api.Report, error) {
	r, err := costsOf(ctx, st, q, now)
	if err != nil {
		return r, err
	}
	r.Total.HeldIdleKWh = r.Total.HeldIdle * watts / 1000
	for i := range r.Rows {
		r.Rows[i].HeldIdleKWh = r.Rows[i].HeldIdle * watts / 1000
	}
	if q.Owner != nil { // Slurm may hide other users' nodes
		return r, nil
	}
	idle, err := st.Idle(ctx, q.Start, q.End, now)
	if idle.Seconds > 0 {
		r.Idle = &api.ReportIdle{NodeHours: idle.Seconds / 3600, KWh: idle.Joules / 3.6e6}
	}
	return r, err
}

func costsOf(ctx context.Context, st *store.Store, q api.ReportQuery, now time.Time) (api.Report, error) {
	r := api.Report{Start: q.Start, End: q.End, By: q.By, Rows: []api.ReportRow{}}
	of := store.CostQuery{From: q.Start, To: q.End, Now: now, Owner: q.Owner, Limit: 1}
	total, _, err := st.Costs(ctx, of)
	if err != nil {
		return r, err
	}
	if len(total) > 0 {
		r.Total = reportRow(total[0])
	}
	causes, err := st.Causes(ctx, of)
	for _, c := range causes {
		r.Causes = append(r.Causes, api.ReportCause(c))
	}
	switch {
	case err != nil || q.By == "":
		return r, err
	case q.By == "day":
		return r, addDays(ctx, st, &r, of)
	}
	of.By, of.Limit = q.By, api.MostReportRows
	rows, groups, err := st.Costs(ctx, of)
	for _, one := range rows {
		r.Rows = append(r.Rows, reportRow(one))
	}
	r.More = max(groups-len(rows), 0)
	return r, err
}

// addDays adds a row for each day of the site's clock, the first and the last perhaps in part.
func addDays(ctx context.Context, st *store.Store, r *api.Report, of store.CostQuery) error {
	for from := r.Start.In(time.Local); from.Before(r.End) && len(r.Rows) <= api.MostReportDays; {
		next := time.Date(from.Year(), from.Month(), from.Day()+1, 0, 0, 0, 0, time.Local)
		if of.From, of.To = from, next; next.After(r.End) {
			of.To = r.End
		}
		day, _, err := st.Costs(ctx, of)
		if err != nil {
			return err
		}
		row := api.ReportRow{}
		if len(day) > 0 {
			row = reportRow(day[0])
		}
		row.Name = from.Format(time.DateOnly)
		r.Rows = append(r.Rows, row)
		from = next
	}
	return nil
}

// reportRow returns a group as the API has it.
func reportRow(c store.Cost) api.ReportRow {
	return api.ReportRow{Name: c.Group, Jobs: c.Jobs, Requested: c.Steps / 3600, Planned: c.Planned / 3600, Allocated: c.Had / 3600, Wasted: c.Wasted / 3600, Lent: c.Lent / 3600,
		Held: c.Held / 3600, HeldIdle: c.HeldIdle / 3600,
		Promises: api.ReportPromises{Made: c.Kept + c.Late + c.Broken + c.NotReached, Kept: c.Kept, Late: c.Late, Broken: c.Broken, NotReached: c.NotReached, Average: c.LateSeconds, Latest: c.LatestSeconds},
		Delayed:  api.ReportDelayed{Jobs: c.Delayed, Seconds: c.DelayedSeconds, Most: c.DelayedWorst}}
}
