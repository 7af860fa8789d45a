package main

import (
	"context"
	"time"

	"github.com/evoslurm/evoslurm/adapter/api"
)

// query returns what the sidecar's history is asked for: at least the ended jobs that the options select.
func (o *options) query() api.HistoryQuery {
	q := api.HistoryQuery{Start: o.from}
	if !o.to.IsZero() {
		q.End = o.to.Add(time.Second) // it travels in whole seconds
	}
	if len(o.users) <= api.MostListed {
		q.Users = o.users
	}
	if len(o.names) <= api.MostListed {
		q.Names = o.names
	}
	if len(o.named) <= api.MostListed {
		for _, n := range o.named {
			if q.Tasks = append(q.Tasks, n); !n.One {
				q.Jobs = append(q.Jobs, n.ID)
			}
		}
	}
	return q
}

// read reads the jobs that the options select, and perhaps more.
func (o *options) read(parent context.Context, client *api.Client) ([]api.Job, error) {
	ctx, cancel := context.WithTimeout(parent, patience)
	defer cancel()
	jobs, err := client.Jobs(ctx, true)
	if err != nil {
		return nil, err
	}
	jobs, err = withPast(jobs, o.query(), func(q api.HistoryQuery) (api.History, error) {
		ctx, cancel := context.WithTimeout(parent, patience)
		defer cancel()
		return client.History(ctx, q)
	})
	for i, j := range jobs { // of a user with very many steps some come without what they had
		if len(j.Past) == 0 && j.Step > 0 && j.State != "ended" {
			if whole, err := client.Job(ctx, j.ID); err == nil {
				jobs[i] = whole
			}
		}
	}
	return jobs, err
}

// withPast adds all pages of the history to the jobs that the sidecar has in memory, each job once. A job that ended
// since the list was made is in its last state.
func withPast(jobs []api.Job, q api.HistoryQuery, read func(api.HistoryQuery) (api.History, error)) ([]api.Job, error) {
	type key struct {
		id     uint32
		submit int64
	}
	at := map[key]int{}
	for i, j := range jobs {
		at[key{j.ID, j.Submit.Unix()}] = i
	}
	for {
		page, err := read(q)
		if err != nil {
			return nil, err
		}
		for _, j := range page.Jobs {
			k := key{j.ID, j.Submit.Unix()}
			i, known := at[k]
			switch {
			case !known:
				at[k] = len(jobs)
				jobs = append(jobs, j)
			case jobs[i].State != "ended" || len(jobs[i].Past) == 0:
				jobs[i] = j
			}
		}
		if page.Next == "" {
			return jobs, nil
		}
		if q.Before, err = api.ParsePlace(page.Next); err != nil {
			return nil, err
		}
	}
}
