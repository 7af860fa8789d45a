package e2e_test

import (
	"encoding/json"
	"flag"
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

var bestRounds = flag.Int("best.rounds", 1, "how often stock jobs want the nodes of a best-effort job")

// bestEffortTasks is how many tasks the bag of a best-effort job has for a round: 3 s each, for eight at once.
const bestEffortTasks = 160

// bestEffortTask counts to 30 and leaves a checkpoint when it gets SIGTERM.
const bestEffortTask = `exec 2>/dev/null
n=0
[ -z "$EVO_RESTART" ] || read n <$EVO_CHECKPOINT
trap 'echo $n >$EVO_CHECKPOINT.new; mv $EVO_CHECKPOINT.new $EVO_CHECKPOINT; exit 99' TERM
while [ $n -lt 30 ]; do sleep 0.1; n=$((n + 1)); done
echo task $1
`

// TestBestEffort has a best-effort job work a bag off beside a stock workload and an evolving job. The job leaves all nodes when a stock
// job wants them, is requeued, and goes on with what is left. No task is lost, and none ends twice.
func TestBestEffort(t *testing.T) {
	t.Parallel()
	s := newSite(t, slurmtest.Options{Accounting: true, PermitJobExpansion: true, Nodes: 4}, nil, "best_effort: {enabled: true}")
	tasks := *bestRounds * bestEffortTasks
	task := s.script("best.sh", bestEffortTask)
	id := s.submit("--best-effort", "--nodes=1-4", "--grace=20s", "--drive=companion", "--time=1:00:00", "--ntasks-per-node=2",
		fmt.Sprintf("--tasks=1-%d", tasks), "--checkpoint=demand", "--drain-time=10s", "--", "sh", task, "{}")
	dir := s.Dir + "/out/evobag-" + id
	stands := func() bag.Summary { return standing(dir) }
	onAll := func() bool { return stands().Running == 8 }
	s.eventually("eight tasks run at once", onAll)
	for i := range 2 * *bestRounds {
		nodes := []string{"4", "2"}[i%2] // all of its nodes, and some
		t.Logf("a stock job of %s nodes waited %v", nodes, s.stockWaits(nodes))
		s.eventually("eight tasks run at once again", func() bool { return onAll() || stands().Done == tasks })
	}
	if m := stands(); m.Done == tasks {
		t.Fatal("the bag is too small for this")
	}
	evolving := s.submit("--drive=companion", "--profile=1@20s,3@5s", "--wrap=evosctl next")
	s.eventually("the evolving job has ended", func() bool { return s.job(evolving).State == "ended" })
	events, err := s.client().Events(t.Context(), api.EventQuery{})
	s.must(err)
	var kinds []string
	for _, e := range events {
		if fmt.Sprint(e.Job) == id {
			kinds = append(kinds, e.Kind)
		}
		if fmt.Sprint(e.Job) == evolving && e.Kind == "step begun" {
			var step struct{ Planned int64 }
			s.must(json.Unmarshal(e.Detail, &step))
			t.Logf("the evolving job grows %v after the planned second begins", e.At.Sub(time.Unix(step.Planned, 0)).Round(time.Second/10))
		}
	}
	if !slices.Contains(kinds, "requeued") {
		t.Errorf("it was not requeued: %q", kinds)
	}
	s.eventually("all tasks are done", func() bool { return stands().Done == tasks })
	out := s.output(id)
	if m := stands(); m.Failed+m.Running+m.Waiting != 0 {
		t.Errorf("%+v; it printed\n%s", m, strings.Join(out, "\n"))
	}
	for i := 1; i <= tasks; i++ {
		if text, err := os.ReadFile(fmt.Sprintf("%s/out/%d", dir, i)); string(text) != fmt.Sprintf("task %d\n", i) {
			t.Errorf("task %d printed %q, %v", i, text, err)
		}
	}
	s.stop(syscall.SIGTERM)
}

// standing returns how a bag stands, or nothing before it is there.
func standing(dir string) bag.Summary {
	b, err := bag.Read(dir)
	if err != nil {
		return bag.Summary{}
	}
	return b.Summary(time.Now())
}

// stockWaits returns how long a stock job of another user waits for nodes.
func (s *site) stockWaits(nodes string) time.Duration {
	s.t.Helper()
	begun := time.Now()
	id := s.stock("--nodes="+nodes, "--wrap=sleep 2")
	s.eventually("the stock job runs, or did", func() bool { return slices.Contains([]string{"RUNNING", "COMPLETED"}, s.state(id)) })
	return time.Since(begun).Round(time.Second / 10)
}

// stock submits a stock job of another user with all CPUs of its nodes, and returns its ID.
func (s *site) stock(args ...string) string {
	s.t.Helper()
	out, errs, err := s.As(1, "sbatch", append([]string{"--parsable", "--exclusive", "--time=20", "--output=/dev/null"}, args...)...)
	if err != nil {
		s.t.Fatalf("%v: %s", err, errs)
	}
	return strings.TrimSpace(out)
}

// state returns the state of a job by slurmdbd, or "".
func (s *site) state(id string) string {
	out, _, _ := s.As(1, "sacct", "--noheader", "-X", "--parsable2", "--format=state", "--jobs="+id)
	return strings.TrimSpace(out)
}
