package api

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os/exec"
	"strings"
)

// silence means that no server answered until a context ended; it holds the last failure and the
// context's error.
type silence struct {
	address string
	last    error
	done    error
}

func (s silence) Error() string {
	why := s.last.Error()
	if errors.Is(s.last, s.done) {
		why = "nothing came in time"
	}
	return fmt.Sprintf("the sidecar at %s does not answer: %s", s.address, why)
}

func (s silence) Unwrap() []error { return []error{s.done, s.last} }

// awayError is a failure that may pass.
type awayError struct{ error }

func (e awayError) Unwrap() error { return e.error }

func away(err error) bool {
	var a awayError
	return errors.As(err, &a)
}

// mungeFailure classifies a failed munge or unmunge; other errors are as otherwise says.
func (c *Client) mungeFailure(err, otherwise error) error {
	var m *mungeError
	switch {
	case errors.As(err, &m) && m.away():
		return awayError{err}
	case errors.Is(err, exec.ErrNotFound):
		return fmt.Errorf("%w: it is needed to reach the sidecar at %s", err, c.address)
	}
	return otherwise
}

// failure returns the error that an answer reports.
func (c *Client) failure(status int, data []byte) error {
	var e Error
	if json.Unmarshal(data, &e) != nil || e.Error == "" {
		e.Error = fmt.Sprintf("the server at %s answered %d %s; is it a sidecar?", c.address, status, http.StatusText(status))
	}
	if status == http.StatusNotFound && strings.HasPrefix(e.Error, noRoute) {
		e.Error = fmt.Sprintf("the sidecar at %s is older than this command: %s", c.address, e.Error)
	}
	e.Error = Printable(strings.ReplaceAll(e.Error, "\n", "; "))
	err := errors.New(e.Error)
	for _, k := range kinds {
		if k.status == status {
			err = Errorf(k.kind, "%s", e.Error)
		}
	}
	switch status {
	case http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return awayError{err}
	}
	return err
}
