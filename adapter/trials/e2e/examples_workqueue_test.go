//go:build examples

package e2e_test

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/evoslurm/evoslurm/slurmctl/slurmtest/must"
)

// queued wants all squares, and that tasks which lost their worker were given to another.
func queued(n int) func(*site, exampleRun, []string) {
	return func(s *site, run exampleRun, out []string) {
		s.t.Helper()
		sum := n * (n + 1) * (2*n + 1) / 6
		if got, want := last(out), fmt.Sprintf("%d done, sum %d, on ", n, sum); !strings.HasPrefix(got, want) || strings.HasSuffix(got, " 1 nodes") {
			s.t.Errorf("%s: %q, want %q and several nodes", run, got, want)
		}
		log := must.Read(s.t, s.Dir+"/out/workqueue/flow-"+run.id+"/squares.mf.wqlog.tr")
		done := len(regexp.MustCompile(`(?m) TASK \d+ DONE SUCCESS `).FindAll(log, -1))
		lost := len(regexp.MustCompile(`(?m) TASK \d+ RUNNING `).FindAll(log, -1)) - done // began more than once
		if done < n || lost <= 0 {                                                        // Makeflow may give a task to the manager again, as a new one
			s.t.Errorf("%s: %d tasks are done, %d lost their worker", run, done, lost)
		}
	}
}
