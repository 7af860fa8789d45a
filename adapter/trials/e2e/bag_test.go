package e2e_test

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/job/bag"
	"github.com/evoslurm/evoslurm/slurmctl"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest"
)

const bagTasks = 120

// bagJob works a bag off, also once its leader was killed. A task counts to 30 and leaves a checkpoint when it gets SIGTERM.
const bagJob = `#!/bin/bash
export TOP=$PWD
cat >task.sh <<'END'
exec 2>/dev/null # sh tells which signal ended sleep
echo $PPID >$TOP/worker-$EVO_NODE
n=0
[ -z "$EVO_RESTART" ] || read n <$EVO_CHECKPOINT
[ $n = 0 ] || echo $1 from $n >>$TOP/restarts
trap 'echo $n >$EVO_CHECKPOINT.new; mv $EVO_CHECKPOINT.new $EVO_CHECKPOINT; exit 99' TERM
while [ $n -lt 30 ]; do sleep 0.1; n=$((n + 1)); done
echo task $1 on $EVO_NODE
END
status=1
for try in 1 2 3; do
  evosrun --tasks=1-%d --bag=$TOP/bag --ntasks-per-node=2 --checkpoint=demand --drain-time=20s -- sh $TOP/task.sh {} &
  echo $! >leader.new; mv leader.new leader
  wait $!; status=$?
  echo "evosrun $status"
  [ $status != 0 ] || break
done
evosctl tasks $TOP/bag
evosctl tasks --failed $TOP/bag
exit $status
`

// TestBag works a bag off in a malleable job. A stock job wants two of its nodes, a worker is killed, and then the leader. All
// tasks end once, and those of the demanded nodes go on from their checkpoints.
func TestBag(t *testing.T) {
	t.Parallel()
	s := newSite(t, slurmtest.Options{Accounting: true, PermitJobExpansion: true, Nodes: 4}, nil)
	dir := s.Dir + "/out"
	id := s.submit("--drive=companion", "--malleable=1-4", "--grace=1m", "--time=20", s.script("bag.sh", fmt.Sprintf(bagJob, bagTasks)))
	stands := func() bag.Summary {
		b, err := bag.Read(dir + "/bag")
		if err != nil {
			return bag.Summary{}
		}
		return b.Summary(time.Now())
	}
	pid := func(file string) int {
		text, err := os.ReadFile(dir + "/" + file)
		n, bad := strconv.Atoi(strings.TrimSpace(string(text)))
		if err != nil || bad != nil || n < 2 {
			t.Fatalf("%s: %q, %v", file, text, err)
		}
		return n
	}
	s.eventually("eight tasks run at once", func() bool { return stands().Running == 8 })
	stock, errs, err := s.As(0, "sbatch", "--parsable", "--nodes=2", "--exclusive", "--time=5", "--wrap=sleep 5")
	if err != nil {
		t.Fatalf("%v: %s", err, errs)
	}
	begun := time.Now()
	s.eventually("the stock job runs, or did", func() bool {
		out, _, _ := s.As(0, "sacct", "--noheader", "-X", "--format=state", "--jobs="+strings.TrimSpace(stock))
		return strings.Contains(out, "RUNNING") || strings.Contains(out, "COMPLETED")
	})
	t.Logf("the stock job ran after %v", time.Since(begun).Round(time.Second/10))
	if m := stands(); m.Done+m.Failed == bagTasks {
		t.Fatal("the bag is too small for this")
	}
	nodes, err := slurmctl.ExpandNodes(s.job(id).NodeList)
	s.must(err)
	s.must(syscall.Kill(pid("worker-"+nodes[0]), syscall.SIGKILL))
	time.Sleep(time.Second)
	s.must(syscall.Kill(pid("leader"), syscall.SIGKILL))
	out := s.output(id)
	if m := stands(); m.Done != bagTasks || m.Failed+m.Running+m.Waiting != 0 || m.Voids != 0 {
		t.Errorf("%+v", m)
	}
	s.counted(dir)
	for _, o := range s.job(id).Offers {
		if o.Enforced {
			t.Errorf("%+v", o)
		}
	}
	joined := strings.Join(out, "\n")
	for _, want := range []string{"evosrun 137", "evosrun 0", fmt.Sprintf("%d tasks: %d done, 0 running, 0 waiting, 0 failed", bagTasks, bagTasks)} {
		if !strings.Contains(joined, want) {
			t.Errorf("it did not print %q, but\n%s", want, joined)
		}
	}
	s.tasks(dir)
	s.stop(syscall.SIGTERM)
}

// tasks has evosbatch submit a bag.
func (s *site) tasks(dir string) {
	s.t.Helper()
	id := s.submit("--drive=companion", "--malleable=1-4", "--time=20", "--tasks=1-9", "--", "sh", "-c", "echo \"$1 it's $EVO_TASK\"", "sh", "{}")
	if out := s.output(id); !slices.Contains(out, "evosrun: 9 of 9 tasks done") {
		s.t.Errorf("evosbatch --tasks: %q", out)
	}
	if text, err := os.ReadFile(fmt.Sprintf("%s/evobag-%s/out/7", dir, id)); string(text) != "7 it's 7\n" {
		s.t.Errorf("its task 7 printed %q, %v", text, err)
	}
}

// counted checks that each task has printed once, and that some have gone on from a checkpoint.
func (s *site) counted(dir string) {
	s.t.Helper()
	by := map[string]int{}
	for i := 1; i <= bagTasks; i++ {
		text, err := os.ReadFile(fmt.Sprintf("%s/bag/out/%d", dir, i))
		w := strings.Fields(string(text))
		if err != nil || len(w) != 4 || w[1] != strconv.Itoa(i) {
			s.t.Errorf("task %d printed %q, %v", i, text, err)
			continue
		}
		by[w[3]]++
	}
	restarts, _ := os.ReadFile(dir + "/restarts")
	if n := strings.Count(string(restarts), "\n"); n < 2 {
		s.t.Errorf("%d tasks went on from a checkpoint: %q", n, restarts)
	}
	s.t.Logf("by nodes: %v; went on from a checkpoint:\n%s", by, restarts)
}
