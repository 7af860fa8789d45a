package web

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/api"
)

// overseen is a cluster that a user reads, or an operator.
type overseen struct {
	*cluster
	operator bool
	idle     bool // no job ever ran
	name     string
}

func (o *overseen) Status(context.Context) (api.Status, error) {
	o.status.Operator = o.operator
	return o.status, nil
}

func (o *overseen) Settings(context.Context) (api.Settings, error) {
	if !o.operator {
		return api.Settings{}, api.Errorf(api.ErrForbidden, "settings are for operators")
	}
	return api.Settings{Warnings: []string{`allow.users names "` + o.name + `", which does not exist`}, Settings: []api.Setting{
		{Key: "max_delay", Value: "30m0s", Configured: "1h0m0s", By: "root", At: after(-60)}, {Key: "max_holds", Value: "100", Configured: "100"}, {Key: "allow.users", Value: o.name, By: o.name, At: noon}}}, nil
}

func (o *overseen) Budget(context.Context) (api.Budget, error) {
	if o.idle {
		return api.Budget{MostHolds: 100}, nil
	}
	return api.Budget{Holds: 3, MostHolds: 100, Use: []api.BudgetUse{
		{Scope: "user", Name: o.name, Partition: o.name, Holds: 3, MostHolds: 50, Nodes: 2, MostNodes: 6, NodeHours: 1.25, MostNodeHours: 4}, {Scope: "partition", Partition: "main", Holds: 3, MostHolds: 100}},
		Delays: []api.BudgetDelay{{Partition: o.name, Budget: 3600, Jobs: 2, Longest: 61}}}, nil
}

// Report has a promise kept and one late on each day, and a stock job delayed by as many minutes as the day is ago; bob
// has a week's share.
func (o *overseen) Report(_ context.Context, q api.ReportQuery) (api.Report, error) {
	if o.name == "" {
		return api.Report{}, api.Errorf(api.ErrUnavailable, "other reports are being made")
	}
	if o.idle {
		return api.Report{Rows: make([]api.ReportRow, 28)}, nil
	}
	r := api.Report{Total: api.ReportRow{Jobs: 3}, Causes: []api.ReportCause{{Outcome: "broken", Cause: "lapsed: " + o.name, Promises: 9}}}
	if q.By == "user" {
		r.Rows = []api.ReportRow{{Name: o.name, Jobs: 3, HeldIdle: 1.5}}
		return r, nil
	}
	for day := q.Start; day.Before(q.End); day = day.AddDate(0, 0, 1) {
		ago := int64(noon.Sub(day).Hours() / 24)
		r.Rows = append(r.Rows, api.ReportRow{Name: day.Format(time.DateOnly), HeldIdle: 0.5, Allocated: 2, Promises: api.ReportPromises{Kept: 1, Late: 1},
			Delayed: api.ReportDelayed{Jobs: 1, Seconds: 60 * ago, Most: 60 * ago}})
	}
	return r, nil
}

// TestWeeks: a week has the days up to today, and none twice.
func TestWeeks(t *testing.T) {
	a := &overview{Now: noon}
	if err := a.costs(t.Context(), &overseen{name: "alice"}); err != nil {
		t.Fatal(err)
	}
	for n, w := range a.Weeks {
		if first := int64(7 * n); w.Kept() != "7 of 14 (50 %)" || w.HeldIdle != 3.5 || w.Delayed != (api.ReportDelayed{Jobs: 7, Seconds: 60 * (7*first + 21), Most: 60 * (first + 6)}) || w.To != noon.Truncate(24*time.Hour).AddDate(0, 0, -7*n) {
			t.Errorf("week %d: %+v", n, w)
		}
	}
	if a.Last.From != a.Weeks[0].From || a.Total.HeldIdle != 14 || a.Total.Delayed.Jobs != 28 {
		t.Errorf("last %+v, total %+v", a.Last, a.Total)
	}
	if kept := (week{}).Kept(); kept != "none was due" {
		t.Error(kept)
	}
}

// TestOverview: operators get the overview, with a link to it on each page, and others get neither.
func TestOverview(t *testing.T) {
	for name, c := range map[string]*overseen{"small": {cluster: small(), name: "alice"}, "hostile": {cluster: hostile(), name: hostile().jobs[0].User}} {
		c.status.SlurmShare, c.status.MostShare, c.operator = 0.0034, 0.01, true
		w := get(t, pageOf(c, "/"), "/overview")
		if w.Code != http.StatusOK {
			t.Fatalf("%d %s", w.Code, w.Body)
		}
		golden(t, name+"-overview.html", sumOf.ReplaceAll(w.Body.Bytes(), []byte("?v=SUM")))
	}
	if body := get(t, pageOf(&overseen{cluster: small(), operator: true}, "/"), "/overview").Body.String(); !strings.Contains(body, "Not shown: other reports are being made") || !strings.Contains(body, "3 of 100 reservations") {
		t.Errorf("without a report: %s", body)
	}
	if body := get(t, pageOf(&overseen{cluster: small(), operator: true, idle: true, name: "alice"}, "/"), "/overview").Body.String(); !strings.Contains(body, "No evolving job ran in the last 28 days") || !strings.Contains(body, "Nothing is held ahead of time") || strings.Contains(body, "none was due") {
		t.Errorf("before the first job: %s", body)
	}
	for name, s := range map[string]struct {
		reader Reader
		status int
		link   bool
	}{
		"an operator":         {&overseen{cluster: small(), operator: true}, http.StatusOK, true},
		"a user":              {&overseen{cluster: small()}, http.StatusForbidden, false},
		"a sidecar of before": {small(), http.StatusNotFound, false},
	} {
		h := pageOf(s.reader, "/")
		if code, body := get(t, h, "/overview").Code, get(t, h, "/").Body.String(); code != s.status || strings.Contains(body, `href="overview"`) != s.link {
			t.Errorf("%s: %d, want %d; a link: %v", name, code, s.status, !s.link)
		}
	}
}
