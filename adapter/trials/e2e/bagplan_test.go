package e2e_test

import (
	"slices"
	"syscall"
	"testing"

	"github.com/evoslurm/evoslurm/adapter/job/bag"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest"
)

// paced is a task of 3 s, until its bag may end at once.
const paced = `[ -e gate-0 ] || sleep 3
echo task $1
`

// TestBagByPlan has a bag use nodes that are held for a growth. Its tasks leave no checkpoints and are not ended, since none that takes
// as long as evosrun has learnt starts where the plan leaves less time, and since those that run have until then.
func TestBagByPlan(t *testing.T) {
	t.Parallel()
	s := newSite(t, slurmtest.Options{Accounting: true, PermitJobExpansion: true, Nodes: 4}, nil)
	evolving := s.submit("--drive=companion", "--profile=1@95s,3@5s", "--wrap=sleep 95; evosctl next; sleep 5")
	s.eventually("the evolving job runs", func() bool { return s.job(evolving).State == "running" })
	id := s.submit("--drive=companion", "--malleable=1-4", "--grace=8s", "--time=20", "--ntasks-per-node=2", "--tasks=1-300", "--drain-time=1s",
		"--", "sh", s.script("paced.sh", paced), "{}")
	w := wave{s, id, s.Dir + "/out/evobag-" + id}
	s.eventually("the job has grown", func() bool { return s.job(evolving).Step == 2 })
	m := w.stands()
	w.open(0)
	s.eventually("all tasks are done", func() bool { return w.stands().Done == 300 })
	nodes, ended := map[string]int{}, 0
	for _, r := range w.records() {
		switch r.Kind {
		case bag.Run:
			nodes[r.Node]++
		case bag.Back, bag.Lost:
			ended++
		}
	}
	t.Logf("as the other job grew, %d tasks were done; in the end the nodes had run %v", m.Done, nodes)
	if ended > 1 { // one may take much longer than most
		t.Errorf("%d tasks were ended", ended)
	}
	if m.Done < 20 || m.Done > 290 || len(nodes) < 3 {
		t.Error("this says nothing")
	}
	for _, o := range s.job(id).Offers {
		if o.Kind == "shrink" && o.Enforced {
			t.Errorf("%+v", o)
		}
	}
	if out := s.output(id); !slices.Contains(out, "evosrun: 300 of 300 tasks done") {
		t.Errorf("it printed %q", out)
	}
	s.stop(syscall.SIGTERM)
}
