package api

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/sirupsen/logrus"
)

// setter has one setting, and holds of two users.
type setter struct {
	*fakeBackend
	did []string
}

func (s *setter) Settings(context.Context) (Settings, error) {
	return Settings{Settings: []Setting{{Key: "max_delay", Value: "30m0s", Configured: "1h0m0s", By: "ann"}}}, nil
}

func (s *setter) ChangeSettings(ctx context.Context, r SettingsRequest, caller string) (Settings, error) {
	s.did = append(s.did, fmt.Sprint(r.Set, r.Add, r.Remove, r.Configured, " by ", caller))
	return s.Settings(ctx)
}

func (s *setter) Access(_ context.Context, uid uint32, q AccessQuery) (Access, error) {
	return Access{Allowed: q.Account != "bad", Reason: fmt.Sprint(uid, q), Unchecked: []string{"qos"}}, nil
}

func (s *setter) Power(context.Context) (Power, error) {
	return Power{Mode: "act", Nodes: 3, Naps: []PowerNap{{Nodes: 3, NodeList: "n[1-3]"}}}, nil
}

func (s *setter) PowerHistory(context.Context) (PowerHistory, error) {
	return PowerHistory{Mode: "act", Hour: 9, Partitions: []PowerWeek{{Partition: "main", Hours: []PowerHour{{Weeks: 2, Reserve: 3}}}}}, nil
}

func (s *setter) Budget(context.Context) (Budget, error) {
	return Budget{Limits: []Setting{{Key: "max_holds", Value: "7", By: "ann"}}, Holds: 5, MostHolds: 7, Use: []BudgetUse{
		{Scope: "user", Name: userName(4002), Holds: 2}, {Scope: "user", Name: "bob", Holds: 3}, {Scope: "account", Name: userName(4002), Holds: 5}},
		Delays:  []BudgetDelay{{Partition: "main", Jobs: 1}},
		Growths: []BudgetGrowth{{UID: 1, NodeSeconds: 5}, {UID: 4002, NodeSeconds: 6}},
		Moved:   []BudgetMoved{{Job: 8, User: "bob"}, {Job: 9, User: userName(4002)}}}, nil
}

// TestSettings: requests and answers arrive as they are.
func TestSettings(t *testing.T) {
	b := &setter{fakeBackend: newBackend(4000)}
	r := serve(t, b, nil)
	me := uint32(os.Geteuid())
	for _, address := range []string{r.unix, r.tcp} {
		c, ctx := client(t, address), t.Context()
		got, err1 := c.ChangeSettings(ctx, SettingsRequest{Set: map[string]string{"max_delay": "30m"}, Add: map[string][]string{"allow.users": {"bob"}}, Configured: []string{"max_holds"}})
		all, err2 := c.Settings(ctx)
		if err := errors.Join(err1, err2); err != nil || !cmp.Equal(got, all) || len(all.Settings) != 1 {
			t.Errorf("%s: %v, then %v: %v", address, got, all, err)
		}
		if want := "map[max_delay:30m] map[allow.users:[bob]] map[] [max_holds] by " + userName(me); len(b.did) != 1 || b.did[0] != want {
			t.Errorf("%s: the backend did %q, want %q", address, b.did, want)
		}
		a, err1 := c.Access(ctx, AccessQuery{Account: "bad", QOS: "a&b", Partition: "x,y"})
		budget, err2 := c.Budget(ctx)
		if err := errors.Join(err1, err2); err != nil || a.Allowed || a.Reason != fmt.Sprint(me, AccessQuery{"bad", "a&b", "x,y"}) || len(budget.Use) != 3 {
			t.Errorf("%s: %+v, %+v: %v", address, a, budget, err)
		}
		b.did = nil
	}
}

