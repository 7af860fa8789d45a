package submit

import (
	"strings"
	"testing"

	"github.com/evoslurm/evoslurm/adapter/internal/getopt"
	"github.com/evoslurm/evoslurm/adapter/job/request"
	"github.com/evoslurm/evoslurm/planner"
)

// TestAim: the command line overrides a variable, and both override the script. sbatch's own --prefer stays what it is, also
// abbreviated.
func TestAim(t *testing.T) {
	for _, c := range []struct {
		words, variable, script string
		aim                     planner.Aim
		prefer                  string
	}{
		{"--prefer-near", "", "", planner.AimNear, ""},
		{"--prefer-near", "prefer-waste", "#EVO --prefer-start", planner.AimNear, ""},
		{"", "prefer-waste", "#EVO --prefer-start", planner.AimWaste, ""},
		{"", "", "#EVO --prefer-start", planner.AimStart, ""},
		{"--prefer=fast", "", "#EVO --prefer-start", planner.AimStart, "fast"},
		{"--prefer fast --prefer-waste", "", "", planner.AimWaste, "fast"},
		{"--pref=fast", "", "", planner.NoAim, "fast"},
		{"--prefe fast", "", "#SBATCH --pref=slow", planner.NoAim, "fast"},
		{"--switches=1", "prefer-waste", "", planner.NoAim, ""}, // the variable is ignored
	} {
		table := newOptionTable()
		line, err := table.Parse(strings.Fields(c.words+" --profile=2@10m job.sh"), "")
		if err != nil {
			t.Errorf("%+v: %v", c, err)
			continue
		}
		src := sources{line: line, options: layers{command: line.Options}}
		src.options.script, _ = table.fromScript([]byte(c.script), "job.sh")
		src.evo, _ = request.FromScript([]byte(c.script))
		if c.variable != "" {
			src.options.own = []getopt.Option{{Name: c.variable, Value: "1", Source: ownVariable(c.variable)}}
		}
		r, _, err := newSubmission(src, request.Request{ExpandLimit: 1}, noon)
		if err != nil || r.request.Aim != c.aim || r.request.Prefer != c.prefer {
			t.Errorf("%+v: %v, %q, %v", c, r.request.Aim, r.request.Prefer, err)
		}
	}
}
