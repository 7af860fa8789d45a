package submit

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/job/request"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest/must"
)

// EVOSBATCH_ variables are below the command line and above the script.
func TestOwnVariables(t *testing.T) {
	for _, c := range []struct{ words, script, environ, want, refused string }{
		{"job.sh", "#EVO --profile=2-8@1h --grace=10s\n", "EVOSBATCH_GRACE=40s", "--grace=40s", ""},
		{"--grace=50s job.sh", "#EVO --profile=2-8@1h --grace=10s\n", "EVOSBATCH_GRACE=40s", "--grace=50s", ""},
		{"--profile=1@1m job.sh", "", "EVOSBATCH_PROFILE=2@1m EVOSBATCH_MALLEABLE=2-8", "1@1m", ""},
		{"--profile=1@1m job.sh", "", "EVOSBATCH_MOLDABLE_BY=waste", "1@1m", ""},
		{"--profile=1@1m job.sh", "", "EVOSBATCH_MOLDABLE_BY=waste EVOSBATCH_GRACE=40s EVOSBATCH_SPEEDUP=amdahl:0.9 EVOSBATCH_SIZE=pow2", "1@1m", ""},
		{"--profile=4@1m job.sh", "", "EVOSBATCH_MAX_NODES=2 EVOSBATCH_EXPAND_LIMIT=2", "4@1m", ""},
		{"--profile=4@1m --drive=chain job.sh", "", "EVOSBATCH_MAX_NODES=8", "4@1m", ""},
		{"--malleable=2-8 --time=60 job.sh", "", "EVOSBATCH_MAX_NODES=9 EVOSBATCH_GRACE=40s EVOSBATCH_MOLDABLE_BY=waste", "--grace=40s", ""},
		{"job.sh", "#EVO --profile=4@1m", "EVOSBATCH_MOLDABLE_BY=waste", "4@1m", ""},
		{"--profile=1@1m job.sh", "", "EVOSBATCH_GRACE=soon", "", "EVOSBATCH_GRACE: "},
		{"--profile=1@1m --grace=40s job.sh", "", "EVOSBATCH_MOLDABLE_BY=waste", "", "--size, --grace and --speedup are of malleable jobs"},
		{"job.sh", "", "EVOSBATCH_PROFILE=2@1m EVOSBATCH_MALLEABLE=2-8", "", "in EVOSBATCH_ variables: --malleable and --profile exclude each other"},
	} {
		table := newOptionTable()
		line, err := table.Parse(strings.Fields(c.words), "")
		must.OK(t, err)
		asked, err := request.FromScript([]byte(c.script))
		must.OK(t, err)
		own, err := ownFrom(strings.Fields(c.environ))
		must.OK(t, err)
		src := sources{line: line, options: layers{command: line.Options, own: own}, evo: asked}
		r, _, err := newSubmission(src, request.Request{ExpandLimit: 1}, time.Now())
		switch {
		case c.refused != "":
			if err == nil || !strings.Contains(err.Error(), c.refused) {
				t.Errorf("%+v: %v", c, err)
			}
		case err != nil:
			t.Errorf("%+v: %v", c, err)
		case strings.HasPrefix(c.want, "--grace="):
			if got := fmt.Sprintf("--grace=%ds", r.request.Malleable.Grace); got != c.want {
				t.Errorf("%+v: %s", c, got)
			}
		case r.request.Profile.String() != c.want:
			t.Errorf("%+v: %v", c, r.request.Profile)
		}
	}
}

// TestVariables checks that the variable of each of evosbatch's own options works, or is refused, as is one of no option.
// An empty variable is none.
func TestVariables(t *testing.T) {
	refused := strings.Fields("component dry-run require-profile rigid time array array-inx")
	for _, option := range slices.Concat([]string{"profile"}, strings.Fields(ownOptions+" "+ownFlags), refused) {
		variable := ownVariable(option)
		got, err := ownFrom([]string{"SBATCH_TIMELIMIT=1", variable + "=1", "EVOSLURM_API=x"})
		switch refuses := slices.Contains(refused, option); {
		case refuses != (err != nil):
			t.Errorf("%s: %v, %v", variable, got, err)
		case refuses && !(strings.HasPrefix(err.Error(), variable+": ") && strings.HasSuffix(err.Error(), "--"+option+" on the command line")):
			t.Errorf("%s: %v", variable, err)
		case !refuses && (len(got) != 1 || got[0].Name != option || got[0].Value != "1" || got[0].Source != variable):
			t.Errorf("%s: %v", variable, got)
		case !refuses && !strings.Contains(manual(t), variable):
			t.Errorf("%s is not in the manual", variable)
		}
		if got, err := ownFrom([]string{variable + "="}); len(got) != 0 || err != nil {
			t.Errorf("%s=: %v, %v", variable, got, err)
		}
	}
}

// manual returns evosbatch's manual.
func manual(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../../contrib/man/evosbatch.1")
	must.OK(t, err)
	return string(text)
}
