package slurmtest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A boot takes at most a fiftieth of this; the machine may be slow and busy.
const (
	bootTime        = 5 * time.Minute
	bootTimePerNode = 100 * time.Millisecond
)

// Start boots a cluster for a test and stops it when the test is over. It fails the test at once if
// Slurm cannot run. It prints the logs of a failed test's cluster; see SLURMTEST_LOGS.
func Start(t testing.TB, o Options) *Cluster {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), bootTime+time.Duration(o.Nodes)*bootTimePerNode)
	defer cancel()
	c, err := Boot(ctx, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("logs of the cluster:\n%s", c.logTail(80))
			if kept, err := keepLogs(c.site.dir, t.Name()); kept != "" {
				t.Logf("all logs are in %s (%v)", kept, err)
			}
		}
		// The test's own context has ended.
		ctx, cancel := context.WithTimeout(context.Background(), stopTime)
		defer cancel()
		if err := c.Stop(ctx); err != nil {
			t.Error(err)
		}
	})
	return c
}

// logTail returns the end of the controller's log and, from every other log, the last lines about
// errors.
func (c *Cluster) logTail(lines int) string {
	var b strings.Builder
	logs, _ := filepath.Glob(c.site.dir + "/log/*")
	for _, path := range logs {
		text, err := os.ReadFile(path)
		name := filepath.Base(path)
		if err != nil || name == "slurmctld.out" || name == "slurmdbd.out" {
			continue // a copy of the .log
		}
		all := strings.Split(strings.TrimSpace(string(text)), "\n")
		if name != "slurmctld.log" {
			var errors []string
			for _, line := range all {
				if low := strings.ToLower(line); strings.Contains(low, "error") || strings.Contains(low, "fatal") || strings.Contains(low, "panic") {
					errors = append(errors, line)
				}
			}
			all = errors
		}
		if len(all) == 0 || all[0] == "" {
			continue
		}
		if len(all) > lines {
			all = all[len(all)-lines:]
		}
		fmt.Fprintf(&b, "--- %s\n%s\n", name, strings.Join(all, "\n"))
	}
	return b.String()
}
