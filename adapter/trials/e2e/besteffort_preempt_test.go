package e2e_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/job/bag"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest"
)

// preemptedTasks is how many tasks the bag has that Slurm preempts: 3 s each, for eight at once.
const preemptedTasks = 160

// preemptedTask lasts three seconds, or a minute and ignores SIGTERM if there is a file.
const preemptedTask = `if [ -e "$2" ]; then trap '' TERM; sleep 60; fi
sleep 3 || exit 1
echo task $1
`

// preempts has partitions by which Slurm itself cancels best-effort jobs, 5 s after it has decided to.
var preempts = slurmtest.Options{Accounting: true, PermitJobExpansion: true, Nodes: 4,
	Partitions: []slurmtest.Partition{{Name: "low", Default: true, Extra: "PriorityTier=1 PreemptMode=CANCEL GraceTime=5"}, {Name: "high", Extra: "PriorityTier=10 PreemptMode=OFF"}},
	ExtraConf:  "PreemptType=preempt/partition_prio\nPreemptMode=CANCEL\n"}

// TestBestEffortPreempted has stock jobs of a higher tier want the nodes of companions of a best-effort job that may take ten
// minutes to leave them. Slurm tells the companion's tasks to end. The job gives the companion back at once. Where its tasks
// ignore that, the companion is cancelled. Then the stock job starts, and the bag goes on on the other node.
// It gets nodes again afterwards, and each task ends once.
func TestBestEffortPreempted(t *testing.T) {
	t.Parallel()
	s := newSite(t, preempts, nil, "best_effort: {enabled: true}")
	first := s.stock("--nodes=3", "--nodelist=n[2-4]", "--wrap=sleep 600")
	s.eventually("three nodes are in use", func() bool { return s.state(first) == "RUNNING" })
	task, deaf := s.script("task.sh", preemptedTask), s.Dir+"/deaf"
	id := s.submit("--best-effort", "--nodes=1-4", "--grace=10m", "--drive=companion", "--time=1:00:00", "--ntasks-per-node=2",
		fmt.Sprintf("--tasks=1-%d", preemptedTasks), "--checkpoint=none", "--drain-time=9m", "--", "sh", task, "{}", deaf)
	dir := s.Dir + "/out/evobag-" + id
	stands := func() bag.Summary { return standing(dir) }
	onAll := func() bool { return stands().Running == 8 }
	s.eventually("two tasks run", func() bool { return stands().Running == 2 })
	_, _, err := s.As(1, "scancel", first)
	s.must(err)
	s.eventually("eight tasks run at once", onAll)
	if states := s.preempted(); !slices.Equal(states, []string{"COMPLETED"}) {
		t.Errorf("the job did not give its companions back: %q", states)
	}
	s.eventually("eight tasks run at once again", onAll)
	done := stands().Done
	s.must(os.WriteFile(deaf, nil, 0o644))
	s.eventually("tasks run that ignore SIGTERM", func() bool { return stands().Done >= done+8 && onAll() })
	if states := s.preempted(); slices.Contains(states, "COMPLETED") { // or PREEMPTED, or CANCELLED as the job gives back what its workers have left
		t.Errorf("the companions ended by themselves: %q", states)
	}
	s.must(os.Remove(deaf))
	s.eventually("eight tasks run at once after both", onAll)
	s.eventually("all tasks are done", func() bool { return stands().Done == preemptedTasks })
	out := s.output(id)
	if m := stands(); m.Failed+m.Running+m.Waiting != 0 {
		t.Errorf("%+v; it printed\n%s", m, strings.Join(out, "\n"))
	}
	for i := 1; i <= preemptedTasks; i++ {
		if text, err := os.ReadFile(fmt.Sprintf("%s/out/%d", dir, i)); !strings.HasSuffix(string(text), fmt.Sprintf("task %d\n", i)) || strings.Count(string(text), "task") != 1 {
			t.Errorf("task %d printed %q, %v", i, text, err)
		}
	}
	events, err := s.client().Events(t.Context(), api.EventQuery{})
	s.must(err)
	for _, e := range events {
		if fmt.Sprint(e.Job) == id && e.Kind == "requeued" {
			t.Errorf("the job was requeued: %+v", e)
		}
	}
	s.stop(syscall.SIGTERM)
}

// preempted has an urgent stock job start on the companions' nodes, and returns how the companions ended. Slurm must have preempted
// all of them.
func (s *site) preempted() (states []string) {
	s.t.Helper()
	companions, _, err := s.As(0, "squeue", "--noheader", "--me", "--states=RUNNING", "--nodelist=n[2-4]", "--format=%A")
	s.must(err)
	begun := time.Now()
	urgent := s.stock("--nodes=3", "--partition=high", "--nodelist=n[2-4]", "--wrap=sleep 5")
	s.eventually("the urgent job runs, or did", func() bool { return slices.Contains([]string{"RUNNING", "COMPLETED"}, s.state(urgent)) })
	s.t.Logf("the urgent job waited %v", time.Since(begun).Round(time.Second/10))
	for _, id := range strings.Fields(companions) {
		shown, _, err := s.As(0, "scontrol", "--oneliner", "show", "job", id)
		s.must(err)
		if !strings.Contains(shown, " PreemptTime=2") {
			s.t.Errorf("Slurm did not preempt job %s: %s", id, shown)
		}
		_, state, _ := strings.Cut(shown, " JobState=")
		state, _, _ = strings.Cut(state, " ")
		states = append(states, state)
	}
	slices.Sort(states)
	return slices.Compact(states)
}
