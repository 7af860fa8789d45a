package api

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
)

// Visitor asks the server within its process, with one caller's rights: it learns nothing that the
// caller could not read over HTTP. The page uses it as commands use a Client.
type Visitor struct {
	server *Server
	caller caller
}

// Visitor returns a visitor for a user; uid is nil for an unauthenticated caller.
func (s *Server) Visitor(uid *uint32) Visitor {
	v := Visitor{server: s}
	if uid != nil {
		v.caller = caller{known: true, uid: *uid}
	}
	return v
}

// visit has a route answer.
func visit[T any](ctx context.Context, v Visitor, answer func(context.Context, request) (any, error), path string, body any, values ...string) (T, error) {
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

func idText(id uint32) string { return strconv.FormatUint(uint64(id), 10) }

// Status returns the sidecar's.
func (v Visitor) Status(ctx context.Context) (Status, error) {
	return visit[Status](ctx, v, v.server.status, "/v1/status", nil)
}

// Jobs returns the evolving jobs that the caller may see, the ended ones too if all is set.
func (v Visitor) Jobs(ctx context.Context, all bool) ([]Job, error) {
	return visit[[]Job](ctx, v, v.server.jobs, jobsPath(all, true), nil)
}

// Job returns one evolving job.
func (v Visitor) Job(ctx context.Context, id uint32) (Job, error) {
	return visit[Job](ctx, v, v.server.job, jobPath(id), nil, "id", idText(id))
}

// Cluster returns what exists besides evolving jobs.
func (v Visitor) Cluster(ctx context.Context) (Cluster, error) {
	return visit[Cluster](ctx, v, v.server.cluster, "/v1/cluster", nil)
}

// Events reads the event log, oldest first.
func (v Visitor) Events(ctx context.Context, q EventQuery) ([]Event, error) {
	return visit[[]Event](ctx, v, v.server.events, "/v1/events?"+q.values().Encode(), nil)
}

// Strategies lists all strategies.
func (v Visitor) Strategies(ctx context.Context) ([]Strategy, error) {
	return visit[[]Strategy](ctx, v, v.server.strategies, "/v1/strategies", nil)
}

// TryStrategy plans the present state with a strategy and acts on nothing. For operators.
func (v Visitor) TryStrategy(ctx context.Context, name string, q StrategyRequest) (Trial, error) {
	return visit[Trial](ctx, v, v.server.changeStrategy, "/v1/strategies/"+url.PathEscape(name)+"/try", q, "name", name)
}

// UseStrategy puts a strategy in use, between two cycles. For operators.
func (v Visitor) UseStrategy(ctx context.Context, name string, q StrategyRequest) (Strategy, error) {
	return visit[Strategy](ctx, v, v.server.changeStrategy, "/v1/strategies/"+url.PathEscape(name)+"/use", q, "name", name)
}

// PagePath is the path of the page on the Unix socket.
const PagePath = "/web/"

type visitorKey struct{}

// VisitorOf returns the reader of the page.
func VisitorOf(r *http.Request) (Visitor, error) {
	v, ok := r.Context().Value(visitorKey{}).(Visitor)
	if !ok {
		return v, Errorf(ErrDenied, "nobody has said who is asking")
	}
	return v, nil
}

// page serves the page to callers on the Unix socket. A browser has no MUNGE: "evosctl web" reads
// the API for it.
func (s *Server) page(w http.ResponseWriter, r *http.Request) {
	p, ok := r.Context().Value(peerKey{}).(peer)
	if !ok {
		s.refuse(w, r, Errorf(ErrNotFound, "there is no page on this address: call evosctl web, which opens one"))
		return
	}
	if p.err != nil {
		s.refuse(w, r, p.err)
		return
	}
	v := s.Visitor(&p.uid)
	leave, err := s.enter(v.caller, callerOf(r))
	if err != nil {
		s.refuse(w, r, err)
		return
	}
	defer leave()
	s.Page.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), visitorKey{}, v)))
}

// Who returns a key that distinguishes visitors.
func (v Visitor) Who() string { return fmt.Sprint(v.caller.known, v.caller.uid) }

// Sees returns a key for what a visitor may read: equal for all who may read everything.
func (v Visitor) Sees(ctx context.Context) string {
	if v.server.seesAll(ctx, v.caller) && v.server.sight(ctx, v.caller) == nil {
		return "everything"
	}
	return v.Who()
}
