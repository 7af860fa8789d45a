package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/sirupsen/logrus"
)

// strategist has the strategies noX and klein, and records its calls.
type strategist struct {
	*fakeBackend
	did []string
	err error
}

func newStrategist() *strategist {
	return &strategist{fakeBackend: newBackend(uint32(os.Geteuid()))}
}

func (s *strategist) Strategies(context.Context, StrategyKind) ([]Strategy, error) {
	return []Strategy{{Name: "noX", InUse: true}, {Name: "klein"}}, s.err
}

func (s *strategist) UseStrategy(_ context.Context, kind StrategyKind, name string, r StrategyRequest, caller string) (Strategy, error) {
	s.did = append(s.did, fmt.Sprint([]string{"use ", "use policy "}[kind], name, r.Parameters, " by ", caller))
	return Strategy{Name: name, By: caller}, s.err
}

func (s *strategist) CancelHolds(_ context.Context, id uint32, r CancelHolds) (Cancelled, error) {
	s.did = append(s.did, fmt.Sprint("cancel holds of ", id, " by ", r.By))
	return Cancelled{Job: id}, s.err
}

func (s *strategist) Drain(_ context.Context, r *DrainRequest, caller string) (Drain, error) {
	s.did = append(s.did, fmt.Sprint("drain ", r != nil, " by ", caller))
	return Drain{By: caller}, s.err
}

func (s *strategist) ReloadStrategies(_ context.Context, caller string) ([]Strategy, error) {
	s.did = append(s.did, "reload by "+caller)
	return []Strategy{{Name: "noX"}}, s.err
}

func (s *strategist) TryStrategy(_ context.Context, name string, r StrategyRequest) (Trial, error) {
	s.did = append(s.did, fmt.Sprint("try ", name, r.Parameters))
	return Trial{Tried: StrategyPlan{Strategy: name, Parameters: r.Parameters}}, s.err
}

func TestStrategyRoundTrip(t *testing.T) {
	b := newStrategist()
	r := serve(t, b, nil)
	me := userName(uint32(os.Geteuid()))
	for _, address := range []string{r.unix, r.tcp} {
		c := client(t, address)
		set := StrategyRequest{Parameters: map[string]string{"expand_limit": "1.5"}}
		if all, err := c.Strategies(t.Context()); err != nil || len(all) != 2 || !all[0].InUse {
			t.Errorf("%s: list: %+v, %v", address, all, err)
		}
		if one, err := c.Strategy(t.Context(), "klein"); err != nil || one.Name != "klein" {
			t.Errorf("%s: show: %+v, %v", address, one, err)
		}
		if one, err := c.UseStrategy(t.Context(), "klein", set); err != nil || one.Name != "klein" || one.By != me {
			t.Errorf("%s: use: %+v, %v", address, one, err)
		}
		if one, err := c.UseStrategy(t.Context(), Configured, StrategyRequest{}); err != nil || one.Name != Configured {
			t.Errorf("%s: use what is configured: %+v, %v", address, one, err)
		}
		if trial, err := c.TryStrategy(t.Context(), "klein", set); err != nil || trial.Tried.Parameters["expand_limit"] != "1.5" {
			t.Errorf("%s: try: %+v, %v", address, trial, err)
		}
		if all, err := c.ReloadStrategies(t.Context()); err != nil || len(all) != 1 {
			t.Errorf("%s: reload: %+v, %v", address, all, err)
		}
		if one, err := c.UsePolicy(t.Context(), "egs", StrategyRequest{}); err != nil || one.Name != "egs" {
			t.Errorf("%s: use a policy: %+v, %v", address, one, err)
		}
		want := []string{"use kleinmap[expand_limit:1.5] by " + me, "use @configuredmap[] by " + me, "try kleinmap[expand_limit:1.5]", "reload by " + me, "use policy egsmap[] by " + me}
		if strings.Join(b.did, "\n") != strings.Join(want, "\n") {
			t.Errorf("%s: the backend did %q, want %q", address, b.did, want)
		}
		b.did = nil
		if _, err := c.Strategy(t.Context(), "nonsense"); !errors.Is(err, ErrNotFound) || !strings.Contains(err.Error(), "nonsense") {
			t.Errorf("%s: show nonsense: %v", address, err)
		}
		for _, kind := range []error{ErrInvalid, ErrConflict, ErrUnavailable} {
			b.err = Errorf(kind, "there is a reason")
			ctx, cancel := context.WithCancel(t.Context())
			if kind == ErrUnavailable {
				cancel() // the client would ask again
			}
			if _, err := c.UseStrategy(ctx, "klein", set); kind != ErrUnavailable && (!errors.Is(err, kind) || !strings.Contains(err.Error(), "there is a reason")) {
				t.Errorf("%s: %v came back as %v", address, b.err, err)
			}
			cancel()
		}
		b.did, b.err = nil, nil
	}
}

