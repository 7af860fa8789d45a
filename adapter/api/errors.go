package api

import (
	"errors"
	"fmt"
	"net/http"
)

// The kinds of error that cross the wire. If a Backend's error is one of them (errors.Is), the
// Client's error is of the same kind.
var (
	ErrNotFound    = errors.New("not found")    // 404: no such evolving job
	ErrConflict    = errors.New("conflict")     // 409: not in the job's present state
	ErrForbidden   = errors.New("forbidden")    // 403: not this user's to do
	ErrInvalid     = errors.New("invalid")      // 400: the request makes no sense
	ErrUnavailable = errors.New("unavailable")  // 503: not now, the client asks again
	ErrDenied      = errors.New("unauthorised") // 401: the caller did not prove its identity
)

// Unknown returns the error for a job that does not exist, or that the caller may not know of.
func Unknown(id uint32) error {
	return Errorf(ErrNotFound, "job %d is not an evolving job, or not known yet", id)
}

// NotSeen returns the error for a job that the sidecar has not seen yet.
func NotSeen(id uint32) error {
	return Errorf(ErrUnavailable, "the sidecar has just started and has not seen job %d yet", id)
}

// Errorf returns an error of one of the kinds above whose text is only the sentence.
func Errorf(kind error, format string, args ...any) error {
	return &kindError{kind: kind, text: fmt.Sprintf(format, args...)}
}

type kindError struct {
	kind error
	text string
}

func (e *kindError) Error() string { return e.text }
func (e *kindError) Unwrap() error { return e.kind }

// kinds maps the kinds of error to statuses.
var kinds = []struct {
	kind   error
	status int
}{
	{ErrInvalid, http.StatusBadRequest},
	{ErrDenied, http.StatusUnauthorized},
	{ErrForbidden, http.StatusForbidden},
	{ErrNotFound, http.StatusNotFound},
	{ErrConflict, http.StatusConflict},
	{ErrUnavailable, http.StatusServiceUnavailable},
}

func statusOf(err error) int {
	for _, k := range kinds {
		if errors.Is(err, k.kind) {
			return k.status
		}
	}
	return http.StatusInternalServerError
}

// noRoute begins the answer for a path that this API does not have, perhaps one of a later version.
const noRoute = "there is no /v1/"
