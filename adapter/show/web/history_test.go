package web

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/api"
)

// archive is a cluster with a history: a job has ended each minute before noon.
type archive struct {
	*cluster
	asked []api.HistoryQuery
	jobs  int
}

func (a *archive) History(_ context.Context, q api.HistoryQuery) (h api.History, err error) {
	a.asked = append(a.asked, q)
	limit := q.Limit
	if limit == 0 {
		limit = api.MostHistory
	}
	for i := 1; i <= a.jobs; i++ {
		end := after(-i)
		if !(q.Before == api.Place{}) && end.Unix() >= q.Before.Ended || end.Before(q.Start) {
			continue
		}
		if len(h.Jobs) == limit {
			h.Next = api.Place{Ended: h.Jobs[limit-1].End.Unix(), Row: 1}.String()
			break
		}
		h.Jobs = append(h.Jobs, api.Job{ID: uint32(10_000 + i), Name: "<b>", User: "ann", State: "ended", EndState: "COMPLETED", Profile: "2@1m", Submit: end.Add(-time.Hour), Start: end.Add(-time.Minute), End: end,
			Past: []api.Span{{Step: 1, Start: end.Add(-time.Minute), End: end, Nodes: 2, NodeList: "n[1-2]"}}})
	}
	return h, nil
}

// TestHistoryPage checks that the page of ended jobs has pages, and passes on what it is asked for.
func TestHistoryPage(t *testing.T) {
	a := &archive{cluster: small(), jobs: 2*mostListed + 1}
	h := pageOf(a, "/")
	address, found := "/history", 0
	for range 3 {
		body := get(t, h, address).Body.String()
		found += strings.Count(body, `href="job?id=1`)
		if _, rest, more := strings.Cut(body, `<a href="history?before=`); more {
			before, _, _ := strings.Cut(rest, `"`)
			address = "/history?before=" + before
		}
		if strings.Contains(body, "<b>") || !strings.Contains(body, `data-label="Node-seconds">120</td>`) {
			t.Errorf("%s: %s", address, body)
		}
	}
	if found != a.jobs {
		t.Errorf("%d jobs are found, want %d", found, a.jobs)
	}
	get(t, h, "/history?user=ann&name=x&id=7&since=2026-11-01&until=2026-11-02")
	if q := a.asked[len(a.asked)-1]; q.Users[0] != "ann" || q.Names[0] != "x" || q.Jobs[0] != 7 || !q.Start.Equal(time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)) || !q.End.Equal(time.Date(2026, 11, 3, 0, 0, 0, 0, time.UTC)) {
		t.Errorf("asked %+v", q)
	}
	for _, text := range []string{"id=x", "since=yesterday", "until=2026-13-01", "before=1"} {
		if w := get(t, h, "/history?"+text); w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), "is not understood") {
			t.Errorf("%s: %d %s", text, w.Code, w.Body)
		}
	}
}

// TestChartOfThePast checks that a drawing has jobs that ended before the listed ones, and says if there are too many.
func TestChartOfThePast(t *testing.T) {
	a := &archive{cluster: small(), jobs: 30}
	a.cluster.jobs = append(a.cluster.jobs, api.Job{ID: 10_001, User: "ann", State: "ended", Submit: after(-61), End: after(-1)})
	body := get(t, pageOf(a, "/"), "/?span=1h&at="+"1795175100&ended=1&by=job").Body.String() // 11:45
	if n := strings.Count(body, `href="job?id=100`); n != 30 || strings.Contains(body, "than are drawn") {
		t.Errorf("%d jobs are drawn: %s", n, body)
	}
	a.jobs = mostEarlier*api.MostHistory + 100
	if body := get(t, pageOf(a, "/"), "/?span=96h&by=job").Body.String(); !strings.Contains(body, "More jobs ended in this time than are drawn") {
		t.Error("it does not say that jobs are missing")
	}
}
