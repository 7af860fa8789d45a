package submit

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/planner"
	"github.com/evoslurm/evoslurm/slurmctl"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest/must"
)

// reserving is a cluster with reservations.
type reserving struct {
	still
	err error
	all []slurmctl.Reservation
}

func (c reserving) Reservations(context.Context) ([]slurmctl.Reservation, error) { return c.all, c.err }

// TestInsideOfSite checks which jobs are rejected by what the cluster tells of their reservation.
func TestInsideOfSite(t *testing.T) {
	now := time.Now()
	course := slurmctl.Reservation{Name: "course", Nodes: []string{"n1", "n2"}, Users: []string{userName()}, Start: now.Add(-time.Hour), End: now.Add(time.Hour)}
	shared := course
	shared.Name, shared.Users = "shared", []string{userName(), "bob"}
	known := reserving{all: []slurmctl.Reservation{shared, course}}
	for _, c := range []struct {
		words   string
		cluster Cluster
		want    string // "": it is left to sbatch and the sidecar
	}{
		{"--profile=1@10m,2@10m", known, ""},
		{"--profile=1@10m,3@10m", known, ""},
		{"--reservation=course --profile=1@10m,2@10m", known, ""},
		{"--reservation=course --profile=1@10m,3@10m", known, "--reservation=course: reservation course has 2 nodes, and a step of the profile has 3"},
		{"--reservation=course --profile=1@10m,2@1h", known, "--reservation=course: reservation course ends at "},
		{"--reservation=course --begin=" + now.Add(55*time.Minute).Format("2006-01-02T15:04:05") + " --profile=1@10m", known, "--reservation=course: reservation course ends at "},
		{"--reservation=course --moldable=3@10m,2@20m", known, ""},
		{"--reservation=course --moldable=3@10m,4@5m", known, "a step of the profile has 4"},
		{"--reservation=shared --profile=1@10m", known, "leave the option out, or add --rigid for an ordinary job in it"},
		{"--reservation=shared --rigid --profile=1@10m,3@10m", known, ""},
		{"--reservation=nope --profile=1@10m,3@10m", known, ""},
		{"--reservation=course --profile=1@10m,3@10m", reserving{all: known.all, err: slurmctl.ErrUnreachable}, ""},
		{"--reservation=course --profile=1@10m,3@10m", still{}, ""},
	} {
		r, err := build(c.words+" job.sh", "")
		must.OK(t, err)
		err = site{cluster: c.cluster}.inside(t.Context(), r)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.words, err, c.want)
		}
	}
}

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
