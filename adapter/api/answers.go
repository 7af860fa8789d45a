package api

import (
	"context"
	"encoding/json"
	"errors"
	"log"
	"net/http"
	"strings"
	"time"

	"github.com/sirupsen/logrus"
)

// front takes requests from the connections and writes the answers.
type front struct {
	auth   *authenticator
	shares *shares
	rights *rights
	log    logrus.FieldLogger
}

// handle answers a request by a handler, and proves the answer.
func (f *front) handle(w http.ResponseWriter, r *http.Request, h handler) {
	r = sealed(r)
	v, leave, err := f.answer(w, r, h)
	defer leave() // once the caller has read the answer
	if err != nil {
		f.refuse(w, r, err)
		return
	}
	f.reply(w, r, http.StatusOK, v)
}

// answer reads and authenticates a request and has h answer it. It counts as the caller's until leave is called. What h does besides
// waiting is bounded by backendTimeout; next sets its own bound.
func (f *front) answer(w http.ResponseWriter, r *http.Request, h handler) (v any, leave func(), err error) {
	leave = func() {}
	body, free, err := f.shares.readBody(w, r, f.rights.acts, false)
	if err != nil {
		if r.ProtoMajor == 1 {
			w.Header().Set("Connection", "close") // the body is not read; a Doorman's line stays
		}
		return nil, leave, err
	}
	defer free()
	// The deadline was for the request; left set, it would end the wait of next.
	if err := http.NewResponseController(w).SetReadDeadline(time.Time{}); err != nil {
		return nil, leave, err
	}
	c, err := f.auth.authenticate(r, body)
	if err != nil {
		return nil, leave, &refusal{caller: c, err: err}
	}
	if leave, err = f.shares.enter(c, callerOf(r)); err != nil {
		return nil, leave, &refusal{caller: c, err: err}
	}
	ctx := r.Context()
	if c.known {
		ctx = context.WithValue(ctx, callerKey{}, c.uid)
	}
	waits := func() { leave(); free() }
	if v, err = h(ctx, request{Request: r, caller: c, body: body, leave: waits}); err != nil {
		return nil, leave, &refusal{caller: c, err: err}
	}
	return v, leave, nil
}

// refusal records the refused caller, for the log.
type refusal struct {
	caller caller
	err    error
}

func (e *refusal) Error() string { return e.err.Error() }
func (e *refusal) Unwrap() error { return e.err }

// refuse answers an error.
func (f *front) refuse(w http.ResponseWriter, r *http.Request, err error) {
	status := statusOf(err)
	switch status {
	case http.StatusUnauthorized:
		w.Header().Set("WWW-Authenticate", mungeScheme)
	case http.StatusServiceUnavailable:
		w.Header().Set("Retry-After", "1")
	}
	f.logRefusal(r, status, err)
	f.reply(w, r, status, Error{Error: err.Error()})
}

// reply answers and, if the caller has proved its identity, proves the server's by MUNGE.
func (f *front) reply(w http.ResponseWriter, r *http.Request, status int, v any) {
	body, err := json.Marshal(v)
	if err != nil {
		status, body = http.StatusInternalServerError, []byte(`{"error": "the answer cannot be written as JSON"}`)
	}
	body = append(body, '\n')
	f.auth.prove(w, r, status, body)
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_, _ = w.Write(body) // an error means that the caller hung up
}

// quietLog passes net/http's own messages (broken handshakes and such) on at debug level.
func quietLog(l logrus.FieldLogger) *log.Logger {
	return log.New(debugWriter{l}, "", 0)
}

type debugWriter struct{ log logrus.FieldLogger }

func (w debugWriter) Write(b []byte) (int, error) {
	w.log.Debug(strings.TrimSpace(string(b)))
	return len(b), nil
}

// logRefusal logs what an administrator looks for: refused callers with the reason, and the
// sidecar's own failures.
func (f *front) logRefusal(r *http.Request, status int, err error) {
	who := callerOf(r)
	entry := f.log.WithFields(logrus.Fields{"method": r.Method, "path": r.URL.Path, "from": r.RemoteAddr, "status": status})
	var ref *refusal
	if errors.As(err, &ref) && (ref.caller.known || ref.caller.uid != 0) {
		entry = entry.WithField("uid", ref.caller.uid)
	}
	if errors.As(err, &ref) && ref.caller.known {
		who = holder{known: true, uid: ref.caller.uid}
	}
	level, text := logrus.DebugLevel, err.Error()
	switch {
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		level, text = logrus.WarnLevel, "refused: "+text
	case status == http.StatusServiceUnavailable:
		level = logrus.InfoLevel
	case status >= http.StatusInternalServerError && r.Context().Err() == nil:
		level, text = logrus.ErrorLevel, "request failed: "+text
	}
	if level == logrus.DebugLevel {
		entry.Debug(text)
		return
	}
	f.shares.lines.write(who, time.Now(), entry, level, text)
}
