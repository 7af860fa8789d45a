package submit

import (
	"strings"
	"testing"

	"github.com/evoslurm/evoslurm/adapter/internal/getopt"
	"github.com/evoslurm/evoslurm/planner"
)

// TestPlacement: --switches is planned, except with --prefer; what cannot be planned names the remedy.
func TestPlacement(t *testing.T) {
	for options, want := range map[string]string{
		"switches=1@5": "", "switches=2": "", "prefer=fast": "",
		"switches=1 prefer=fast": "leave out --switches, or give --constraint in place of --prefer",
		"prefer=fast switches=1": "leave out --switches, or give --constraint in place of --prefer",
		"contiguous":             "give --switches=1",
		"segment=4":              "leave the option out",
	} {
		var l layers
		for option := range strings.FieldsSeq(options) {
			name, value, has := strings.Cut(option, "=")
			l.command = append(l.command, getopt.Option{Name: name, Value: value, HasValue: has})
		}
		err := l.refuse(planner.Profile{{Nodes: 1, Duration: 60}})
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", options, err)
		}
	}
}

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

// TestLicenseCounts checks which licences are refused: Slurm would take them for none or for fewer, or no plan can count them.
func TestLicenseCounts(t *testing.T) {
	for value, want := range map[string]bool{"foo": true, "foo:1": true, "foo:2,bar:1": true, "foo:2147483647": true, "foo@server:3;bar": true, "foo|bar:2": false,
		"foo:some": false, "foo:": false, "": true, "foo=2": true, "foo(n1)": false, "foo:0": false, "foo:00": false, "foo:1,bar:0": false, "foo:2147483648": false, "foo:1099511627776": false,
		"foo:99999999999999999999999": false, "a|b:0": false} {
		l := layers{command: []getopt.Option{{Name: "licenses", Value: value, HasValue: true}}}
		if err := l.refuse(planner.Profile{{Nodes: 1, Duration: 60}}); (err == nil) != want {
			t.Errorf("--licenses=%s: %v", value, err)
		}
	}
}
