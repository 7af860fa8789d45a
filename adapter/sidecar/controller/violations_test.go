package controller_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/internal/config"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest"
)

// TestViolations: what becomes of applications that do not keep to the protocol.
func TestViolations(t *testing.T) {
	t.Parallel()
	l := newLab(t, slurmtest.Options{Accounting: true, PermitJobExpansion: true}, func(c *config.Config) { c.Grace = 4 * time.Second })
	dir := t.TempDir()
	l.must(os.Chmod(dir, 0o1777))
	for d := dir; d != "/tmp" && d != "/"; d = filepath.Dir(d) {
		l.must(os.Chmod(d, 0o1777)) // jobs of others write there
	}
	said := func(l *lab, file string, words ...string) {
		l.t.Helper()
		l.eventually("what the job says", func() error {
			text, err := os.ReadFile(filepath.Join(dir, file))
			for _, w := range words {
				if !strings.Contains(string(text), w) {
					return fmt.Errorf("it says %q (%v), not %q", text, err, w)
				}
			}
			return nil
		})
	}
	l.run("never calls next and keeps using its nodes: warned, then its steps there end", func(l *lab) {
		late := l.submit("6@5s,2@60s", "--output="+dir+"/late", `--wrap=trap 'echo warned' URG
srun --ntasks-per-node=1 sleep 600 &
while :; do sleep 1; done`)
		other := l.submit("2@6s,6@60s")
		l.running(late, 1)
		l.running(other, 1)
		a := l.next(other, 1) // needs what the first should have given back
		l.has(a, 6)
		said(l, "late", "warned", "Killed") // the step's tasks on the nodes that it had to give back
		if job := l.running(late, 2); job.Nodes != 2 {
			l.t.Errorf("it has %d nodes, want 2", job.Nodes)
		}
		l.cancel(late)
		l.end(other)
	})
	l.run("never ends its last step: cancelled once others are promised its nodes", func(l *lab) {
		late := l.submit("6@5s", "--output="+dir+"/last", `--wrap=trap 'echo warned' URG; while :; do sleep 1; done`)
		other := l.submit("2@6s,6@60s")
		l.running(late, 1)
		l.running(other, 1)
		l.has(l.next(other, 1), 6)
		said(l, "last", "warned")
		if job := l.ended(late); job.EndState != "CANCELLED" {
			l.t.Errorf("it ended %s, want CANCELLED", job.EndState)
		}
		l.end(other)
	})
}
