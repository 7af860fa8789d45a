package api

import (
	"context"
	"net/http"
	"net/url"
)

// Status returns the sidecar's.
func (c *Client) Status(ctx context.Context) (Status, error) {
	var s Status
	return s, c.call(ctx, http.MethodGet, "/v1/status", nil, &s)
}

// Jobs lists the evolving jobs with their plans, including ended ones if all is set. If a user has
// very many steps, some jobs come without plans: [Client.Job] has them.
func (c *Client) Jobs(ctx context.Context, all bool) ([]Job, error) {
	var js []Job
	return js, c.call(ctx, http.MethodGet, jobsPath(all, true), nil, &js)
}

// Queue lists the evolving jobs without their plans, and with the beginnings of long profiles.
func (c *Client) Queue(ctx context.Context, all bool) ([]Job, error) {
	var js []Job
	return js, c.call(ctx, http.MethodGet, jobsPath(all, false), nil, &js)
}

// Job returns one evolving job.
func (c *Client) Job(ctx context.Context, id uint32) (Job, error) {
	var j Job
	return j, c.call(ctx, http.MethodGet, jobPath(id), nil, &j)
}

// Allocation returns what the job has now.
func (c *Client) Allocation(ctx context.Context, id uint32) (Allocation, error) {
	var a Allocation
	return a, c.call(ctx, http.MethodGet, jobPath(id)+"/allocation", nil, &a)
}

// Cluster returns what exists besides evolving jobs.
func (c *Client) Cluster(ctx context.Context) (Cluster, error) {
	var a Cluster
	return a, c.call(ctx, http.MethodGet, "/v1/cluster", nil, &a)
}

// Events reads the event log, oldest first.
func (c *Client) Events(ctx context.Context, q EventQuery) ([]Event, error) {
	path := "/v1/events"
	if v := q.values().Encode(); v != "" {
		path += "?" + v
	}
	var all []Event
	return all, c.call(ctx, http.MethodGet, path, nil, &all)
}

// Next ends step req.From and waits until the next step's nodes are there (Ready), there is no next
// step (Done), or ctx ends. A repeated call with the same From continues to wait.
func (c *Client) Next(ctx context.Context, id uint32, req NextRequest) (Allocation, error) {
	return untilReady(ctx, c, jobPath(id)+"/next", req, func(a Allocation) bool { return a.Ready || a.Done })
}

// Change changes the coming steps of a job and waits until the change is refused or done. A
// repeated call with the same ID continues to wait.
func (c *Client) Change(ctx context.Context, id uint32, req ChangeRequest) (Change, error) {
	return untilReady(ctx, c, jobPath(id)+"/change", req, func(a Change) bool { return a.Ready })
}

// Offer waits until there is an offer.
func (c *Client) Offer(ctx context.Context, id uint32, q OfferQuery) (Offer, error) {
	return untilReady(ctx, c, jobPath(id)+"/offer", q, func(a Offer) bool { return a.Ready })
}

// Answer answers an offer and waits until what was accepted is done. A repeated call with the same
// offer continues to wait.
func (c *Client) Answer(ctx context.Context, id uint32, req AnswerRequest) (Answer, error) {
	return untilReady(ctx, c, jobPath(id)+"/answer", req, func(a Answer) bool { return a.Ready })
}

// Progress reports how far the application of a job is.
func (c *Client) Progress(ctx context.Context, id uint32, r ProgressReport) (Progress, error) {
	return untilReady(ctx, c, jobPath(id)+"/progress", r, func(a Progress) bool { return a.Ready })
}

// CancelHolds cancels what is held for the coming steps of a running job. For operators.
func (c *Client) CancelHolds(ctx context.Context, id uint32) (Cancelled, error) {
	var a Cancelled
	return a, c.call(ctx, http.MethodPost, jobPath(id)+"/cancel-holds", CancelHolds{}, &a)
}

// Strategies lists all strategies.
func (c *Client) Strategies(ctx context.Context) ([]Strategy, error) {
	var all []Strategy
	return all, c.call(ctx, http.MethodGet, "/v1/strategies", nil, &all)
}

// Strategy returns one of them.
func (c *Client) Strategy(ctx context.Context, name string) (Strategy, error) {
	var one Strategy
	return one, c.call(ctx, http.MethodGet, "/v1/strategies/"+url.PathEscape(name), nil, &one)
}

// UseStrategy puts a strategy in use, between two cycles. For operators.
func (c *Client) UseStrategy(ctx context.Context, name string, r StrategyRequest) (Strategy, error) {
	var one Strategy
	return one, c.call(ctx, http.MethodPost, "/v1/strategies/"+url.PathEscape(name)+"/use", r, &one)
}

// ReloadStrategies searches for plugins again and restarts the one in use. For operators.
func (c *Client) ReloadStrategies(ctx context.Context) ([]Strategy, error) {
	var all []Strategy
	return all, c.call(ctx, http.MethodPost, "/v1/strategies", StrategyRequest{}, &all)
}

// TryStrategy plans the present state with a strategy and acts on nothing. For operators.
func (c *Client) TryStrategy(ctx context.Context, name string, r StrategyRequest) (Trial, error) {
	var t Trial
	return t, c.call(ctx, http.MethodPost, "/v1/strategies/"+url.PathEscape(name)+"/try", r, &t)
}

// Policies lists all malleability policies.
func (c *Client) Policies(ctx context.Context) ([]Strategy, error) {
	var all []Strategy
	return all, c.call(ctx, http.MethodGet, "/v1/policies", nil, &all)
}

// UsePolicy puts a malleability policy in use. For operators.
func (c *Client) UsePolicy(ctx context.Context, name string, r StrategyRequest) (Strategy, error) {
	var one Strategy
	return one, c.call(ctx, http.MethodPost, "/v1/policies/"+url.PathEscape(name)+"/use", r, &one)
}
