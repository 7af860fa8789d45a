package e2e_test

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/evoslurm/evoslurm/slurmctl/slurmtest"
)

// failingTask has each task of an array evolve; the second one fails in its first step.
const failingTask = `#!/bin/bash
sleep 5
[ $SLURM_ARRAY_TASK_ID = 2 ] && exit 1
eval "$(evosctl next)"
echo $EVO_STEP $(evosctl hostfile | wc -l) > task-$SLURM_ARRAY_TASK_ID
eval "$(evosctl next)"
`

// TestArrayTaskFails submits an array with a task that fails: the others evolve, and all commands show each, also after a
// restart of the sidecar.
func TestArrayTaskFails(t *testing.T) {
	t.Parallel()
	s := newSite(t, slurmtest.Options{Accounting: true, PermitJobExpansion: true}, nil)
	id := s.submit("--array=1-4%2", "--profile=1@10s,2@10s", s.script("task.sh", failingTask))
	want, got := "", ""
	for task := 1; task <= 4; task++ {
		state := "COMPLETED"
		if task == 2 {
			state = "FAILED"
		}
		want += fmt.Sprintf("%s_%d|%s\n", id, task, state)
	}
	s.eventually("all tasks have ended", func() bool {
		got, _, _ = s.As(0, "evosacct", "-X", "-n", "-P", "-o", "jobid,state", "--jobs="+id)
		return !strings.Contains(got, "PENDING") && strings.Count(got, "COMPLETED")+strings.Count(got, "FAILED") == 4
	})
	for range 2 {
		if got != want {
			t.Errorf("evosacct shows\n%s, want\n%s", got, want)
		}
		if got, errs, err := s.As(0, "evosqueue", "--noheader", "--states=all", "--format=%i|%T", "--sort=i", "--jobs="+id); err != nil || strings.ReplaceAll(got, " ", "") != want {
			t.Errorf("evosqueue shows\n%s%s%v, want\n%s", got, errs, err, want)
		}
		s.stop(syscall.SIGTERM)
		s.start()
		got, _, _ = s.As(0, "evosacct", "-X", "-n", "-P", "-o", "jobid,state", "--jobs="+id)
	}
	for task := 1; task <= 4; task++ {
		had, _ := os.ReadFile(fmt.Sprintf("%s/out/task-%d", s.Dir, task))
		if ran := string(had) == "2 2\n"; ran != (task != 2) {
			t.Errorf("task %d had in its second step: %q", task, had)
		}
	}
	s.stop(syscall.SIGTERM)
}
