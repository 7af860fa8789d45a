package msg

import (
	"strings"
	"testing"

	"github.com/evoslurm/evoslurm/slurmctl"
)

// TestReadMarks has a comment read once for a job, again when it changes, and one without a
// marker never.
func TestReadMarks(t *testing.T) {
	attack := strings.Repeat("evo:v2;p=1@1;n=n[1-131072];", 37)
	jobs := []slurmctl.Job{{ID: 1, Comment: attack}, {ID: 2, Comment: "evo:v2;p=2@1m;;"}, {ID: 3, Comment: "mine"}, {ID: 4}}
	first := ReadMarks(jobs, nil)
	if len(first) != 2 || first[0].Err == nil || len(first[1].Request.Profile) != 1 {
		t.Fatalf("%+v", first)
	}
	again := ReadMarks(jobs, first)
	if &again[1].Request.Profile[0] != &first[1].Request.Profile[0] {
		t.Error("the comment of job 2 was read again")
	}
	if read, kept := testing.AllocsPerRun(10, func() { ReadMarks(jobs, nil) }), testing.AllocsPerRun(10, func() { ReadMarks(jobs, first) }); kept > 10 || kept >= read {
		t.Errorf("%v allocations for comments that were read before, %v for others", kept, read)
	}
	jobs[1].Comment = "evo:v2;p=3@1m;;"
	if changed := ReadMarks(jobs, again); changed[1].Request.Profile[0].Nodes != 3 {
		t.Errorf("%+v", changed[1])
	}
	jobs[1].ID = 9 // another job has the same comment
	if other := ReadMarks(jobs, again); other[1].Job != 9 || other[1].Request.Profile[0].Nodes != 3 {
		t.Errorf("%+v", other[1])
	}
}
