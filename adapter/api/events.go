package api

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// MaxEvents is how many events one answer has at most.
const MaxEvents = 1000

// events returns the events that the caller may read: about jobs by the rules for jobs, the
// sidecar's own only to operators.
func (s *Server) events(ctx context.Context, r request) (any, error) {
	if err := s.mayAsk(r.caller); err != nil {
		return nil, err
	}
	q, err := parseQuery(r.URL.Query())
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, backendTimeout)
	defer cancel()
	if q.Job != 0 {
		if err := s.mayRead(ctx, r.caller, q.Job); err != nil {
			return nil, err
		}
	}
	q.Sidecar = s.trusted(r.caller)
	if !s.seesAll(ctx, r.caller) {
		q.Owner = &r.caller.uid
		if j, err := s.Backend.Job(ctx, q.Job); q.Job != 0 && err == nil {
			q.Owner = &j.UID // not of one that had the same number before
		}
	}
	events, err := s.Backend.Events(ctx, q)
	with := s.discretion(ctx, r.caller)
	for i := range events {
		discreet(&events[i], with)
	}
	if events == nil {
		events = []Event{}
	}
	return events, err
}

// parseQuery reads what values writes.
func parseQuery(v url.Values) (EventQuery, error) {
	q := EventQuery{Limit: MaxEvents}
	for name, texts := range v {
		var err error
		var n uint64
		switch text := texts[0]; name {
		case "job":
			n, err = strconv.ParseUint(text, 10, 32)
			q.Job = uint32(n)
		case "after":
			n, err = strconv.ParseUint(text, 10, 63)
			q.After = int64(n)
		case "limit":
			n, err = strconv.ParseUint(text, 10, 31)
			q.Limit = min(int(n), MaxEvents)
		case "since":
			q.Since, err = time.Parse(time.RFC3339, text)
		default:
			return q, Errorf(ErrInvalid, "%s=%q: want job, after, since or limit", name, text)
		}
		if err != nil {
			return q, Errorf(ErrInvalid, "%s=%q is not understood", name, texts[0])
		}
	}
	if q.Limit == 0 {
		q.Limit = MaxEvents
	}
	return q, nil
}

// values returns the query as it travels.
func (q EventQuery) values() url.Values {
	v := url.Values{}
	for name, n := range map[string]int64{"job": int64(q.Job), "after": q.After, "limit": int64(q.Limit)} {
		if n != 0 {
			v.Set(name, strconv.FormatInt(n, 10))
		}
	}
	if !q.Since.IsZero() {
		v.Set("since", q.Since.Format(time.RFC3339))
	}
	return v
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
