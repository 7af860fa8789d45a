package web

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/evoslurm/evoslurm/adapter/api"
)

// Overseer is a Reader that shows operators what limits promises, and what they cost.
type Overseer interface {
	Budget(ctx context.Context) (api.Budget, error)
	Settings(ctx context.Context) (api.Settings, error)
	Report(ctx context.Context, q api.ReportQuery) (api.Report, error)
}

const (
	weeks      = 4
	mostCauses = 10
	mostOwners = 20 // in the tables of who holds what
)

// overview is an administrator's page.
type overview struct {
	Now    time.Time
	Budget api.Budget
	Set    []api.Setting // that differ from the configuration
	Doubts []string

	Missing string // why the costs are not shown
	None    bool   // no evolving job ran, and nothing was promised
	Weeks   []week // the present one first
	Last    week   // the last seven days
	Total   week   // all of them
	Causes  []api.ReportCause
	Users   []api.ReportRow // of the last seven days
}

// week sums up some days.
type week struct {
	From, To time.Time // days, both in it
	api.ReportRow
}

// Kept returns which part of the promises that were decided was kept, in words.
func (w week) Kept() string {
	p := w.Promises
	if decided := p.Kept + p.Late + p.Broken; decided > 0 {
		return fmt.Sprintf("%d of %d (%.0f %%)", p.Kept, decided, 100*float64(p.Kept)/float64(decided))
	}
	return "none was due"
}

// Delay returns how much later stock jobs started, on average, in seconds.
func (w week) Delay() float64 { return float64(w.Delayed.Seconds) / float64(max(w.Delayed.Jobs, 1)) }

// Late returns how much later a stock job started at most.
func (w week) Late() time.Duration { return time.Duration(w.Delayed.Most) * time.Second }

// add adds a day, or a week.
func (w *week) add(r api.ReportRow) {
	w.Allocated, w.Wasted, w.HeldIdle = w.Allocated+r.Allocated, w.Wasted+r.Wasted, w.HeldIdle+r.HeldIdle
	p, q := &w.Promises, r.Promises
	p.Kept, p.Late, p.Broken, p.NotReached = p.Kept+q.Kept, p.Late+q.Late, p.Broken+q.Broken, p.NotReached+q.NotReached
	d, e := &w.Delayed, r.Delayed
	d.Jobs, d.Seconds, d.Most = d.Jobs+e.Jobs, d.Seconds+e.Seconds, max(d.Most, e.Most)
}

func (p *Page) overview(ctx context.Context, v visit) (any, error) {
	o, ok := v.Reader.(Overseer)
	if !ok {
		return nil, api.Errorf(api.ErrNotFound, "there is no overview here")
	}
	settings, err := o.Settings(ctx) // refuses all but operators
	if err != nil {
		return nil, err
	}
	a := &overview{Now: v.now, Doubts: settings.Warnings}
	a.Set = slices.DeleteFunc(settings.Settings, func(s api.Setting) bool { return s.Value == s.Configured })
	if a.Budget, err = o.Budget(ctx); err != nil {
		return nil, err
	}
	a.Budget.Use = a.Budget.Use[:min(len(a.Budget.Use), mostListed)]
	ctx, cancel := context.WithTimeout(ctx, readTimeout/2)
	defer cancel()
	if err := a.costs(ctx, o); err != nil { // the rest is worth showing
		a.Missing = err.Error()
	}
	return a, nil
}

// costs adds what promises cost, week by week.
func (a *overview) costs(ctx context.Context, o Overseer) error {
	y, m, d := a.Now.Date()
	day := func(n int) time.Time { return time.Date(y, m, d+n, 0, 0, 0, 0, a.Now.Location()) } // from today
	days, err := o.Report(ctx, api.ReportQuery{Start: day(1 - 7*weeks), End: day(1), By: "day"})
	if err != nil {
		return err
	}
	of, err := o.Report(ctx, api.ReportQuery{Start: day(-6), End: day(1), By: "user"})
	if err != nil {
		return err
	}
	a.Causes, a.Users = days.Causes[:min(len(days.Causes), mostCauses)], of.Rows[:min(len(of.Rows), mostOwners)]
	a.Total.From, a.Total.To = day(1-7*weeks), day(0)
	for n := range weeks {
		a.Weeks = append(a.Weeks, week{From: day(-7*n - 6), To: day(-7 * n)})
	}
	for i, r := range days.Rows {
		if back := len(days.Rows) - 1 - i; back < 7*weeks { // in days
			a.Weeks[back/7].add(r)
			a.Total.add(r)
		}
	}
	a.Last, a.None = a.Weeks[0], days.Empty() && of.Empty()
	return nil
}
