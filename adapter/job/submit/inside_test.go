package submit

import (
	"strings"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/planner"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// TestInside: a profile fits into a reservation with as many nodes as its largest step, and with time for all steps from when
// both may begin.
func TestInside(t *testing.T) {
	now := time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	in := slurmctl.Reservation{Name: "course", Nodes: []string{"n1", "n2"}, Start: now.Add(time.Hour), End: now.Add(2 * time.Hour)}
	for _, c := range []struct {
		profile string
		begin   time.Duration
		want    string
	}{
		{"1@30m,2@30m", 0, ""},
		{"1@30m,2@30m", time.Hour, ""},
		{"1@30m,3@10m", 0, "reservation course has 2 nodes, and a step of the profile has 3"},
		{"1@30m,2@31m", 0, "reservation course ends at 2026-11-29 14:00:00, and the profile takes 1h1m"},
		{"1@30m,2@30m", 61 * time.Minute, "reservation course ends at "},
		{"1@30m", 3 * time.Hour, "reservation course ends at "},
	} {
		p, err := planner.ParseProfile(c.profile)
		if err != nil {
			t.Fatal(err)
		}
		err = insideOf(in, p, now, now.Add(c.begin))
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s begun after %v: %v, want %q", c.profile, c.begin, err, c.want)
		}
	}
}
