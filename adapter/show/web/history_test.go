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

// TestHistoryPage checks that the page of ended jobs has pages.
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
}

// TestHistoryQuery checks that the page passes on what it is asked for, and refuses what it does not understand.
func TestHistoryQuery(t *testing.T) {
	a := &archive{cluster: small(), jobs: 1}
	h := pageOf(a, "/")
	get(t, h, "/history?user=ann&name=x&id=7&since=2026-11-01&until=2026-11-02")
	if q := a.asked[len(a.asked)-1]; q.Users[0] != "ann" || q.Names[0] != "x" || q.Jobs[0] != 7 || !q.Start.Equal(time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)) || !q.End.Equal(time.Date(2026, 11, 3, 0, 0, 0, 0, time.UTC)) {
		t.Errorf("asked %+v", q)
	}
	if q := a.asked[len(a.asked)-1]; q.Tasks[0] != (api.JobName{ID: 7}) {
		t.Errorf("asked %+v", q)
	}
	get(t, h, "/history?id=20_3")
	if q := a.asked[len(a.asked)-1]; len(q.Jobs) != 0 || q.Tasks[0] != (api.JobName{ID: 20, Task: 3, One: true}) {
		t.Errorf("asked %+v", q)
	}
	for _, text := range []string{"id=x", "id=20_x", "since=yesterday", "until=2026-13-01", "before=1"} {
		if w := get(t, h, "/history?"+text); w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), "is not understood") {
			t.Errorf("%s: %d %s", text, w.Code, w.Body)
		}
	}
}

// TestTasks checks that tasks of an array have their labels, and that the waiting ones share a line.
func TestTasks(t *testing.T) {
	c := small()
	task := func(id, n uint32, state string, step int) api.Job {
		return api.Job{ID: id, Array: 20, ArrayTask: n, ArrayLimit: 2, Name: "sweep", User: "ann", State: state, Step: step, Profile: "2@1m", Submit: after(-9)}
	}
	c.jobs = []api.Job{task(21, 1, "running", 1), task(22, 2, "queued", 0), task(23, 3, "queued", 0), {ID: 20, Array: 20, ArrayRest: "4-1000000", ArrayLimit: 2, State: "queued", Submit: after(-9)}}
	body := get(t, pageOf(c, "/"), "/?by=job").Body.String()
	for _, want := range []string{`<a href="job?id=21">20_1 sweep</a>`, `<a href="job?id=22">20_[2-1000000%2] sweep</a>`} {
		if !strings.Contains(body, want) {
			t.Errorf("no %s: %s", want, body)
		}
	}
	if n := strings.Count(body, `<a href="job?id=2`); n != 2 {
		t.Errorf("%d lines", n)
	}
	body = get(t, pageOf(c, "/"), "/?by=job&tasks=1").Body.String()
	for _, want := range []string{"20_1", "20_2", "20_3", "20_[4-1000000%2]"} {
		if !strings.Contains(body, want+" ") {
			t.Errorf("unfolded, no line of %s: %s", want, body)
		}
	}
	for address, want := range map[string]string{"/job?id=23": "<h1>Job 20_3 sweep</h1>", "/job?id=20": "<h1>Job 20_[4-1000000%2] </h1>"} {
		if body := get(t, pageOf(c, "/"), address).Body.String(); !strings.Contains(body, want) {
			t.Errorf("%s: no %s: %s", address, want, body)
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
