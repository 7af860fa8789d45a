package slurmctl_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/slurmctl"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest"
)

// TestWantsAccount checks when a refused update of a running job means that the site wants
// Account=: only if the site also refuses an update that changes nothing, and not if slurmctld does
// not answer that one.
func TestWantsAccount(t *testing.T) {
	f := start(t, slurmtest.Options{Accounting: true})
	id := f.submit("sleep 300", "--time=5")
	f.running(id)
	for answer, want := range map[string]bool{
		`exec "$real" "$@"`: false,
		"echo 'slurm_update error: Unspecified error' >&2; exit 1":                                    true,
		"echo 'slurm_update error: Invalid account or account/partition combination' >&2; exit 1":     true,
		"echo 'slurm_update error: Invalid job id specified' >&2; exit 1":                             true, // a plugin may say anything
		"echo 'slurm_update error: Unable to contact slurm controller (connect failure)' >&2; exit 1": false,
	} {
		dir := f.TempDir()
		squeue, err := exec.LookPath("squeue")
		f.must(err)
		scontrol, err := exec.LookPath("scontrol")
		f.must(err)
		f.must(os.Symlink(squeue, filepath.Join(dir, "squeue")))
		f.must(os.WriteFile(filepath.Join(dir, "scontrol"), fmt.Appendf(nil, `#!/bin/sh
real=%s
case "$*" in
*Account=*) echo 'slurm_update error: Job is no longer pending execution' >&2; exit 1;;
*EndTime=*) echo 'slurm_update error: Unspecified error' >&2; exit 1;;
*TimeLimit=*) %s;;
esac
exec "$real" "$@"
`, scontrol, answer), 0o755))
		c := &slurmctl.Client{Dir: dir, Env: f.Env}
		err = c.UpdateJob(f.ctx, id, slurmctl.JobUpdate{EndTime: time.Now().Add(4 * time.Minute)})
		f.is(answer, err, slurmctl.ErrUnspecified)
		if got := c.WantsAccount(); got != want {
			t.Errorf("%s: it wants Account= %v, want %v", answer, got, want)
		}
	}
}
