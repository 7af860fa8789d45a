package matrix

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/evoslurm/evoslurm/slurmctl"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest/must"
)

func TestTable(t *testing.T) {
	results, err := Read(strings.NewReader(`{"slurm":"24.11.5","select":"linear","drive":"commands","operation":"shrink","outcome":"passed"}
{"slurm":"24.11.5","select":"linear","drive":"merge","operation":"grow","outcome":"refused","text":"no"}
{"slurm":"22.05.8","select":"linear","drive":"commands","operation":"shrink","outcome":"passed"}
{"slurm":"22.05.8","select":"linear","drive":"commands","operation":"merge","outcome":"failed","text":"no"}
{"slurm":"24.11.5","select":"linear","drive":"merge","operation":"root","outcome":"yes","text":"no"}
`))
	must.OK(t, err)
	var b strings.Builder
	must.OK(t, WriteTable(&b, "operation", results))
	want := `| drive mode | operation | 22.05.8 linear | 24.11.5 linear |
|---|---|---|---|
| commands | shrink | passed | passed |
| commands | merge | **failed** (1) | – |
| merge | grow | – | **refused** (1) |
| merge | root | – | yes (1) |

1. no
`
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Error(diff)
	}
	if _, err := Read(strings.NewReader("{\n")); err == nil {
		t.Error("half a result is read")
	}
}

func TestJudge(t *testing.T) {
	said := &slurmctl.CommandError{Args: []string{"scontrol", "update"}, ExitCode: 1, Stderr: "note\nslurm_update error: Requested nodes are busy\n"}
	for _, c := range []struct {
		err     error
		outcome Outcome
		text    string
	}{
		{nil, Passed, ""},
		{fmt.Errorf("a hold: %w", said), Refused, "`scontrol`: slurm_update error: Requested nodes are busy"},
		{&slurmctl.CommandError{Args: []string{"scontrol"}, ExitCode: -1, Err: errors.New("killed")}, Failed, "scontrol: killed"},
		{refusal("no\n way"), Refused, "no way"},
		{errors.New("3 nodes,\n want 4"), Failed, "3 nodes, want 4"},
	} {
		if outcome, text := judge(c.err); outcome != c.outcome || text != c.text {
			t.Errorf("judge(%v) = %s, %q; want %s, %q", c.err, outcome, text, c.outcome, c.text)
		}
	}
}
