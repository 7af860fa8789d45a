package web

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/evoslurm/evoslurm/adapter/api"
)

// overseen is a cluster that a user reads, or an operator.
type overseen struct {
	*cluster
	operator bool
	name     string
}

type visiting struct{ *overseen }

func (o visiting) Operates() bool { return o.operator }

func (o *overseen) Settings(context.Context) (api.Settings, error) {
	if !o.operator {
		return api.Settings{}, api.Errorf(api.ErrForbidden, "settings are for operators")
	}
	return api.Settings{Warnings: []string{`allow.users names "` + o.name + `", which does not exist`}, Settings: []api.Setting{
		{Key: "max_delay", Value: "30m0s", Configured: "1h0m0s", By: "root", At: after(-60)}, {Key: "max_holds", Value: "100", Configured: "100"}, {Key: "allow.users", Value: o.name, By: o.name, At: noon}}}, nil
}

func (o *overseen) Budget(context.Context) (api.Budget, error) {
	return api.Budget{Holds: 3, MostHolds: 100, Use: []api.BudgetUse{
		{Scope: "user", Name: o.name, Partition: o.name, Holds: 3, MostHolds: 50, Nodes: 2, MostNodes: 6, NodeHours: 1.25, MostNodeHours: 4}, {Scope: "partition", Partition: "main", Holds: 3, MostHolds: 100}},
		Delays: []api.BudgetDelay{{Partition: o.name, Budget: 3600, Jobs: 2, Longest: 61}}}, nil
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
	for name, s := range map[string]struct {
		reader Reader
		status int
		link   bool
	}{
		"an operator":         {visiting{&overseen{cluster: small(), operator: true}}, http.StatusOK, true},
		"a user":              {visiting{&overseen{cluster: small()}}, http.StatusForbidden, false},
		"a user's evosctl":    {&overseen{cluster: small()}, http.StatusForbidden, true},
		"a sidecar of before": {small(), http.StatusNotFound, false},
	} {
		h := pageOf(s.reader, "/")
		if code, body := get(t, h, "/overview").Code, get(t, h, "/").Body.String(); code != s.status || strings.Contains(body, `href="overview"`) != s.link {
			t.Errorf("%s: %d, want %d; a link: %v", name, code, s.status, !s.link)
		}
	}
}
