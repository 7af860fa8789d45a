package plan

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/internal/config"
	"github.com/evoslurm/evoslurm/adapter/internal/drivemode"
	"github.com/evoslurm/evoslurm/adapter/job/request"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state/statetest"
	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
	"github.com/evoslurm/evoslurm/planner"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// TestMalleableRequest: what handwritten markers ask for is checked and cut as evosbatch does.
func TestMalleableRequest(t *testing.T) {
	for _, x := range []struct {
		marker string
		want   string // the marker of what is adopted, or words of the refusal
	}{
		{"evo:v2;p=2-4@10m;;", "evo:v2;p=2-4@10m;;"},
		{"evo:v2;p=3@10m;;", "evo:v2;p=3@10m;;"},
		{"evo:v2;p=2-64@10m,4-6@20m;z=pow2;;", "evo:v2;p=2-8@10m,4@20m;z=pow2;;"},
		{"evo:v2;p=2-64@10m;n=n[1-3];;", "evo:v2;p=2-3@10m;n=n[1-3];;"},
		{"evo:v2;p=8-9@10m;;", "evo:v2;p=8@10m;;"},
		{"evo:v2;p=9-12@10m;;", "evo:v2;p=9@10m;;"}, // whose profile is refused
		{"evo:v2;p=2-4@10m;t=601;;", "it asks for 601 seconds to give nodes back (--grace), the site allows 10m0s at most"},
		{"evo:v2;p=2-4@10m;d=chain;i=1;;", "a chain cannot be malleable"},
		{"evo:v2;p=2-4@10m;g=3;;", "--max-nodes=3: a malleable job makes no claim"},
	} {
		c := state.New(msg.Site{User: "root", Root: true}, config.Default(), msg.Strategy{}, time.Unix(1_800_000_000, 0))
		nodes, _ := slurmctl.ExpandNodes("n[1-9]")
		c.Snapshot = &state.Snapshot{Partitions: map[string]slurmctl.Partition{"main": {Name: "main", Nodes: nodes, MaxNodes: 8}}}
		sp, ok, err := request.ParseMarker(x.marker)
		if !ok || err != nil {
			t.Fatal(x.marker, ok, err)
		}
		sp, err = Malleable(c, &slurmctl.Job{ID: 7, Partition: "main"}, sp)
		got, _ := sp.Marker()
		if err != nil {
			got = err.Error()
		}
		if err != nil != !strings.HasPrefix(x.want, "evo:") || !strings.Contains(got, x.want) {
			t.Errorf("%s: %s; want %s", x.marker, got, x.want)
		}
	}
}

// TestMalleableTells checks that the log is not filled by a user's many jobs whose bounds are cut.
func TestMalleableTells(t *testing.T) {
	b := statetest.New(t, 8)
	b.Snapshot = b.Seen
	for range 3000 {
		sp, _, _ := request.ParseMarker("evo:v2;p=2-64@10m;;")
		if sp, err := Malleable(b.Core, &slurmctl.Job{Partition: "main"}, sp); err != nil || sp.MostNodes() != 8 {
			t.Fatal(sp, err)
		}
	}
	if n := len(b.Effects); n != state.UserEvents {
		t.Errorf("%d lines are logged, want %d", n, state.UserEvents)
	}
}

// TestRebound: a job whose profile is another has bounds that agree with it.
func TestRebound(t *testing.T) {
	m := &row.Malleable{Max: []int{4, 6, 8}, Grace: 5}
	p := func(text string) planner.Profile {
		p, err := planner.ParseProfile(text)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	for _, x := range []struct {
		profile string
		step    int
		most    []int
		want    []int // nil: it is not malleable any more
	}{
		{"2@1m,3@1m,4@1m", 1, []int{6, 8}, []int{4, 6, 8}},
		{"2@1m,3@1m,4@1m", 0, []int{9}, []int{2, 3, 9}},
		{"2@1m,5@1m,3@1m,4@1m", 1, []int{6, 8}, []int{4, 5, 6, 8}},
		{"5@1m,9@1m", 1, nil, []int{5, 9}},
		{"2@1m,9@1m", 2, nil, []int{4, 9}},
		{"2@1m", 1, nil, []int{4}},
	} {
		got := Rebound(m, p(x.profile), x.step, x.most)
		malleable := !slices.Equal(x.want[max(x.step-1, 0):], request.Sizes(p(x.profile))[max(x.step-1, 0):])
		if (got != nil) != malleable || got != nil && (!slices.Equal(got.Max, x.want) || got.Grace != 5) {
			t.Errorf("%s in step %d: %+v, want %v", x.profile, x.step, got, x.want)
		}
	}
	if got := Rebound(nil, p("2@1m"), 1, []int{3}); got != nil {
		t.Errorf("of a job that is not malleable: %+v", got)
	}
	j := &state.Job{Mode: drivemode.Merge.Means(), Job: &row.Job{Terms: row.Terms{Malleable: &row.Malleable{Max: []int{4}, Sizes: -1}}}}
	if p, most, err := ComingOf(j, "3-9@1m,2@1m", 100); err != nil || p.String() != "4@1m,2@1m" || !slices.Equal(most, []int{8, 2}) {
		t.Errorf("%v, %v, %v", p, most, err)
	}
	if _, _, err := ComingOf(j, "5-7@1m", 100); err == nil || !strings.Contains(err.Error(), "no power of two within 5-7") {
		t.Errorf("%v", err)
	}
	if _, _, err := ComingOf(&state.Job{Job: &row.Job{}}, "5-7@1m", 100); err == nil || !strings.Contains(err.Error(), "not submitted as one that is malleable") {
		t.Errorf("%v", err)
	}
}

// TestComingOfClaims checks which open steps may come for a job with a claim, and for one without.
func TestComingOfClaims(t *testing.T) {
	claims := &state.Job{Job: &row.Job{Terms: row.Terms{Claim: 6}}}
	for text, want := range map[string]string{"?1-6@1h": "1@1h", "4@1m,?2-5@1h": "4@1m,2@1h", "?1-7@1h": "the job's claim is 6"} {
		if p, _, err := ComingOf(claims, text, 100); err == nil && p.String() != want || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, %v; want %s", text, p, err, want)
		}
	}
	if _, _, err := ComingOf(&state.Job{Job: &row.Job{}}, "?5-7@1m", 100); err == nil || !strings.Contains(err.Error(), "without a claim") {
		t.Error(err)
	}
}
