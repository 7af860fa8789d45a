//go:build examples

package e2e_test

import (
	"fmt"
	"regexp"
	"strings"
)

// futured wants all squares by the futures of R. With lost, some workers must have been lost before: a task must take longer
// than some node stays.
func futured(n int, lost bool) func(*site, exampleRun, []string) {
	return func(s *site, run exampleRun, out []string) {
		s.t.Helper()
		want := regexp.MustCompile(fmt.Sprintf(`^%d done, sum %d, on [3-9] nodes; (\d+) began again$`, n, n*(n+1)*(2*n+1)/6))
		for _, line := range out {
			if m := want.FindStringSubmatch(line); m != nil && lost == (m[1] != "0") {
				return
			}
		}
		s.t.Errorf("%s: no line is %s, lost %t:\n%s", run, want, lost, strings.Join(out, "\n"))
	}
}
