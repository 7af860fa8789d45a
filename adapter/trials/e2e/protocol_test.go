package e2e_test

import (
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/evoslurm/evoslurm/slurmctl/slurmtest"
)

// TestProtocol: what jobs see that call next otherwise than once a step from their
// script. (Those that call it late or never are in adapter/sidecar/controller.)
func TestProtocol(t *testing.T) {
	t.Parallel()
	s := newSite(t, slurmtest.Options{Accounting: true, PermitJobExpansion: true}, nil)
	for _, c := range []struct {
		name, profile, script string
		want                  []string
	}{
		{"twice at once", "1@4s,3@4s,2@4s", `
evosctl next >first & evosctl next >second; wait
for answer in first second; do (eval "$(cat $answer)"; echo "step $EVO_STEP on $EVO_NODES"); done
eval "$(cat first)"
eval "$(evosctl next)"
echo "step $EVO_STEP on $EVO_NODES"
`, []string{"step 2 on 3", "step 2 on 3", "step 3 on 2"}},
		{"from every rank", "2@4s,3@4s,1@4s", `
evosrun --ntasks-per-node=1 sh -c 'eval "$(evosctl next)"; echo "step $EVO_STEP on $EVO_NODES"'
eval "$(evosctl env)"
evosrun --ntasks-per-node=1 echo rank of step $EVO_STEP
`, []string{"step 2 on 3", "step 2 on 3", "rank of step 2", "rank of step 2", "rank of step 2"}},
		{"once more after the last step", "1@4s,2@4s", `
eval "$(evosctl next)"
eval "$(evosctl next)"
eval "$(evosctl next)"; echo "over: $EVO_DONE $?"
`, []string{"over: 1 0"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s.t = t
			script := s.script(strings.ReplaceAll(c.name, " ", "-")+".sh", "#!/bin/bash\n"+c.script)
			if got := messages(s.output(s.submit("--profile="+c.profile, script))); !slices.Equal(got, c.want) {
				t.Errorf("the job printed %q, want %q", got, c.want)
			}
		})
	}
	t.Run("ends a step early, and with it the job", func(t *testing.T) {
		s.t = t
		id := s.submit("--profile=1@30s,3@30s,2@30s", s.script("early.sh", "#!/bin/bash\nsleep 3\necho over\n"))
		if got := s.output(id); !slices.Equal(got, []string{"over"}) { // with nothing left in Slurm
			t.Errorf("the job printed %q", got)
		}
		s.eventually("evosqueue tells", func() bool {
			j := s.job(id)
			return j.State == "ended" && j.EndState == "COMPLETED" && j.Step == 1 && j.Steps == 3
		})
	})
	t.Run("keeps its step for too long", func(t *testing.T) {
		s.t = t
		id := s.submit("--profile=1@2s,2@60s", s.script("late.sh", "#!/bin/bash\nsleep 600\n"))
		s.eventually("evosqueue tells", func() bool {
			out, _, err := s.As(0, "evosqueue")
			return err == nil && strings.Contains(out, "longer than its profile says")
		})
		_, err := s.Cluster.Run(t.Context(), s.Cluster.Users()[0], "scancel", id)
		s.must(err)
		s.output(id)
	})
	s.t = t
	s.stop(syscall.SIGTERM)
}
