package api

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
)

// request is an authenticated request on its way to the backend.
type request struct {
	*http.Request
	caller caller
	body   []byte
	leave  func() // neither it nor its body counts as its user's or address's any more; nil: it never did
}

// flag returns a flag of the query: 1 or 0; the default is 0.
func (r request) flag(name string) (bool, error) {
	text := r.URL.Query().Get(name)
	if text == "" {
		return false, nil
	}
	set, err := strconv.ParseBool(text)
	if err != nil {
		return false, Errorf(ErrInvalid, "%s=%q: want 1 or 0", name, text)
	}
	return set, nil
}

// id returns the job in the request's path.
func (r request) id() (uint32, error) {
	id, err := strconv.ParseUint(r.PathValue("id"), 10, 32)
	if err != nil || id == 0 {
		return 0, Errorf(ErrInvalid, "invalid job ID %q", r.PathValue("id"))
	}
	return uint32(id), nil
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

// handler answers a request whose caller is known.
type handler func(ctx context.Context, r request) (any, error)

// strategyKind returns what the request is about: policies have paths of their own.
func strategyKind(r request) StrategyKind {
	if strings.HasPrefix(r.URL.Path, "/v1/policies") {
		return Resizing
	}
	return Planning
}
