package chart

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/evoslurm/evoslurm/adapter/api"
)

// TestOthers checks that nodes of stock jobs are counted once, from one change to the next, and
// until now if the job's end is hidden or past.
func TestOthers(t *testing.T) {
	jobs := []api.OtherJob{
		{ID: 1, Start: at(0), End: at(200), NodeList: "n[1-3]"},
		{ID: 2, Start: at(50), End: at(150), NodeList: "n[3-4]"}, // shares n3
		{ID: 3, Start: at(20), End: at(60), NodeList: "n5"},      // over its time
		{Start: at(95), NodeList: "n6"},                          // hidden owner, seen after now
		{ID: 4, Start: at(0), End: at(100), NodeList: "n[1-"},
	}
	type part struct{ from, to, nodes int }
	var got []part
	for _, s := range Others(jobs, at(90)) {
		got = append(got, part{int(s.Start.Sub(start) / time.Second), int(s.End.Sub(start) / time.Second), s.Nodes})
	}
	if d := cmp.Diff([]part{{0, 20, 3}, {20, 50, 4}, {50, 90, 5}, {90, 90, 6}, {90, 150, 4}, {150, 200, 3}}, got, cmp.AllowUnexported(part{})); d != "" {
		t.Error(d)
	}
	endless := Others([]api.OtherJob{{ID: 1, Start: at(0), NodeList: "n1"}}, at(90))
	if len(endless) != 1 || endless[0].End.Before(at(1_000_000)) {
		t.Errorf("a job without a limit: %v", endless)
	}
	chart := Render(demo(), at(90), Options{Width: 100, Nodes: 8, Others: Others(jobs[3:4], at(90))})
	if !strings.Contains(chart, "│▒") || !strings.Contains(chart, "other jobs") {
		t.Errorf("a node that is in use now is not seen:\n%s", chart)
	}
}
