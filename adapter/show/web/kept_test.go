package web

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/api"
)

// visitor is a Reader that is identified by what it sees, and counts queries of jobs.
type visitor struct {
	*cluster

	sees  string
	asked *atomic.Int32
}

func (v visitor) Sees(context.Context) string { return v.sees }

func (v visitor) Jobs(ctx context.Context, all bool) ([]api.Job, error) {
	v.asked.Add(1)
	return v.cluster.Jobs(ctx, all)
}

// TestKept checks that a hundred concurrent readers of the same page have it rendered once for all
// with the same rights, separately for each window, and again after a moment. Failures are not
// kept, and the cache stays bounded.
func TestKept(t *testing.T) {
	var asked atomic.Int32
	c := small()
	var sees atomic.Value
	sees.Store("everything")
	p := Page{Base: "/", Reader: func(*http.Request) (Reader, error) { return visitor{c, sees.Load().(string), &asked}, nil }}
	h := p.Handler()
	now := noon
	p.made.clock = func() time.Time { return now }
	var all sync.WaitGroup
	for range 100 {
		all.Go(func() {
			if w := get(t, h, "/"); w.Code != http.StatusOK {
				t.Errorf("%d %s", w.Code, w.Body)
			}
		})
	}
	all.Wait()
	want := func(n int32, address, when string) {
		t.Helper()
		get(t, h, address)
		if got := asked.Load(); got != n {
			t.Errorf("%s: made %d times, want %d", when, got, n)
		}
	}
	want(1, "/", "a hundred at once")
	want(2, "/?user=alice", "another window")
	sees.Store("true 7")
	want(3, "/", "one who sees less")
	now = now.Add(keptFor)
	want(4, "/", "a moment later")
	now = now.Add(-time.Hour)
	want(5, "/", "with the clock set back")
	now = now.Add(time.Hour)
	c.err = api.Errorf(api.ErrUnavailable, "not yet")
	if w := get(t, h, "/?by=job"); w.Code != http.StatusServiceUnavailable {
		t.Errorf("%d", w.Code)
	}
	c.err = nil
	if w := get(t, h, "/?by=job"); w.Code != http.StatusOK {
		t.Errorf("after an error: %d", w.Code)
	}
	for i := range 100 {
		get(t, h, fmt.Sprintf("/?page=%d", i))
	}
	if n := len(p.made.all); n > mostKept {
		t.Errorf("%d are kept", n)
	}
}

// TestSeries checks at each time what a job requested, is planned to have, has, and is held for it,
// and that waiting requests wait.
func TestSeries(t *testing.T) {
	c := small()
	at := func(s *series, line, minute int) int { // in the middle of a minute
		return s.Lines[line].Nodes[s.at(after(minute).Add(30*time.Second))]
	}
	waiting := api.Job{ID: 13, State: "queued", Profile: "3@10m", Submit: after(-4), Start: after(5), Plan: []api.Span{{Step: 1, Start: after(5), End: after(15), Nodes: 3}}}
	s := clusterSeries(scale{after(-10), after(20)}, noon, []*api.Job{&c.jobs[0], &waiting}, c.is)
	for _, w := range []struct{ minute, allocated, held, waits int }{{-8, 0, 0, 0}, {-3, 0, 0, 5}, {-1, 2, 0, 3}, {1, 2, 0, 3}, {4, 4, 2, 3}, {6, 7, 0, 0}, {10, 3, 0, 0}, {17, 0, 0, 0}} {
		if a, h, q := at(s, 0, w.minute), at(s, 1, w.minute), at(s, 2, w.minute); a != w.allocated || h != w.held || q != w.waits {
			t.Errorf("minute %d: %d allocated, %d held, %d waited for, want %v", w.minute, a, h, q, w)
		}
	}
	p := &jobPage{Job: c.jobs[0], Now: noon}
	p.steps(c.is)
	p.draw()
	s = jobSeries(p, c.is)
	for _, w := range []struct{ minute, requested, planned, allocated, held int }{{-1, 2, 2, 2, 0}, {1, 2, 2, 0, 0}, {4, 4, 4, 0, 2}, {7, 4, 4, 0, 0}} {
		if got := [4]int{at(s, 0, w.minute), at(s, 1, w.minute), at(s, 2, w.minute), at(s, 3, w.minute)}; got != [4]int{w.requested, w.planned, w.allocated, w.held} {
			t.Errorf("minute %d: %v, want %v", w.minute, got, w)
		}
	}
	if n := len(s.Table()); n != 12 {
		t.Errorf("%d rows", n)
	}
}

// TestStepNodes checks that a step is shown on the nodes that it had for long, not on those that
// came at its end for the next one.
func TestStepNodes(t *testing.T) {
	c := small()
	c.jobs[0].Step = 2
	c.jobs[0].Past = []api.Span{{Step: 1, Start: after(-2), End: noon.Add(-5 * time.Second), Nodes: 2, NodeList: "n[1-2]"},
		{Step: 1, Start: noon.Add(-5 * time.Second), End: noon.Add(-4 * time.Second), Nodes: 4, NodeList: "n[1-4]"},
		{Step: 2, Start: noon.Add(-4 * time.Second), Nodes: 4, NodeList: "n[1-4]"}}
	p := &jobPage{Job: c.jobs[0], Now: noon}
	p.steps(c.is)
	if p.Steps[0].Has != "n[1-2]" || p.Steps[1].Has != "n[1-4]" || !p.Steps[0].End.Equal(noon.Add(-4*time.Second)) || !p.Steps[1].End.IsZero() {
		t.Errorf("%+v", p.Steps)
	}
}
