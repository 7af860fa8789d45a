package e2e_test

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/job/bag"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest/must"
)

// campaignTasks is how many tasks TestCampaign has: a tenth of a second each, for 20 at once.
const campaignTasks = 2000

// TestCampaign: three clusters work one bag off, and one of them dies in the middle, with its slurmctld, its sidecar, its nodes, and
// what ran there. All tasks are done once, by the other two. The command that waits names the dead cluster.
func TestCampaign(t *testing.T) {
	t.Parallel()
	all := newClusters(t, map[string]int{"a": 2, "b": 2, "c": 1}, "best_effort: {enabled: true}\n")
	s, stops := all.started(t)
	s.refusesCampaigns(all["c"].Cluster)

	waits := s.campaign()
	s.eventually("all clusters have done tasks, and b runs some", func() bool {
		by := s.byClusters()
		return by["a"].Done > 0 && by["b"].Done > 0 && by["c"].Done > 0 && by["b"].Running > 0
	})
	stops["b"]()
	must.OK(t, all["b"].Cluster.KillController(t.Context()))
	for _, node := range []string{"n1", "n2"} {
		must.OK(t, all["b"].Cluster.StopNode(t.Context(), node))
	}
	m, dead := s.stands(), s.byClusters()
	if left := m.Tasks - m.Done; left < campaignTasks/10 {
		t.Fatalf("only %d tasks are left: the bag is too small for this", left)
	}
	t.Logf("b dies: %+v", dead)
	s.showsClusters()
	end := <-waits
	m, by := s.stands(), s.byClusters()
	t.Logf("%+v\n%s%s", m, end.out, end.errs)
	if end.err != nil || m.Done != campaignTasks || m.Failed+m.Running+m.Waiting != 0 || m.Collected != "done" {
		t.Errorf("%v: %+v", end.err, m)
	}
	if by["b"].Done != dead["b"].Done || by["b"].Lost == 0 || by["a"].Done+by["b"].Done+by["c"].Done != campaignTasks {
		t.Errorf("by clusters: %+v, and when b died %+v", by, dead)
	}
	if !strings.Contains(end.errs, "cluster b is left out for 1m0s: ") {
		t.Errorf("the dead cluster is not named:\n%s", end.errs)
	}
	s.allPrinted()
}

// showsClusters sees that evosctl tasks has a line for each cluster.
func (s *site) showsClusters() {
	shown, errs, err := s.As(0, "evosctl", "tasks", "bag")
	if err != nil || !regexp.MustCompile(`(?m)^CLUSTER +JOB +SLOTS +RUNNING +DONE +FAILED +LOST +NOTE\na +\d+ +\d+ `).MatchString(shown) {
		s.t.Errorf("evosctl tasks: %v %s\n%s", err, errs, shown)
	}
}

// ended is how a command has ended.
type ended struct {
	out, errs string
	err       error
}

// campaign submits the campaign, and waits for it.
func (s *site) campaign() <-chan ended {
	waits := make(chan ended, 1)
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), 2*patience)
		defer cancel()
		cmd := s.Cluster.Command(ctx, s.Cluster.Users()[0], bin+"/evosbatch", "-M", "all", "--wait", "--best-effort", "--nodes=1-2", "--time=20", "--drive=companion", "--ntasks-per-node=4", "--bag=bag",
			fmt.Sprintf("--tasks=1-%d", campaignTasks), "--collect=sh -c 'ls $0/out | wc -l' {dir}", "--", "sh", "-c", "sleep 0.1; echo task $0", "{}")
		var out, errs strings.Builder
		cmd.Env, cmd.Dir, cmd.Stdout, cmd.Stderr = append(cmd.Env, s.Env()...), s.Dir+"/out", &out, &errs
		err := cmd.Run()
		waits <- ended{out.String(), errs.String(), err}
	}()
	return waits
}

// stands returns how the campaign stands.
func (s *site) stands() bag.Summary {
	state, err := bag.Read(s.Dir + "/out/bag")
	if err != nil {
		return bag.Summary{}
	}
	return state.Summary(time.Now())
}

func (s *site) byClusters() map[string]bag.ClusterSummary {
	by := map[string]bag.ClusterSummary{}
	for _, c := range s.stands().Clusters {
		by[c.Name] = c
	}
	return by
}

// allPrinted checks that each task has printed once, and what was collected.
func (s *site) allPrinted() {
	dir := s.Dir + "/out/bag"
	for i := 1; i <= campaignTasks; i++ {
		if text, err := os.ReadFile(fmt.Sprintf("%s/out/%d", dir, i)); string(text) != fmt.Sprintf("task %d\n", i) {
			s.t.Errorf("task %d printed %q, %v", i, text, err)
		}
	}
	if text, err := os.ReadFile(dir + "/collect"); err != nil || len(text) == 0 {
		s.t.Errorf("collected %q, %v", text, err)
	}
}

// refusesCampaigns sees what bad input gets: clusters that are unknown or named twice, and a user that one of them does not know.
func (s *site) refusesCampaigns(c *slurmtest.Cluster) {
	t := s.t
	t.Helper()
	submit := func(user int, clusters string, more ...string) (out, errs string, err error) {
		return s.As(user, "evosbatch", append(append([]string{"-M", clusters, "--best-effort", "--time=5", "--drive=companion", "--ntasks-per-node=2"}, more...), "--", "sh", "-c", "echo $0", "{}")...)
	}
	if _, errs, err := submit(1, "a,nowhere", "--tasks=1-6"); err == nil || !strings.Contains(errs, `no cluster "nowhere" is known here`) {
		t.Errorf("an unknown cluster: %v\n%s", err, errs)
	}
	if out, _, err := submit(1, "a,a,c,a", "--tasks=1-6", "--dry-run"); err != nil || strings.Count(out, "--clusters=a") != 1 || strings.Count(out, "--clusters=c") != 1 {
		t.Errorf("a cluster that is named twice: %v\n%s", err, out)
	}
	if _, errs, err := s.As(1, "evosbatch", "--best-effort", "--time=5", "--tasks=1-6", "--collect=true", "true"); err == nil || !strings.Contains(errs, "--collect is for a campaign") {
		t.Errorf("--collect for one cluster: %v\n%s", err, errs)
	}
	_, err := c.Run(t.Context(), slurmtest.Root, "sacctmgr", "-i", "delete", "user", c.Users()[1].Name, "where", "cluster=c")
	must.OK(t, err)
	out, errs, err := submit(1, "a,c", "--tasks=1-6", "--wait")
	if err != nil || !regexp.MustCompile(`(?m)^c +- +left out: .*account`).MatchString(errs) || !strings.Contains(errs, "evosbatch: 6 of 6 tasks done") {
		t.Errorf("a user that one cluster does not know: %v\n%s%s", err, out, errs)
	}
}
