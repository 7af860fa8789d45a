package web

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/evoslurm/evoslurm/adapter/api"
)

// choosing is a Reader with strategies; only root is an operator.
type choosing struct {
	*cluster
	who   string
	tried []string
	used  []string
}

func (c *choosing) Who() string { return c.who }

func (c *choosing) Strategies(context.Context) ([]api.Strategy, error) {
	return []api.Strategy{{Name: "noX", InUse: true}, {Name: "2X", Help: "<b>", Parameters: []api.StrategyParameter{{Name: "limit", Value: "2"}}}}, nil
}

func (c *choosing) TryStrategy(_ context.Context, name string, q api.StrategyRequest) (api.Trial, error) {
	if c.who != "root" {
		return api.Trial{}, api.Errorf(api.ErrForbidden, "strategies are for operators")
	}
	c.tried = append(c.tried, name+q.Parameters["limit"])
	return api.Trial{Present: api.StrategyPlan{Strategy: "noX", Makespan: 600}, Tried: api.StrategyPlan{Strategy: name, Makespan: 540},
		Jobs: []api.TrialJob{{ID: 12, Profile: "2@5m", Start: after(5), End: after(10), TriedStart: after(4), TriedEnd: after(9)}}}, nil
}

func (c *choosing) UseStrategy(_ context.Context, name string, _ api.StrategyRequest) (api.Strategy, error) {
	if c.who != "root" {
		return api.Strategy{}, api.Errorf(api.ErrForbidden, "strategies are for operators")
	}
	c.used = append(c.used, name)
	return api.Strategy{}, nil
}

func (c *choosing) CancelHolds(_ context.Context, id uint32) (api.Cancelled, error) {
	if c.who != "root" {
		return api.Cancelled{}, api.Errorf(api.ErrForbidden, "holds are cancelled by operators")
	}
	c.used = append(c.used, fmt.Sprint(id))
	return api.Cancelled{Job: id}, nil
}

// TestCancel: an operator cancels a job's holds on its page, by a form of his own.
func TestCancel(t *testing.T) {
	for who, want := range map[string]int{"root": http.StatusSeeOther, "user": http.StatusForbidden} {
		c := &choosing{cluster: small(), who: who}
		h := pageOf(c, "/")
		found := regexp.MustCompile(`action="cancel"><input type="hidden" name="form" value="(\w+)"><input type="hidden" name="id" value="12">`).FindStringSubmatch(get(t, h, "/job?id=12").Body.String())
		if found == nil {
			t.Fatal("the page has no form")
		}
		for sign, want := range map[string]int{found[1]: want, strings.Repeat("0", 64): http.StatusForbidden} {
			r := httptest.NewRequest(http.MethodPost, "/cancel", strings.NewReader(url.Values{"id": {"12"}, "form": {sign}}.Encode()))
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			if w.Code != want || want == http.StatusSeeOther && w.Header().Get("Location") != "job?id=12" {
				t.Errorf("%s: %d %v, want %d", who, w.Code, w.Header(), want)
			}
		}
		if len(c.used) > 0 != (who == "root") {
			t.Errorf("%s cancelled %v", who, c.used)
		}
	}
	c := &choosing{cluster: small(), who: "root"}
	c.is.Reservations = nil
	if body := get(t, pageOf(c, "/"), "/job?id=12").Body.String(); strings.Contains(body, `action="cancel"`) {
		t.Error("there is a form though nothing is held")
	}
}

// TestActs checks that only an operator's own forms act, not other users' or those from another
// site.
func TestActs(t *testing.T) {
	root, user := &choosing{cluster: small(), who: "root"}, &choosing{cluster: small(), who: "user"}
	p := Page{Reader: func(r *http.Request) (Reader, error) {
		if r.Header.Get("X-Test-User") == "root" {
			return root, nil
		}
		return user, nil
	}}
	h := p.Handler()
	send := func(method, address, who string, form url.Values, header ...string) *httptest.ResponseRecorder {
		r := httptest.NewRequest(method, address, strings.NewReader(form.Encode()))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("X-Test-User", who)
		for i := 0; i+1 < len(header); i += 2 {
			r.Header.Set(header[i], header[i+1])
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w
	}
	signs := map[string]string{}
	for _, who := range []string{"root", "user"} {
		w := send(http.MethodGet, "/strategies", who, nil)
		found := regexp.MustCompile(`name="form" value="([0-9a-f]{64})"`).FindStringSubmatch(w.Body.String())
		if w.Code != http.StatusOK || found == nil || strings.Contains(w.Body.String(), "<b>") {
			t.Fatalf("%d %s", w.Code, w.Body)
		}
		signs[who] = found[1]
	}
	form := url.Values{"strategy": {"2X"}, "parameters": {"limit=3"}, "form": {signs["root"]}}
	forged := url.Values{"strategy": {"2X"}, "form": {signs["user"]}}
	for name, c := range map[string]struct {
		*httptest.ResponseRecorder
		want int
	}{
		"a user's":           {send(http.MethodPost, "/use", "user", forged), 403},
		"made of a user's":   {send(http.MethodPost, "/use", "root", forged), 403},
		"without a sign":     {send(http.MethodPost, "/use", "root", url.Values{"strategy": {"2X"}}), 403},
		"of another site":    {send(http.MethodPost, "/use", "root", form, "Sec-Fetch-Site", "cross-site"), 403},
		"of another origin":  {send(http.MethodPost, "/use", "root", form, "Origin", "https://evil.example"), 403},
		"only looked at":     {send(http.MethodGet, "/use?"+form.Encode(), "root", nil), 405},
		"tried by a look":    {send(http.MethodGet, "/try?"+form.Encode(), "root", nil), 405},
		"bad parameters":     {send(http.MethodPost, "/try", "root", url.Values{"strategy": {"2X"}, "parameters": {"x"}, "form": {signs["root"]}}), 400},
		"of none":            {send(http.MethodPost, "/try", "root", url.Values{"form": {signs["root"]}}), 400},
		"a user's trial":     {send(http.MethodPost, "/try", "user", forged), 403},
		"in the address":     {send(http.MethodPost, "/use?"+form.Encode(), "root", nil), 403},
		"far too long a one": {send(http.MethodPost, "/use", "root", url.Values{"x": {strings.Repeat("x", mostForm)}}), 400},
	} {
		if c.Code != c.want {
			t.Errorf("a form %s: %d, want %d: %s", name, c.Code, c.want, c.Body)
		}
	}
	if len(root.tried)+len(root.used)+len(user.used) > 0 {
		t.Fatalf("something was done: %v %v %v", root.tried, root.used, user.used)
	}
	w := send(http.MethodPost, "/try", "root", form, "Sec-Fetch-Site", "same-origin")
	if body := w.Body.String(); w.Code != http.StatusOK || len(root.tried) != 1 || root.tried[0] != "2X3" || !strings.Contains(body, "−1m00s") || strings.Contains(body, "data-every") {
		t.Errorf("try: %d, tried %v: %s", w.Code, root.tried, body)
	}
	w = send(http.MethodPost, "/use", "root", form, "Sec-Fetch-Site", "same-origin")
	if w.Code != http.StatusSeeOther || w.Header().Get("Location") != "strategies" || len(root.used) != 1 || root.used[0] != "2X" {
		t.Errorf("use: %d %v, used %v", w.Code, w.Header(), root.used)
	}
}