func TestBadStrategyRequests(t *testing.T) {
	b := newStrategist()
	r := serve(t, b, nil)
	hc := unixClient(r.unix)
	for _, c := range []struct {
		method, path, body string
		status             int
		want               string
	}{
		{"GET", "/v1/strategies/nonsense", "", 404, "nonsense"},
		{"GET", "/v1/strategies/klein/use", "", 405, "use POST"},
		{"PUT", "/v1/strategies/klein/try", "{}", 405, "use POST"},
		{"POST", "/v1/strategies/klein", "{}", 405, "use GET"},
		{"DELETE", "/v1/strategies/klein", "", 405, "use GET"},
		{"PUT", "/v1/strategies", "{}", 405, "use GET, POST"},
		{"DELETE", "/v1/strategies", "", 405, "use GET, POST"},
		{"POST", "/v1/strategies/klein/praise", "{}", 404, "/v1/strategies/klein/praise"},
		{"POST", "/v1/strategies/klein/use/now", "{}", 404, "/v1/strategies/klein/use/now"},
		{"POST", "/v1/strategies/klein/use", "", 400, "body"},
		{"POST", "/v1/strategies/klein/use", "{", 400, "body"},
		{"POST", "/v1/strategies/klein/use", "[]", 400, "body"},
		{"POST", "/v1/strategies/klein/use", "{} {}", 400, "more than one"},
		{"POST", "/v1/strategies/klein/use", `{"parameter": {}}`, 400, "parameter"},
		{"POST", "/v1/strategies/klein/use", `{"parameters": {"a": 1}}`, 400, "body"},
		{"POST", "/v1/strategies/klein/try", `{"parameters": ["a=1"]}`, 400, "body"},
		{"POST", "/v1/strategies", `{"parameters": {"a": "1"}}`, 400, "takes no parameters"},
		{"POST", "/v1/strategies", "", 400, "body"},
		{"POST", "/v1/strategies/klein/use", `{"parameters": {"a": "` + strings.Repeat("x", maxBody) + `"}}`, 400, "too large"},
	} {
		status, body := send(t, hc, c.method, "http://x"+c.path, "", c.body)
		var e Error
		if err := json.Unmarshal([]byte(body), &e); status != c.status || err != nil || !strings.Contains(e.Error, c.want) {
			t.Errorf("%s %s %.30s: %d %s; want %d and an error with %q", c.method, c.path, c.body, status, body, c.status, c.want)
		}
	}
	if len(b.did) > 0 {
		t.Errorf("the backend did %q", b.did)
	}
}

