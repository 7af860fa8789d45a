package adopt

import (
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/internal/drivemode"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state/statetest"
	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
	"github.com/evoslurm/evoslurm/planner"
)

func TestInferStep(t *testing.T) {
	for _, c := range []struct {
		profile       string
		nodes, coming int
		elapsed       int64
		want          int
	}{
		{"2@10m,5@10m,1@5m", 2, 2, 60, 1},
		{"2@10m,5@10m,1@5m", 2, 2, 6000, 1}, // late, yet its growth is still held
		{"2@10m,5@10m,1@5m", 5, 0, 700, 2},
		{"2@10m,5@10m,1@5m", 1, 0, 700, 3},         // left early
		{"2@10m,5@10m,2@10m,5@10m", 2, 2, 1300, 1}, // both growths come later
		{"2@10m,5@10m,2@10m,5@10m", 2, 4, 10, 3},   // one is done
		{"2@10m,5@10m,2@10m,5@10m", 5, 4, 10, 2},   //
		{"2@10m,5@10m,2@10m,5@10m", 5, 0, 10, 4},   // no growth comes later
		{"2@10m,5@10m,2@10m,5@10m", 2, 0, 1300, 3}, // the holds have ended: time tells
		{"3@10m,3@10m,3@10m", 3, 0, 700, 2},        // no change of size: time tells
		{"4@10m,3@10m,2@10m,1@10m", 2, 0, 0, 3},    //
		{"1@10m,4@10m", 3, 0, 700, 2},              // in the middle of a growth by parts
		{"1@10m,4@10m", 1, 9, 0, 1},                // a hold of no step of it
	} {
		p, err := planner.ParseProfile(c.profile)
		if err != nil {
			t.Fatal(err)
		}
		if got, _ := InferStep(p, func(step int) int {
			return MostOf((&state.Job{Mode: drivemode.Merge.Means(), Job: &row.Job{Terms: row.Terms{Profile: p}}}), step)
		}, 0, c.nodes, c.coming, c.elapsed); got != c.want {
			t.Errorf("%s with %d nodes after %d s, step %d held: step %d, want %d", c.profile, c.nodes, c.elapsed, c.coming, got, c.want)
		}
	}
}

// TestOwnChange: a change of this sidecar that a poll of before does not show is no doubt about a copied database.
func TestOwnChange(t *testing.T) {
	for name, change := range map[string]func(*statetest.Bench, *state.Job){
		"it is under way":           func(_ *statetest.Bench, j *state.Job) { j.Busy = true },
		"it ended after that poll":  func(b *statetest.Bench, j *state.Job) { j.Touched = b.Seen.Taken.Add(1) },
		"it ended before that poll": nil,
	} {
		b := statetest.New(t, 4)
		j := b.Evolving(7, 1, "1@10m,2@10m", time.Hour)
		j.Doubtful, j.Changes, b.Seen.ByID[7].Comment = true, []row.Change{{ID: "b", Open: true}}, "evo:v2;p=1@10m,3@10m;;"
		if change != nil {
			change(b, j)
		}
		Doubt(b.Core, b.Seen)
		if kept := b.Core.ByID[7] == j; kept != (change != nil) || kept && !j.Doubtful {
			t.Errorf("%s: kept: %v, doubtful: %v", name, kept, j.Doubtful)
		}
	}
}

// TestDoubt: a job of a copied database is adopted again if Slurm has another request of it.
func TestDoubt(t *testing.T) {
	known := []row.Change{{ID: "a"}, {ID: "b"}}
	under := []row.Change{{ID: "a"}, {ID: "b", Open: true}}
	for name, c := range map[string]struct {
		changes []row.Change
		comment string
		forgets bool
	}{
		"never changed":                    {nil, "evo:v2;p=1@10m,2@10m;;", false},
		"Slurm has the last change":        {known, "evo:v2;p=1@10m,2@10m;u=b;;", false},
		"slurmctld lost the last change":   {known, "evo:v2;p=1@10m,2@10m;u=a;;", false},
		"changed since":                    {known, "evo:v2;p=1@10m,3@10m;u=c;;", true},
		"Slurm has what was under way":     {under, "evo:v2;p=1@10m,2@10m;u=b;;", false},
		"Slurm refused what was under way": {under, "evo:v2;p=1@10m,3@10m;u=a;;", true},
		"and it was the first change":      {under[1:], "evo:v2;p=1@10m,3@10m;;", true},
		"and another one came after it":    {under, "evo:v2;p=1@10m,3@10m;u=c;;", true},
		"a plugin has the comment":         {under, "of the site", false},
		"the marker is not to be read":     {under, "evo:v2;p=;;", false},
	} {
		t.Run(name, func(t *testing.T) {
			b := statetest.New(t, 4)
			j := b.Evolving(7, 1, "1@10m,2@10m", time.Hour)
			j.Doubtful, j.Changes, b.Seen.ByID[7].Comment = true, c.changes, c.comment
			Doubt(b.Core, b.Seen)
			if forgot := len(b.Active) == 0; forgot != c.forgets || (b.Core.ByID[7] == nil) != c.forgets {
				t.Errorf("forgot it: %v, want %v", forgot, c.forgets)
			}
		})
	}
}

// TestCopiedGuess: a step of a copied database is the lowest that a running job may be in, but if the sidecar that wrote
// the copy had only inferred it, the job may be in an earlier one.
func TestCopiedGuess(t *testing.T) {
	for name, c := range map[string]struct{ guess, want int }{
		"its step was known":    {0, 2},
		"its step was a guess":  {1, 1},
		"and so was that guess": {2, 2},
	} {
		b := statetest.New(t, 4)
		j := b.Evolving(7, 1, "1@10m,2@10m,1@10m", time.Hour)
		b.Runs(j, "n[1-2]")
		j.Doubtful, j.Step, j.Guess = true, 2, c.guess
		if Doubt(b.Core, b.Seen); j.Guess != c.want || j.Guess == 0 {
			t.Errorf("%s: at least step %d, want %d", name, j.Guess, c.want)
		}
	}
}
