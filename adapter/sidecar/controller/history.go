package controller

import (
	"cmp"
	"context"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/store"
)

// History implements api.Backend. It reads the database beside the loop, a page at a time.
func (c *Controller) History(ctx context.Context, q api.HistoryQuery) (page api.History, err error) {
	tasks := make([]store.Task, len(q.Tasks))
	for i, t := range q.Tasks {
		tasks[i] = store.Task{Array: t.ID, Number: t.Task, One: t.One}
	}
	v, limit := c.view.Load(), min(cmp.Or(q.Limit, api.MostHistory), api.MostHistory)
	f := store.HistoryFilter{From: q.Start, To: q.End, Jobs: q.Jobs, Tasks: tasks, Users: q.Users, Names: q.Names, Before: store.Place(q.Before), Limit: limit + 1, Owner: q.Owner}
	if !f.From.IsZero() {
		f.From = f.From.Add(-v.Skew)
	}
	if !f.To.IsZero() {
		f.To = f.To.Add(-v.Skew)
	}
	if q.Owner != nil {
		f.Accounts = c.coordinates(ctx, *q.Owner)
	}
	rows, err := c.store.History(ctx, f)
	if err != nil {
		return page, err
	}
	_, cfg := c.settings.current()
	page.Jobs = []api.Job{}
	for used, i := 0, 0; i < min(len(rows), limit); i++ {
		b := msg.BookedJob{Job: *rows[i]}
		if b.Plan, err = c.store.Plan(ctx, rows[i].ID); err != nil {
			return page, err
		}
		if b.Past, err = c.store.Allocations(ctx, rows[i].ID); err != nil {
			return page, err
		}
		j := core.Past(cfg, c.strategy(), v.Skew, b)
		if !j.Room(&used) && i > 0 {
			rows = rows[:i+1] // one more than fits
			break
		}
		page.Jobs = append(page.Jobs, j)
	}
	if n := len(page.Jobs); n < len(rows) {
		page.Next = api.Place{Ended: rows[n-1].Ended.Unix(), Row: rows[n-1].ID}.String()
	}
	return page, nil
}
