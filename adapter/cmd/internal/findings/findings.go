// Package findings holds what checks of an installation found, for evosctl doctor and evoslurmd --check.
package findings

import (
	"fmt"
	"io"
)

// Result is how a check ended.
type Result string

// The results.
const (
	OK   Result = "ok"
	Warn Result = "warn"
	Fail Result = "fail"
)

// Check is one thing looked at.
type Check struct {
	Check  string `json:"check"`
	Result Result `json:"result"`
	Detail string `json:"detail"`
	Remedy string `json:"remedy,omitempty"`
}

// Failed counts the checks that failed.
func Failed(all []Check) (n int) {
	for _, c := range all {
		if c.Result == Fail {
			n++
		}
	}
	return n
}

// Print writes a table: check, result, finding; with the remedy below.
func Print(w io.Writer, all []Check, colour bool) {
	width := 0
	for _, c := range all {
		width = max(width, len(c.Check))
	}
	colours := map[Result]string{OK: "32", Warn: "33", Fail: "31"}
	for _, c := range all {
		res := fmt.Sprintf("%-4s", c.Result)
		if colour {
			res = "\x1b[" + colours[c.Result] + "m" + res + "\x1b[0m"
		}
		fmt.Fprintf(w, "%-*s  %s  %s\n", width, c.Check, res, c.Detail)
		if c.Remedy != "" {
			fmt.Fprintf(w, "%*s        → %s\n", width, "", c.Remedy)
		}
	}
}
