package api

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"os/user"
	"slices"
	"strconv"
	"strings"
	"time"
)

// strategyTimeout bounds an action on a strategy: a plugin may have to start.
const strategyTimeout = 40 * time.Second

// strategyKind returns what the request is about: policies have paths of their own.
func strategyKind(r request) StrategyKind {
	if strings.HasPrefix(r.URL.Path, "/v1/policies") {
		return Resizing
	}
	return Planning
}

// strategies lists all of a kind, or the one named in the path.
func (s *Server) strategies(ctx context.Context, r request) (any, error) {
	if err := s.mayAsk(r.caller); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, backendTimeout)
	defer cancel()
	all, err := s.Backend.Strategies(ctx, strategyKind(r))
	all = s.strategiesFor(r.caller, all)
	name := r.PathValue("name")
	if err != nil || name == "" {
		return all, err
	}
	for _, one := range all {
		if one.Name == name {
			return one, nil
		}
	}
	return nil, Errorf(ErrNotFound, "there is no strategy %q", name)
}

// changeStrategy uses or tries the strategy named in the path, or reloads.
func (s *Server) changeStrategy(ctx context.Context, r request) (any, error) {
	if !r.caller.known {
		return nil, Errorf(ErrDenied, "this needs a MUNGE credential")
	}
	kind := strategyKind(r)
	if !s.trusted(r.caller) {
		what := map[StrategyKind]string{Planning: "strategies", Resizing: "malleability policies"}[kind]
		return nil, Errorf(ErrForbidden, "%s are for operators (see operators in the configuration)", what)
	}
	var req StrategyRequest
	if err := readOne(r, &req); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, strategyTimeout)
	defer cancel()
	name := r.PathValue("name")
	switch {
	case name == "" && len(req.Parameters) > 0:
		return nil, Errorf(ErrInvalid, "the request's body: a reload takes no parameters")
	case name == "":
		return s.Backend.ReloadStrategies(ctx, userName(r.caller.uid))
	case strings.HasSuffix(r.URL.Path, "/try"):
		return s.Backend.TryStrategy(ctx, name, req)
	}
	return s.Backend.UseStrategy(ctx, kind, name, req, userName(r.caller.uid))
}

// readOne reads the one request that is a body.
func readOne(r request, into any) error {
	dec := json.NewDecoder(strings.NewReader(string(r.body)))
	dec.DisallowUnknownFields()
	if err := dec.Decode(into); err != nil {
		return Errorf(ErrInvalid, "the request's body: %v", err)
	}
	if dec.More() {
		return Errorf(ErrInvalid, "the request's body: there is more than one request")
	}
	return nil
}

// userName returns the caller in the event log.
func userName(uid uint32) string {
	id := strconv.FormatUint(uint64(uid), 10)
	if u, err := user.LookupId(id); err == nil {
		return u.Username
	}
	return id
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

// strategiesFor returns strategies as the caller may read them. Parameters may be secret (e.g. a
// licence server's token), and a plugin's faults may repeat them: both are only for operators.
func (s *Server) strategiesFor(c caller, all []Strategy) []Strategy {
	if s.trusted(c) {
		return all
	}
	all = slices.Clone(all)
	for i := range all {
		all[i].Parameters, all[i].LastFault = []StrategyParameter{}, ""
		if all[i].State == "refused" {
			all[i].Reason = "operators see why"
		}
	}
	return all
}

// noteFor returns a strategy's or policy's note as the caller may read it: the text after the colon
// is the plugin's fault.
func (s *Server) noteFor(c caller, note string) string {
	if !s.trusted(c) {
		note, _, _ = strings.Cut(note, ": ")
	}
	return note
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
