package e2e_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/job/bag"
	"github.com/evoslurm/evoslurm/slurmctl"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest"
)

// gated is a task that waits for the gate of its wave of 16. Every second task leaves a checkpoint early; all do when they get SIGTERM.
const gated = `exec 2>/dev/null
wave=$((($1 - 1) / 16))
save() { echo $EVO_NODE >$EVO_CHECKPOINT.new; mv $EVO_CHECKPOINT.new $EVO_CHECKPOINT; }
trap 'save; exit 99' TERM
[ $(($1 % 2)) = 0 ] || save
until [ -e gate-$wave ]; do sleep 0.1; done
echo task $1
`

// wave is a bag of three waves of 16 tasks, four at once on a node.
type wave struct {
	*site
	id, dir string
}

func (s *site) waves(drive string) wave {
	s.t.Helper()
	id := s.submit("--drive="+drive, "--malleable=1-4", "--grace=2m", "--time=20", "--ntasks-per-node=4", "--tasks=1-48",
		"--checkpoint=demand", "--drain-time=1m", "--", "sh", s.script("gated.sh", gated), "{}")
	w := wave{s, id, s.Dir + "/out/evobag-" + id}
	s.eventually("16 tasks run, and every second has a checkpoint", func() bool {
		saved, _ := filepath.Glob(w.dir + "/checkpoints/*")
		return w.stands().Running == 16 && len(saved) == 8
	})
	return w
}

func (w wave) stands() bag.Summary {
	b, err := bag.Read(w.dir)
	if err != nil {
		return bag.Summary{}
	}
	return b.Summary(time.Now())
}

// open lets the tasks of a wave end.
func (w wave) open(number int) {
	w.t.Helper()
	w.must(os.WriteFile(fmt.Sprintf("%s/out/gate-%d", w.Dir, number), nil, 0o644))
}

// records returns what the leader wrote.
func (w wave) records() (all []bag.Record) {
	w.t.Helper()
	text, err := os.ReadFile(w.dir + "/journal-000001")
	w.must(err)
	lines := strings.SplitAfter(string(text), "\n")
	for _, line := range lines[1 : len(lines)-1] {
		var r bag.Record
		w.must(json.Unmarshal([]byte(line), &r))
		all = append(all, r)
	}
	return all
}

// of returns the tasks of the records of a kind.
func of(records []bag.Record, is func(bag.Record) bool) (tasks []int) {
	for _, r := range records {
		if is(r) {
			tasks = append(tasks, r.Task)
		}
	}
	return tasks
}

// ordered checks that tasks whose node went run before all others, those with a checkpoint first. It returns how many had one, and
// how many had none.
func (w wave) ordered() (saved, others int) {
	w.t.Helper()
	waits := map[bool]map[int]bool{true: {}, false: {}} // with a checkpoint, and without
	for _, r := range w.records() {
		switch {
		case r.Kind == bag.Back || r.Kind == bag.Lost:
			waits[r.Saved][r.Task] = true
			if r.Saved {
				saved++
			} else {
				others++
			}
		case r.Kind == bag.Run:
			isSaved, isOther := waits[true][r.Task], waits[false][r.Task]
			if !isSaved && (len(waits[true]) > 0 || !isOther && len(waits[false]) > 0) {
				w.t.Errorf("task %d runs before %v", r.Task, waits)
			}
			delete(waits[isSaved], r.Task)
		}
	}
	return saved, others
}

// ended waits until all tasks have, and checks that each has once.
func (w wave) ended() {
	w.t.Helper()
	out := w.output(w.id)
	if !slices.Contains(out, "evosrun: 48 of 48 tasks done") {
		w.t.Errorf("it printed\n%s", strings.Join(out, "\n"))
	}
	ends := of(w.records(), func(r bag.Record) bool { return r.Kind == bag.Done || r.Kind == bag.Fail })
	slices.Sort(ends)
	if len(ends) != 48 || len(slices.Compact(ends)) != 48 {
		w.t.Errorf("these have ended: %v", ends)
	}
	for i := 1; i <= 48; i++ {
		if text, err := os.ReadFile(fmt.Sprintf("%s/out/%d", w.dir, i)); string(text) != fmt.Sprintf("task %d\n", i) {
			w.t.Errorf("task %d printed %q, %v", i, text, err)
		}
	}
	for gate := range 3 {
		w.must(os.Remove(fmt.Sprintf("%s/out/gate-%d", w.Dir, gate)))
	}
}

// TestBagNodes has an administrator set a bag's node down, and a stock job want two nodes of a bag that grows by merges. The
// tasks there run again, those with a checkpoint first, and each ends once.
func TestBagNodes(t *testing.T) {
	t.Parallel()
	s := newSite(t, slurmtest.Options{Accounting: true, PermitJobExpansion: true, Nodes: 4, ExtraConf: "ReturnToService=0\n"}, nil)
	t.Run("a node is set down", func(t *testing.T) {
		s.t = t
		s.nodeDown()
	})
	t.Run("merged nodes are given back", func(t *testing.T) {
		s.t = t
		w := s.waves("merge")
		t.Logf("a stock job of two nodes waited %v", s.stockWaits("2"))
		for gate := range 3 {
			w.open(gate)
		}
		w.ended()
		if saved, others := w.ordered(); saved < 8 || others > 0 {
			t.Errorf("of the tasks that ran again, %d had a checkpoint, and %d had none", saved, others)
		}
		for _, o := range s.job(w.id).Offers {
			if o.Enforced {
				t.Errorf("%+v", o)
			}
		}
	})
	s.t = t
	s.stop(syscall.SIGTERM)
}

// nodeDown sets down one of the three nodes of a bag's companion, which Slurm ends then. The other two come back at once.
func (s *site) nodeDown() {
	s.t.Helper()
	w := s.waves("companion")
	runs := func(is func(bag.Record) bool) int {
		return len(of(w.records(), func(r bag.Record) bool { return r.Kind == bag.Run && is(r) }))
	}
	all, err := slurmctl.ExpandNodes("n[1-4]")
	s.must(err)
	base, err := slurmctl.ExpandNodes(s.job(w.id).NodeList)
	s.must(err)
	node := all[slices.IndexFunc(all, func(n string) bool { return n != base[0] })]
	scontrol := func(state string) {
		s.t.Helper()
		_, err := s.Cluster.Run(s.t.Context(), slurmtest.Root, "scontrol", "update", "NodeName="+node, "State="+state, "Reason=trial")
		s.must(err)
	}
	scontrol("DOWN")
	s.eventually("its tasks are lost", func() bool {
		return len(of(w.records(), func(r bag.Record) bool { return r.Kind == bag.Lost })) >= 4
	})
	s.eventually("the other two nodes are back", func() bool { return w.stands().Running == 12 })
	w.open(0)
	w.open(1)
	s.eventually("12 of the last tasks run", func() bool { m := w.stands(); return m.Done == 32 && m.Running == 12 })
	up := time.Now().Unix()
	if n := runs(func(r bag.Record) bool { return r.Node == node }); n != 4 {
		s.t.Errorf("%d tasks started on %s before it was up again, want the first 4", n, node)
	}
	scontrol("RESUME")
	s.eventually("the node runs tasks again", func() bool { return runs(func(r bag.Record) bool { return r.Node == node && r.At >= up }) > 0 })
	w.open(2)
	w.ended()
	if saved, others := w.ordered(); saved < 2 || others < 1 {
		s.t.Errorf("of the tasks that ran again, %d had a checkpoint, and %d had none", saved, others)
	}
}
