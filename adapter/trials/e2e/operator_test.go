package e2e_test

import (
	"context"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/slurmctl/slurmtest"
)

// TestAsOperator: the sidecar needs neither root nor SlurmUser, only an account of its own that slurmdbd knows as
// Operator. What is merged is the user's own, since the job's process submits it.
func TestAsOperator(t *testing.T) {
	t.Parallel()
	operator := account(t, "backup") // the second of slurmtest's users
	s := newSite(t, slurmtest.Options{Accounting: true, PermitJobExpansion: true}, operator)
	if second := s.Cluster.Users()[1].Name; second != operator.Name {
		t.Fatalf("the cluster's second user is %s, not %s", second, operator.Name)
	}
	evolving := s.script("evolve.sh", evolve)
	id := s.submit(evolving)
	// A user like any other may do nothing with other people's jobs.
	time.Sleep(2 * time.Second)
	state, err := s.Cluster.Run(context.Background(), slurmtest.Root, "squeue", "-h", "-o", "%T", "-j", id)
	s.must(err)
	if strings.TrimSpace(state) != "PENDING" {
		t.Errorf("the job is %s though the sidecar has no right to start it", state)
	}
	_, err = s.Cluster.Run(context.Background(), slurmtest.Root, "sacctmgr", "-i", "modify", "user", s.account.Name, "set", "adminlevel=Operator")
	s.must(err)
	if got := messages(s.output(id)); !slices.Equal(got, evolved) {
		t.Errorf("the job printed\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(evolved, "\n"))
	}
	rows, err := s.Cluster.Run(context.Background(), slurmtest.Root, "sacct", "-n", "-P", "-X", "-a", "-D", "-o", "User,JobName")
	s.must(err)
	if user := s.Cluster.Users()[0].Name; !strings.Contains(rows, user+"|evo_"+id+"_2_") || strings.Contains(rows, operator.Name+"|") {
		t.Errorf("expanders are charged to\n%s", rows)
	}
	s.chain()
	s.byJob()
	s.t = t
	s.stop(syscall.SIGTERM)
}