// TestStrategyRights checks that all read where reading is open, that operators change strategies,
// and that unauthenticated callers do not.
func TestStrategyRights(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Fatal("this needs root, to be other users")
	}
	operator := uint32(4242)
	isOperator := func(s *Server) { s.Operator = func(uid uint32) bool { return uid == operator } }
	closed := func(s *Server) { isOperator(s); s.Reading = nil }
	changes := []string{"/v1/strategies", "/v1/strategies/klein/use", "/v1/strategies/klein/try", "/v1/policies/egs/use", "/v1/jobs/12/cancel-holds", "/v1/drain", "/v1/resume"}
	reads := []string{"/v1/strategies", "/v1/strategies/klein"}
	b := newStrategist()
	for name, r := range map[string]*running{"open": serve(t, b, isOperator), "closed": serve(t, b, closed)} {
		ask := func(uid int, method, path string) (int, string) { // over TCP, with a credential unless uid is -1
			header, body := "", map[string]string{"POST": "{}"}[method]
			if uid >= 0 {
				header = authorization(encodeAs(t, uint32(uid), r.payload(method, path, []byte(body)), 60))
			}
			return send(t, http.DefaultClient, method, "http://"+r.tcp+path, header, body)
		}
		for _, path := range changes {
			for uid, want := range map[int]int{-1: 401, nobody: 403, int(operator): 200, 0: 200} {
				b.did = nil
				status, body := ask(uid, "POST", path)
				if status != want || (len(b.did) == 1) != (want == 200) {
					t.Errorf("%s: uid %d, POST %s: %d %s, the backend did %q; want %d", name, uid, path, status, body, b.did, want)
				}
			}
			b.did = nil
			if status, body := send(t, unixAs(nobody, r.unix), "POST", "http://x"+path, "", "{}"); status != 403 || len(b.did) > 0 || !strings.Contains(body, "operators") {
				t.Errorf("%s: a user on the Unix socket, POST %s: %d %s; want 403", name, path, status, body)
			}
		}
		for _, path := range reads {
			anonymous := 200
			if name == "closed" {
				anonymous = 401
			}
			for uid, want := range map[int]int{-1: anonymous, nobody: 200, int(operator): 200} {
				if status, body := ask(uid, "GET", path); status != want {
					t.Errorf("%s: uid %d, GET %s: %d %s; want %d", name, uid, path, status, body, want)
				}
			}
		}
	}
}

// secretive has a plugin whose parameter only operators may read, wherever it appears.
type secretive struct{ *fakeBackend }

const secret = "hunter2"

func (secretive) list() []Strategy {
	return []Strategy{
		{Name: "plug", State: "in use", InUse: true, LastFault: "cannot log in with " + secret, Parameters: []StrategyParameter{{Name: "token", Value: secret, Default: secret}}},
		{Name: "gone", State: "refused", Reason: "no such token: " + secret},
	}
}
func (s secretive) Strategies(context.Context, StrategyKind) ([]Strategy, error) {
	return s.list(), nil
}
func (s secretive) Status(context.Context) (Status, error) {
	note := "noX plans until it has started: " + secret
	return Status{StrategyNote: note, PolicyNote: note}, nil
}
func (s secretive) UseStrategy(context.Context, StrategyKind, string, StrategyRequest, string) (Strategy, error) {
	return Strategy{}, nil
}
func (s secretive) ReloadStrategies(context.Context, string) ([]Strategy, error) { return nil, nil }
func (s secretive) TryStrategy(context.Context, string, StrategyRequest) (Trial, error) {
	return Trial{}, nil
}

// TestParametersAreForOperators checks that only operators read a strategy's parameters, and that
// the status says who they are.
func TestParametersAreForOperators(t *testing.T) {
	operator, user := uint32(4001), uint32(4002)
	for _, reading := range []Reading{OwnJobs, AllJobs, Anybody} {
		s := &Server{Backend: secretive{newBackend(4000)}, Log: logrus.New(), Reading: func() Reading { return reading },
			Operator: func(uid uint32) bool { return uid == operator }}
		ask := func(uid *uint32, path string, answer handler, values ...string) string {
			v, err := visit[any](t.Context(), s.Visitor(uid), answer, path, nil, values...)
			if err != nil {
				t.Fatal(err)
			}
			text, err := json.Marshal(v)
			if err != nil {
				t.Fatal(err)
			}
			return string(text)
		}
		callers := map[*uint32]int{&operator: 1, &user: 0}
		if reading == Anybody {
			callers[nil] = 0
		}
		for uid, want := range callers {
			for path, text := range map[string]string{
				"list":     ask(uid, "/v1/strategies", s.desk(t.Context()).strategies),
				"show":     ask(uid, "/v1/strategies/plug", s.desk(t.Context()).strategies, "name", "plug"),
				"policies": ask(uid, "/v1/policies", s.desk(t.Context()).strategies),
				"status":   ask(uid, "/v1/status", s.desk(t.Context()).status),
			} {
				if path == "status" && strings.Contains(text, `"operator":true`) != (uid == &operator) {
					t.Errorf("%v: whether it is an operator: %s", uid == &operator, text)
				}
				if got := strings.Count(text, secret); min(got, 1) != want {
					t.Errorf("%s, %v: the secret is there %d times: %s", path, uid == &operator, got, text)
				}
			}
		}
	}
}
