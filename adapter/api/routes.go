package api

import (
	"context"
	"encoding/json"
	"errors"
	"log"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/sirupsen/logrus"
)

// request is an authenticated request on its way to the backend.
type request struct {
	*http.Request
	caller caller
	body   []byte
	leave  func() // it does not count as one of its user's any more; nil: it never did
}

// noRoute begins the answer for a path that this API does not have, perhaps one of a later version.
const noRoute = "there is no /v1/"

// routes returns the whole API. Done ctx ends the waits of next.
func (s *Server) routes(ctx context.Context) http.Handler {
	s.decoders = make(chan struct{}, maxDecoders)
	mux := http.NewServeMux()
	handle := func(pattern string, answer func(context.Context, request) (any, error)) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			r = sealed(r)
			v, err := s.answer(w, r, answer)
			if err != nil {
				s.refuse(w, r, err)
				return
			}
			s.reply(w, r, http.StatusOK, v)
		})
	}
	handle("GET /v1/status", s.status)
	handle("GET /v1/jobs", s.jobs)
	handle("GET /v1/cluster", s.cluster)
	handle("GET /v1/jobs/{id}", s.job)
	handle("GET /v1/jobs/{id}/allocation", s.allocation)
	handle("POST /v1/jobs/{id}/next", func(reqCtx context.Context, r request) (any, error) {
		return s.next(ctx, reqCtx, r)
	})
	handle("POST /v1/jobs/{id}/change", func(reqCtx context.Context, r request) (any, error) {
		return s.change(ctx, reqCtx, r)
	})
	handle("POST /v1/jobs/{id}/offer", func(reqCtx context.Context, r request) (any, error) {
		return s.offer(ctx, reqCtx, r)
	})
	handle("POST /v1/jobs/{id}/answer", func(reqCtx context.Context, r request) (any, error) {
		return s.answerOffer(ctx, reqCtx, r)
	})
	handle("POST /v1/jobs/{id}/progress", func(reqCtx context.Context, r request) (any, error) {
		return s.progress(ctx, reqCtx, r)
	})
	handle("POST /v1/jobs/{id}/cancel-holds", s.cancelHolds)
	handle("GET /v1/events", s.events)
	handle("GET /v1/strategies", s.strategies)
	handle("GET /v1/strategies/{name}", s.strategies)
	handle("POST /v1/strategies", s.changeStrategy)
	handle("POST /v1/strategies/{name}/use", s.changeStrategy)
	handle("POST /v1/strategies/{name}/try", s.changeStrategy)
	handle("GET /v1/policies", s.strategies)
	handle("POST /v1/policies/{name}/use", s.changeStrategy)
	for path, allow := range map[string]string{
		"/v1/status": "GET", "/v1/cluster": "GET", "/v1/jobs": "GET", "/v1/jobs/{id}": "GET", "/v1/jobs/{id}/allocation": "GET", "/v1/jobs/{id}/next": "POST", "/v1/jobs/{id}/change": "POST",
		"/v1/jobs/{id}/offer": "POST", "/v1/jobs/{id}/answer": "POST", "/v1/jobs/{id}/progress": "POST", "/v1/jobs/{id}/cancel-holds": "POST",
		"/v1/policies": "GET", "/v1/policies/{name}/use": "POST",
		"/v1/events": "GET", "/v1/strategies": "GET, POST", "/v1/strategies/{name}": "GET", "/v1/strategies/{name}/use": "POST", "/v1/strategies/{name}/try": "POST",
	} {
		mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Allow", allow)
			s.reply(w, r, http.StatusMethodNotAllowed, Error{Error: r.Method + " is not for " + r.URL.Path + "; use " + allow})
		})
	}
	mux.HandleFunc("/v1/", func(w http.ResponseWriter, r *http.Request) {
		r = sealed(r)
		_, err := s.answer(w, r, func(context.Context, request) (any, error) {
			return nil, Errorf(ErrNotFound, noRoute+"%s in this API", strings.TrimPrefix(r.URL.Path, "/v1/"))
		})
		s.refuse(w, r, err)
	})
	if s.Ready != nil {
		Health(mux, s.Ready)
	}
	if s.Page != nil {
		mux.HandleFunc(PagePath, s.page)
	}
	if s.Views != nil {
		mux.HandleFunc("/", s.views)
	}
	return mux
}

// answer reads and authenticates a request and asks f. What f does besides
// waiting is bounded by backendTimeout; next sets its own bound.
func (s *Server) answer(w http.ResponseWriter, r *http.Request, f func(context.Context, request) (any, error)) (any, error) {
	body, free, err := s.readBody(w, r)
	if err != nil {
		w.Header().Set("Connection", "close") // the body is not read
		return nil, err
	}
	defer free()
	// The deadline was for the request; left set, it would end the wait of next.
	if err := http.NewResponseController(w).SetReadDeadline(time.Time{}); err != nil {
		return nil, err
	}
	c, err := s.authenticate(r, body)
	if err != nil {
		return nil, &refusal{caller: c, err: err}
	}
	leave, err := s.enter(c, callerOf(r))
	if err != nil {
		return nil, &refusal{caller: c, err: err}
	}
	defer leave()
	ctx := r.Context()
	if c.known {
		ctx = context.WithValue(ctx, callerKey{}, c.uid)
	}
	v, err := f(ctx, request{Request: r, caller: c, body: body, leave: leave})
	if err != nil {
		return nil, &refusal{caller: c, err: err}
	}
	return v, nil
}

