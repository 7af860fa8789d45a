package matrix

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest/must"
)

// mostRefused is how many requests slurmctld may refuse in TestRateLimit, where two jobs start and grow at once. A sidecar that
// polled every half a second had 73 refused.
const mostRefused = 10

// TestRateLimit has jobs start, grow, and shrink at once where slurmctld limits an operator's requests: few are refused, growths
// come on time, and doctor names the limit. Only `make matrix` runs it, since it needs the commands beside this program.
func TestRateLimit(t *testing.T) {
	if os.Getenv(fileVariable) == "" || !slurmtest.Needs(t, "24.11") { // the limit is of 23.02
		return
	}
	cluster := slurmtest.Start(t, slurmtest.Options{Nodes: 6, Accounting: true, PermitJobExpansion: true,
		ExtraConf: "SlurmctldParameters=rl_enable,rl_bucket_size=20,rl_refill_rate=4"})
	s := &rights{}
	s.bench = newBench(t, cluster, "cons_tres", "")
	s.startAs("operator")
	ctx, cancel := context.WithTimeout(t.Context(), operationTime)
	defer cancel()
	var all sync.WaitGroup
	for _, mode := range resizing {
		all.Go(func() {
			if err := s.evolves(ctx, mode, 8); err != nil {
				t.Errorf("%s: %v", mode, err)
			}
		})
	}
	all.Wait()
	log, err := os.ReadFile(cluster.Dir() + "/log/slurmctld.log")
	must.OK(t, err)
	if n := strings.Count(string(log), fmt.Sprintf("RPC rate limit exceeded by uid %d ", s.account.UID)); n > mostRefused {
		t.Errorf("slurmctld refused %d requests, want %d at most", n, mostRefused)
	} else {
		t.Logf("slurmctld refused %d requests", n)
	}
	var report api.Report
	must.OK(t, json.Unmarshal([]byte(s.mine(ctx, "evosctl", "report", "--format=json")), &report))
	if p := report.Total.Promises; p.Kept != 2 || p.Made != 2 {
		t.Errorf("%+v", p)
	}
	const limit = "4 every 1s (rl_enable), also of news: polls come at least 3s apart"
	if text := s.mine(ctx, "evosctl", "doctor"); !strings.Contains(text, limit) {
		t.Errorf("doctor says\n%s", text)
	}
}

// mine returns what a command of the sidecar's account prints.
func (s *rights) mine(ctx context.Context, name string, args ...string) string {
	cmd := exec.CommandContext(ctx, s.Bin+"/"+name, args...)
	cmd.Env = append(os.Environ(), s.Env()...)
	s.account.Become(cmd)
	out, err := cmd.Output()
	if len(out) == 0 {
		s.t.Errorf("%s %v: %v", name, args, err)
	}
	return string(out)
}
