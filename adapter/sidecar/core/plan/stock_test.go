package plan

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state/statetest"
)

// TestSets checks which stock jobs count: those that can have a node that an evolving job wants, at most two for each set
// of nodes that evolving jobs can have in common. Partitions: a is n1 to n4, b n5 to n8, c n3 to n6, d n9 to n12.
func TestSets(t *testing.T) {
	for _, c := range []struct{ evolving, stock, want string }{
		{"a", "a b c d", "1 3"},
		{"a", "a a a", "1 2"},
		{"a b", "a a a b b b", "1 2 4 5"},
		{"a c", "a a b", "1 2"},   // one set
		{"a b c", "a a b", "1 2"}, // one set, through c
		{"a d", "b b b c d d d", "4 5 6"},
		{"a b", "c c c a a b", "1 2"}, // c counts in both
		{"d", "a b c", ""},
		{"a", "b,a b,d", "1"},
		{"a", "nowhere a", "2"},
	} {
		b := statetest.New(t, 12)
		b.Partition("a", 1, 4)
		b.Partition("b", 5, 8)
		b.Partition("c", 3, 6)
		b.Partition("d", 9, 12)
		b.Config.StockJobs = 2
		for i, p := range strings.Fields(c.evolving) {
			j := b.Evolving(100+i, 1, "1@1m,2@1m", time.Hour)
			j.Record.Partition = p
			b.Show(j)
		}
		for i, p := range strings.Fields(c.stock) {
			r := b.Stock(i+1, uint64(90-i), 1, time.Hour)
			r.Partition, r.UID = p, uint32(2000+i)
		}
		var got []string
		for _, cand := range Candidates(b.Core, b.Seen, b.Now.Unix()) {
			if cand.Job == nil {
				got = append(got, fmt.Sprint(cand.Record.ID))
			}
		}
		if text := strings.Join(got, " "); text != c.want {
			t.Errorf("evolving in %s, stock in %s: %q, want %q", c.evolving, c.stock, text, c.want)
		}
	}
}

// TestSetsOfFewNodes checks that jobs of a partition that name different nodes want one set, and that at most so many
// stock jobs are listed for it.
func TestSetsOfFewNodes(t *testing.T) {
	b := statetest.New(t, 12)
	b.Config.StockJobs = 2
	for i := range 8 {
		j := b.Evolving(100+i, 1, "1@1m,1@1m", time.Hour)
		j.Record.ReqNodes = []string{fmt.Sprintf("n%d", i+1)}
		b.Show(j)
		b.Stock(i+1, uint64(90-i), 1, time.Hour).ReqNodes = j.Record.ReqNodes
	}
	var got []string
	for _, cand := range Candidates(b.Core, b.Seen, b.Now.Unix()) {
		if cand.Job == nil {
			got = append(got, fmt.Sprint(cand.Record.ID))
		}
	}
	if text := strings.Join(got, " "); text != "1 2" {
		t.Errorf("stock jobs %q, want 1 2", text)
	}
}

// TestThrottle checks how an array with a throttle is planned: so many tasks at once, one round after another, and at
// its throttle when the first running task ends.
func TestThrottle(t *testing.T) {
	for name, c := range map[string]struct {
		tasks, limit int
		reason       string
		running      []time.Duration // until the ends of running tasks
		want         string
	}{
		"no throttle":              {tasks: 3, want: "3 nodes for 3630 s from 0"},
		"two at once, of six":      {tasks: 6, limit: 2, want: "2 nodes for 10890 s from 0"},
		"two at once, of five":     {tasks: 5, limit: 2, want: "2 nodes for 10890 s from 0"},
		"more than there are":      {tasks: 2, limit: 9, want: "2 nodes for 3630 s from 0"},
		"a million":                {tasks: 4_000_000, limit: 1, want: "1 nodes for 2144000000 s from 0"},
		"at its throttle":          {tasks: 4, limit: 2, reason: "JobArrayTaskLimit", running: []time.Duration{20 * time.Minute, 10 * time.Minute}, want: "2 nodes for 7260 s from 600"},
		"a task is late":           {tasks: 1, limit: 1, reason: "JobArrayTaskLimit", running: []time.Duration{-time.Minute}, want: "1 nodes for 3630 s from 0"},
		"no task that is known":    {tasks: 4, limit: 2, reason: "JobArrayTaskLimit", want: ""},
		"another reason to wait":   {tasks: 4, limit: 2, reason: "Dependency", running: []time.Duration{time.Minute}, want: ""},
		"it waits beside its task": {tasks: 4, limit: 2, running: []time.Duration{time.Minute}, want: "2 nodes for 7260 s from 0"},
	} {
		b := statetest.New(t, 8)
		b.Evolving(100, 1, "1@1m,2@1m", time.Hour)
		for i, left := range c.running {
			b.StockRuns(20+i, fmt.Sprintf("n%d", i+1), left).ArrayJobID = 9
		}
		r := b.Stock(9, 70, 1, time.Hour)
		r.ArrayTasks, r.ArrayLimit, r.ArrayJobID = c.tasks, c.limit, 9
		if c.reason != "" {
			r.Reason = c.reason
		}
		got := ""
		for _, cand := range Candidates(b.Core, b.Seen, b.Now.Unix()) {
			if cand.Job == nil {
				got = fmt.Sprintf("%d nodes for %d s from %d", cand.Profile[0].Nodes, cand.Profile[0].Duration, cand.Earliest-b.Now.Unix())
			}
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
