package api

import (
	"context"
	"net/http"
	"net/url"
	"slices"
)

// Status returns the sidecar's.
func (c *Client) Status(ctx context.Context) (Status, error) {
	return callOnce[Status](ctx, c, http.MethodGet, "/v1/status", nil)
}

// Jobs lists the evolving jobs with their plans, including ended ones if all is set. If a user has
// very many steps, some jobs come without plans: [Client.Job] has them.
func (c *Client) Jobs(ctx context.Context, all bool) ([]Job, error) {
	return callOnce[[]Job](ctx, c, http.MethodGet, jobsPath(all, true), nil)
}

// Queue lists the evolving jobs without their plans, and with the beginnings of long profiles.
func (c *Client) Queue(ctx context.Context, all bool) ([]Job, error) {
	return callOnce[[]Job](ctx, c, http.MethodGet, jobsPath(all, false), nil)
}

// Job returns one evolving job.
func (c *Client) Job(ctx context.Context, id uint32) (Job, error) {
	return callOnce[Job](ctx, c, http.MethodGet, jobPath(id), nil)
}

// History reads a page of the ended jobs, the latest end first.
func (c *Client) History(ctx context.Context, q HistoryQuery) (History, error) {
	return callOnce[History](ctx, c, http.MethodGet, "/v1/history?"+q.values().Encode(), nil)
}

// Find returns the ID of the job with a name. It asks for that of a task: the job of this name that was submitted last.
func (c *Client) Find(ctx context.Context, name JobName) (id uint32, err error) {
	if !name.One {
		return name.ID, nil
	}
	jobs, err := c.Queue(ctx, true)
	if err != nil {
		return 0, err
	}
	past, err := c.History(ctx, HistoryQuery{Tasks: []JobName{name}, Limit: 1})
	if err != nil {
		return 0, err
	}
	var found *Job
	for _, j := range slices.Concat(past.Jobs, jobs) {
		if name.Is(&j) && (found == nil || !j.Submit.Before(found.Submit)) {
			found = &j
		}
	}
	switch {
	case found == nil:
		return 0, Errorf(ErrNotFound, "%s is no task of an evolving array", name)
	case found.ArrayRest != "":
		return 0, Errorf(ErrConflict, "task %s has no job ID yet: it waits in the record of its array", name)
	}
	return found.ID, nil
}

// Allocation returns what the job has now.
func (c *Client) Allocation(ctx context.Context, id uint32) (Allocation, error) {
	return callOnce[Allocation](ctx, c, http.MethodGet, jobPath(id)+"/allocation", nil)
}

// Cluster returns what exists besides evolving jobs.
func (c *Client) Cluster(ctx context.Context) (Cluster, error) {
	return callOnce[Cluster](ctx, c, http.MethodGet, "/v1/cluster", nil)
}

// Events reads the event log, oldest first.
func (c *Client) Events(ctx context.Context, q EventQuery) ([]Event, error) {
	path := "/v1/events"
	if v := q.values().Encode(); v != "" {
		path += "?" + v
	}
	return callOnce[[]Event](ctx, c, http.MethodGet, path, nil)
}

// Next ends step req.From and waits until the next step's nodes are there (Ready), there is no next
// step (Done), or ctx ends. A repeated call with the same From continues to wait.
func (c *Client) Next(ctx context.Context, id uint32, req NextRequest) (Allocation, error) {
	return untilReady(ctx, c, id, "/next", req, func(a Allocation) bool { return a.Ready || a.Done })
}

// Change changes the coming steps of a job and waits until the change is refused or done. A
// repeated call with the same ID continues to wait.
func (c *Client) Change(ctx context.Context, id uint32, req ChangeRequest) (Change, error) {
	return untilReady(ctx, c, id, "/change", req, func(a Change) bool { return a.Ready })
}

// Offer waits until there is an offer.
func (c *Client) Offer(ctx context.Context, id uint32, q OfferQuery) (Offer, error) {
	return untilReady(ctx, c, id, "/offer", q, func(a Offer) bool { return a.Ready })
}

// Answer answers an offer and waits until what was accepted is done. A repeated call with the same
// offer continues to wait.
func (c *Client) Answer(ctx context.Context, id uint32, req AnswerRequest) (Answer, error) {
	return untilReady(ctx, c, id, "/answer", req, func(a Answer) bool { return a.Ready })
}

// Progress reports how far the application of a job is.
func (c *Client) Progress(ctx context.Context, id uint32, r ProgressReport) (Progress, error) {
	return untilReady(ctx, c, id, "/progress", r, func(a Progress) bool { return a.Ready })
}

// CancelHolds cancels what is held for the coming steps of a running job. For operators.
func (c *Client) CancelHolds(ctx context.Context, id uint32) (Cancelled, error) {
	return callOnce[Cancelled](ctx, c, http.MethodPost, jobPath(id)+"/cancel-holds", CancelHolds{})
}

// Strategies lists all strategies.
func (c *Client) Strategies(ctx context.Context) ([]Strategy, error) {
	return callOnce[[]Strategy](ctx, c, http.MethodGet, "/v1/strategies", nil)
}

// Strategy returns one of them.
func (c *Client) Strategy(ctx context.Context, name string) (Strategy, error) {
	return callOnce[Strategy](ctx, c, http.MethodGet, "/v1/strategies/"+url.PathEscape(name), nil)
}

// UseStrategy puts a strategy in use, between two cycles. For operators.
func (c *Client) UseStrategy(ctx context.Context, name string, r StrategyRequest) (Strategy, error) {
	return callOnce[Strategy](ctx, c, http.MethodPost, "/v1/strategies/"+url.PathEscape(name)+"/use", r)
}

// ReloadStrategies searches for plugins again and restarts the one in use. For operators.
func (c *Client) ReloadStrategies(ctx context.Context) ([]Strategy, error) {
	return callOnce[[]Strategy](ctx, c, http.MethodPost, "/v1/strategies", StrategyRequest{})
}

// TryStrategy plans the present state with a strategy and acts on nothing. For operators.
func (c *Client) TryStrategy(ctx context.Context, name string, r StrategyRequest) (Trial, error) {
	return callOnce[Trial](ctx, c, http.MethodPost, "/v1/strategies/"+url.PathEscape(name)+"/try", r)
}

// Policies lists all malleability policies.
func (c *Client) Policies(ctx context.Context) ([]Strategy, error) {
	return callOnce[[]Strategy](ctx, c, http.MethodGet, "/v1/policies", nil)
}

// UsePolicy puts a malleability policy in use. For operators.
func (c *Client) UsePolicy(ctx context.Context, name string, r StrategyRequest) (Strategy, error) {
	return callOnce[Strategy](ctx, c, http.MethodPost, "/v1/policies/"+url.PathEscape(name)+"/use", r)
}

// callOnce calls the API once and returns the answer.
func callOnce[T any](ctx context.Context, c *Client, method, path string, body any) (T, error) {
	var answer T
	err := c.call(ctx, method, path, body, &answer)
	return answer, err
}