// TestSettingsRights: only operators read and change settings, and others learn only what is their own.
func TestSettingsRights(t *testing.T) {
	b, user := &setter{fakeBackend: newBackend(4000)}, uint32(4002)
	s := &Server{Backend: b, Log: logrus.New(), Reading: func() Reading { return AllJobs }}
	d := s.desk(t.Context())
	for uid, want := range map[*uint32]error{&user: ErrForbidden, nil: ErrDenied} {
		for _, body := range []any{nil, SettingsRequest{Set: map[string]string{"max_delay": "1h"}}} {
			if _, err := visit[Settings](t.Context(), s.Visitor(uid), d.settings, "/v1/settings", body); !errors.Is(err, want) || len(b.did) > 0 {
				t.Errorf("settings of %v: %v, want %v; the backend did %q", uid, err, want, b.did)
			}
		}
	}
	own, err := s.Visitor(&user).Budget(t.Context())
	if want := (Budget{Limits: []Setting{{Key: "max_holds", Value: "7"}}, Holds: 2, MostHolds: 7, Use: []BudgetUse{{Scope: "user", Name: userName(4002), Holds: 2}}, Delays: []BudgetDelay{},
		Growths: []BudgetGrowth{{UID: 4002, NodeSeconds: 6}}, Moved: []BudgetMoved{{Job: 9, User: userName(4002)}}}); err != nil || !cmp.Equal(own, want) {
		t.Errorf("%v\n%s", err, cmp.Diff(want, own))
	}
	for uid, want := range map[*uint32]error{&user: nil, nil: ErrDenied} {
		_, err1 := s.Visitor(uid).Budget(t.Context())
		_, err2 := visit[Access](t.Context(), s.Visitor(uid), d.access, "/v1/access", nil)
		if !errors.Is(err1, want) || !errors.Is(err2, want) {
			t.Errorf("budget and access of %v: %v, %v", uid, err1, err2)
		}
	}
}

// TestPowerRights: operators read the nodes' power and what was learnt, and nobody else does.
func TestPowerRights(t *testing.T) {
	user, root := uint32(4002), uint32(0)
	s := &Server{Backend: &setter{fakeBackend: newBackend(4000)}, Log: logrus.New(), Reading: func() Reading { return AllJobs }}
	d := s.desk(t.Context())
	for uid, want := range map[*uint32]error{&user: ErrForbidden, nil: ErrForbidden, &root: nil} {
		p, err1 := visit[Power](t.Context(), s.Visitor(uid), d.power, "/v1/power", nil)
		h, err2 := visit[PowerHistory](t.Context(), s.Visitor(uid), d.power, "/v1/power/history", nil)
		if !errors.Is(err1, want) || !errors.Is(err2, want) || want == nil && (p.Nodes != 3 || h.Hour != 9) {
			t.Errorf("%+v, %v; %+v, %v", p, err1, h, err2)
		}
	}
}

func TestBadSettingsRequests(t *testing.T) {
	b := &setter{fakeBackend: newBackend(uint32(os.Geteuid()))}
	hc := unixClient(serve(t, b, nil).unix)
	for _, c := range []struct {
		method, path, body string
		status             int
		want               string
	}{
		{"PUT", "/v1/settings", "{}", 405, "use GET, POST"},
		{"POST", "/v1/budget", "{}", 405, "use GET"},
		{"POST", "/v1/settings", "", 400, "body"},
		{"POST", "/v1/settings", `{"set": {"max_delay": 5}}`, 400, "body"},
		{"POST", "/v1/settings", `{"sets": {}}`, 400, "sets"},
		{"POST", "/v1/settings", `{"add": {"allow.users": ["` + strings.Repeat("x", maxBody) + `"]}}`, 400, "too large"},
	} {
		status, text := send(t, hc, c.method, "http://x"+c.path, "", c.body)
		if status != c.status || !strings.Contains(text, c.want) || len(b.did) > 0 {
			t.Errorf("%s %s %.40s: %d %.200s, want %d with %q; the backend did %q", c.method, c.path, c.body, status, text, c.status, c.want, b.did)
		}
	}
}
