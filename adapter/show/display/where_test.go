package display

import (
	"slices"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/api"
)

func TestWhere(t *testing.T) {
	at := func(m int) time.Time { return time.Date(2026, 11, 23, 12, m, 0, 0, time.UTC) }
	got := Where(api.Job{State: "running", Step: 1, Steps: 2, Nodes: 1, NodeList: "n1", Profile: "1@10m,3@10m", Drive: "merge", Reason: "nodes late",
		Plan: []api.Span{{Step: 2, Start: at(10), End: at(20), Nodes: 3, NodeList: "n[1-3]"}}, Past: []api.Span{{Step: 1, Start: at(0), Nodes: 1, NodeList: "n1"}}})
	want := []string{
		"it is running in step 1 of 2, on 1 node n1, profile 1@10m,3@10m, drive mode merge", "because: nodes late",
		"planned: step 2 from 2026-11-23 12:10:00 to 12:20:00 on 3 nodes n[1-3]", "had:     step 1 from 2026-11-23 12:00:00 to now on 1 node n1",
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
