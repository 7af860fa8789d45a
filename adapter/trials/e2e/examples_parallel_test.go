//go:build examples

package e2e_test

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// lateStarts is how many starts may lose their node although it drains for long enough: one at each of the two shrinks. On a busy machine,
// a start may reach its node more than three seconds after parallel made it, when the node no longer waits for it.
const lateStarts = 2

// paralleled wants the squares of 1 to n, each once, and a log in which every start succeeded in the end. With lost, some
// starts must have lost their node before; otherwise at most lateStarts.
func paralleled(n int, lost bool) func(*site, exampleRun, []string) {
	return func(s *site, run exampleRun, out []string) {
		s.t.Helper()
		sum := n * (n + 1) * (2*n + 1) / 6
		if got, want := last(out), fmt.Sprintf("%d done, sum %d, on ", n, sum); !strings.HasPrefix(got, want) || strings.HasSuffix(got, " 1 nodes") {
			s.t.Errorf("%s: %q, want %q and several nodes", run, got, want)
		}
		text, err := os.ReadFile(s.Dir + "/out/parallel/nodes-" + run.id + ".log")
		s.must(err)
		failed := 0
		ended := map[int]bool{}
		for _, line := range strings.Split(strings.TrimSpace(string(text)), "\n")[1:] {
			fields := strings.Split(line, "\t")
			seq, _ := strconv.Atoi(fields[0])
			ended[seq] = fields[6] == "0" && fields[7] == "0"
			if !ended[seq] {
				failed++
			}
		}
		for seq, done := range ended {
			if !done {
				s.t.Errorf("%s: start %d never succeeded", run, seq)
			}
		}
		if lost && failed == 0 || !lost && failed > lateStarts {
			s.t.Errorf("%s: %d starts lost their node:\n%s", run, failed, text)
		}
	}
}
