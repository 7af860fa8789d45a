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

// TestAsOperator: in the drive modes merge and chain the sidecar needs neither root nor SlurmUser,
// only an account of its own that slurmdbd knows as Operator.
func TestAsOperator(t *testing.T) {
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
	s.chain()
	s.stop(syscall.SIGTERM)
}