// refusal records the refused caller, for the log.
type refusal struct {
	caller caller
	err    error
}

func (e *refusal) Error() string { return e.err.Error() }
func (e *refusal) Unwrap() error { return e.err }

func (s *Server) status(ctx context.Context, r request) (any, error) {
	if err := s.mayAsk(r.caller); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, backendTimeout)
	defer cancel()
	is, err := s.Backend.Status(ctx)
	is.Now = time.Now()
	discreet(&is, s.discretion(ctx, r.caller))
	is.StrategyNote, is.PolicyNote = s.noteFor(r.caller, is.StrategyNote), s.noteFor(r.caller, is.PolicyNote)
	if sight := s.sight(ctx, r.caller); sight != nil && err == nil {
		is.Nodes, err = s.nodesShown(ctx, sight)
	}
	return is, err
}

func (s *Server) jobs(ctx context.Context, r request) (any, error) {
	if err := s.mayAsk(r.caller); err != nil {
		return nil, err
	}
	all, err := r.flag("all")
	if err != nil {
		return nil, err
	}
	plans, err := r.flag("plan")
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, backendTimeout)
	defer cancel()
	jobs, err := s.Backend.Jobs(ctx, all)
	if err != nil {
		return nil, err
	}
	visible := make([]Job, 0, len(jobs))
	everything, sees, with := s.seesAll(ctx, r.caller), s.seer(ctx, r.caller), s.discretion(ctx, r.caller)
	for _, j := range jobs {
		if everything || j.UID == r.caller.uid || j.Account != "" && sees(j.Account) {
			discreet(&j, with)
			visible = append(visible, j)
		}
	}
	return shorten(visible, plans), nil
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

func (s *Server) job(ctx context.Context, r request) (any, error) {
	id, err := r.id()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, backendTimeout)
	defer cancel()
	if err := s.mayRead(ctx, r.caller, id); err != nil {
		return nil, err
	}
	j, err := s.Backend.Job(ctx, id)
	with := s.discretion(ctx, r.caller)
	discreet(&j, with)
	return j, discreetError(err, with)
}

func (s *Server) allocation(ctx context.Context, r request) (any, error) {
	id, err := r.id()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, backendTimeout)
	defer cancel()
	if err := s.mayRead(ctx, r.caller, id); err != nil {
		return nil, err
	}
	a, err := s.Backend.Allocation(ctx, id)
	with := s.discretion(ctx, r.caller)
	discreet(&a, with)
	return a, discreetError(err, with)
}

func (s *Server) next(server, ctx context.Context, r request) (any, error) {
	return waiting(s, server, ctx, r, func(id uint32) Allocation { return Allocation{Job: id} }, func(ctx context.Context, id uint32, req NextRequest) (Allocation, error) {
		if req.From < 1 {
			return Allocation{}, Errorf(ErrInvalid, "from=%d: steps are numbered from 1", req.From)
		}
		return s.Backend.Next(ctx, id, req)
	})
}

// views guards the read-only pages beside the API.
func (s *Server) views(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "these pages can only be read", http.StatusMethodNotAllowed)
		return
	}
	if s.reading() != Anybody {
		c, err := s.authenticate(r, nil)
		if err == nil && (!s.seesAll(r.Context(), c) || s.HidesNodes != nil && s.HidesNodes() && !s.trusted(c) && !s.seer(r.Context(), c)("")) {
			err = Errorf(ErrForbidden, "these pages are not for you here")
		}
		if err != nil {
			s.refuse(w, r, &refusal{caller: c, err: err})
			return
		}
		leave, err := s.enter(c, callerOf(r))
		if err != nil {
			s.refuse(w, r, &refusal{caller: c, err: err})
			return
		}
		defer leave()
	}
	s.Views.ServeHTTP(w, r)
}

// id returns the job in the request's path.
func (r request) id() (uint32, error) {
	id, err := strconv.ParseUint(r.PathValue("id"), 10, 32)
	if err != nil || id == 0 {
		return 0, Errorf(ErrInvalid, "%q is no job id", r.PathValue("id"))
	}
	return uint32(id), nil
}

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

// refuse answers an error.
func (s *Server) refuse(w http.ResponseWriter, r *http.Request, err error) {
	status := statusOf(err)
	switch status {
	case http.StatusUnauthorized:
		w.Header().Set("WWW-Authenticate", mungeScheme)
	case http.StatusServiceUnavailable:
		w.Header().Set("Retry-After", "1")
	}
	s.logRefusal(r, status, err)
	s.reply(w, r, status, Error{Error: err.Error()})
}

// reply answers and, if the caller has proved its identity, proves the server's by MUNGE.
func (s *Server) reply(w http.ResponseWriter, r *http.Request, status int, v any) {
	body, err := json.Marshal(v)
	if err != nil {
		status, body = http.StatusInternalServerError, []byte(`{"error": "the answer cannot be written as JSON"}`)
	}
	body = append(body, '\n')
	s.prove(w, r, status, body)
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
