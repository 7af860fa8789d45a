package api

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
)

// Visitor asks the server within its process, with one caller's rights: it learns nothing that the
// caller could not read over HTTP. The page uses it as commands use a Client.
type Visitor struct {
	desk   *desk
	caller caller
}

// visit has a route answer.
func visit[T any](ctx context.Context, v Visitor, answer handler, path string, body any, values ...string) (T, error) {
	var none T
	r := request{Request: &http.Request{Method: http.MethodGet}, caller: v.caller}
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return none, err
		}
		r.Method, r.body = http.MethodPost, bytes.TrimSpace(text)
	}
	var err error
	if r.URL, err = url.Parse(path); err != nil {
		return none, err
	}
	for i := 0; i+1 < len(values); i += 2 {
		r.SetPathValue(values[i], values[i+1])
	}
	a, err := answer(ctx, r)
	if err != nil {
		return none, err
	}
	return a.(T), nil
}

// Status returns the sidecar's.
func (v Visitor) Status(ctx context.Context) (Status, error) {
	return visit[Status](ctx, v, v.desk.status, "/v1/status", nil)
}

// Jobs returns the evolving jobs that the caller may see, the ended ones too if all is set.
func (v Visitor) Jobs(ctx context.Context, all bool) ([]Job, error) {
	return visit[[]Job](ctx, v, v.desk.jobs, jobsPath(all, true), nil)
}

// Job returns one evolving job.
func (v Visitor) Job(ctx context.Context, id uint32) (Job, error) {
	return visit[Job](ctx, v, v.desk.job, jobPath(id), nil, "id", idText(id))
}

// History does what Client.History does.
func (v Visitor) History(ctx context.Context, q HistoryQuery) (History, error) {
	return visit[History](ctx, v, v.desk.history, "/v1/history?"+q.values().Encode(), nil)
}

// Cluster returns what exists besides evolving jobs.
func (v Visitor) Cluster(ctx context.Context) (Cluster, error) {
	return visit[Cluster](ctx, v, v.desk.cluster, "/v1/cluster", nil)
}

// Events reads the event log, oldest first.
func (v Visitor) Events(ctx context.Context, q EventQuery) ([]Event, error) {
	return visit[[]Event](ctx, v, v.desk.events, "/v1/events?"+q.values().Encode(), nil)
}

// Strategies lists all strategies.
func (v Visitor) Strategies(ctx context.Context) ([]Strategy, error) {
	return visit[[]Strategy](ctx, v, v.desk.strategies, "/v1/strategies", nil)
}

// TryStrategy plans the present state with a strategy and acts on nothing. For operators.
func (v Visitor) TryStrategy(ctx context.Context, name string, q StrategyRequest) (Trial, error) {
	return visit[Trial](ctx, v, v.desk.changeStrategy, "/v1/strategies/"+url.PathEscape(name)+"/try", q, "name", name)
}

// UseStrategy puts a strategy in use, between two cycles. For operators.
func (v Visitor) UseStrategy(ctx context.Context, name string, q StrategyRequest) (Strategy, error) {
	return visit[Strategy](ctx, v, v.desk.changeStrategy, "/v1/strategies/"+url.PathEscape(name)+"/use", q, "name", name)
}

type visitorKey struct{}

// VisitorOf returns the reader of the page.
func VisitorOf(r *http.Request) (Visitor, error) {
	v, ok := r.Context().Value(visitorKey{}).(Visitor)
	if !ok {
		return v, Errorf(ErrDenied, "the request does not prove who is asking")
	}
	return v, nil
}

// Who returns a key that distinguishes visitors.
func (v Visitor) Who() string { return fmt.Sprint(v.caller.known, v.caller.uid) }

// Sees returns a key for what a visitor may read: equal for all who may read everything.
func (v Visitor) Sees(ctx context.Context) string {
	if v.desk.rights.seesAll(ctx, v.caller) && v.desk.rights.sight(ctx, v.caller) == nil {
		return "everything"
	}
	return v.Who()
}

// CancelHolds cancels what is held for the coming steps of a running job. For operators.
func (v Visitor) CancelHolds(ctx context.Context, id uint32) (Cancelled, error) {
	return visit[Cancelled](ctx, v, v.desk.cancelHolds, jobPath(id)+"/cancel-holds", CancelHolds{}, "id", idText(id))
}
