package submit

import (
	"strings"
	"testing"

	"github.com/evoslurm/evoslurm/adapter/internal/getopt"
	"github.com/evoslurm/evoslurm/planner"
)

// TestOwnClusterNamed checks that naming this cluster is no reason to reject a job, in any case;
// the last value counts.
func TestOwnClusterNamed(t *testing.T) {
	for values, want := range map[string]bool{"lab": true, "LAB": true, "lab,Lab": true, "lab,other": false, "all": false, "other": false, "other lab": true, "lab other": false} {
		l := layers{cluster: "lab"}
		for value := range strings.FieldsSeq(values) {
			l.command = append(l.command, getopt.Option{Name: "clusters", Value: value, HasValue: true})
		}
		if err := l.refuse(planner.Profile{{Nodes: 1, Duration: 60}}); (err == nil) != want {
			t.Errorf("--clusters %s: %v", values, err)
		}
		if l.cluster = ""; l.refuse(planner.Profile{{Nodes: 1, Duration: 60}}) == nil {
			t.Errorf("--clusters %s is taken though nobody knows which cluster this is", values)
		}
	}
	for line, want := range map[string]uint32{"Submitted batch job 12": 12, "Submitted batch job 12 on cluster lab": 12, "12;lab": 12, "12": 12, "Submitted nothing": 0} {
		if id, err := parseJobID(submitted(line)); id != want || (err == nil) != (want > 0) {
			t.Errorf("%q is job %d, %v", line, id, err)
		}
	}
}
