package keeper_test

import (
	"context"
	"errors"

	"os"
	"strings"
	"testing"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/evoslurm/evoslurm/adapter/sidecar/claims"
	"github.com/evoslurm/evoslurm/adapter/sidecar/keeper"
	"github.com/evoslurm/evoslurm/adapter/sidecar/store"
	"github.com/evoslurm/evoslurm/slurmctl"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest/must"
)

// TestKeeper: on a real Slurm, one of two keepers has the lease; the other gets it when the first gives it up, or
// when an administrator deletes it. The reservation keeps no job from any node.
func TestKeeper(t *testing.T) {
	c := slurmtest.Start(t, slurmtest.Options{Nodes: 2})
	log := logrus.New()
	log.SetOutput(os.Stderr)
	slurm := c.Client()
	slurm.Timeout = 10 * time.Second
	const takeover = 15 * time.Second
	begin := func(ctx context.Context) (*keeper.Keeper, chan error) {
		k, lost := keeper.New(slurm, takeover, log), make(chan error, 1)
		if err := k.Acquire(ctx, func() {}); err != nil {
			t.Fatal(err)
		}
		if err := k.Acts(); err != nil {
			t.Fatal(err)
		}
		go func() { lost <- k.Keep(ctx, func(context.Context) bool { return true }) }()
		return k, lost
	}
	if err := keeper.Others(t.Context(), slurm); err != nil {
		t.Error(err)
	}
	one, stop := context.WithCancel(t.Context())
	first, ended := begin(one)
	if err := keeper.Others(t.Context(), slurm); !errors.Is(err, store.ErrUnfit) || !strings.Contains(err.Error(), "scontrol delete ReservationName=evo_lease_1") {
		t.Errorf("a sidecar without a lease beside one: %v", err)
	}
	acting(t, slurm, claims.Name(1))
	occupy(t, c)
	waits, halt := context.WithTimeout(t.Context(), takeover/2)
	if err := keeper.New(slurm, takeover, log).Acquire(waits, func() {}); err == nil {
		t.Error("two have the lease")
	}
	halt()
	stop()
	if err := said(t, "its end", ended); err != nil {
		t.Error(err)
	}
	first.GiveUp(t.Context())
	if err := first.Acts(); err == nil {
		t.Error("acts without a lease")
	}
	acting(t, slurm, "")
	second, lost := begin(t.Context())
	name, _ := second.Since()
	if err := slurm.DeleteReservation(t.Context(), name); err != nil {
		t.Fatal(err)
	}
	if err := said(t, "the loss of its lease", lost); !errors.Is(err, keeper.ErrLost) || !strings.Contains(err.Error(), "an administrator") {
		t.Errorf("the reservation was deleted: %v", err)
	}
	if _, err := second.Fence([]string{"/bin/true"}); err == nil {
		t.Error("the fence lets commands through")
	}
	third, _ := begin(t.Context())
	if name, _ := third.Since(); name != claims.Name(1) {
		t.Errorf("the third has %s", name)
	}
}

// TestKeepersElsewhere: sidecars of two clusters have leases of one name. Each acts on its own cluster, and the end of one lease
// ends no other.
func TestKeepersElsewhere(t *testing.T) {
	const takeover = 15 * time.Second
	log := logrus.New()
	log.SetOutput(os.Stderr)
	var all [2]struct {
		slurm *slurmctl.Client
		k     *keeper.Keeper
		lost  chan error
	}
	for i := range all {
		x := &all[i]
		x.slurm, x.lost = slurmtest.Start(t, slurmtest.Options{Nodes: 1}).Client(), make(chan error, 1)
		x.slurm.Timeout = 10 * time.Second
		x.k = keeper.New(x.slurm, takeover, log)
		must.OK(t, x.k.Acquire(t.Context(), func() {}))
		go func() { x.lost <- x.k.Keep(t.Context(), func(context.Context) bool { return true }) }()
	}
	for _, x := range all {
		acting(t, x.slurm, claims.Name(1)) // and is renewed
		must.OK(t, x.k.Acts())
	}
	must.OK(t, all[0].slurm.DeleteReservation(t.Context(), claims.Name(1)))
	if err := said(t, "the loss of the first lease", all[0].lost); !errors.Is(err, keeper.ErrLost) {
		t.Errorf("the lease of the first was deleted: %v", err)
	}
	acting(t, all[1].slurm, claims.Name(1))
	if err := all[1].k.Acts(); err != nil || len(all[1].lost) > 0 {
		t.Errorf("the other one: %v", err)
	}
}

const patience = 5 * time.Minute // for what takes seconds

// said returns what a sidecar that keeps its lease says in the end.
func said(t *testing.T, what string, by <-chan error) error {
	t.Helper()
	select {
	case err := <-by:
		return err
	case <-time.After(patience):
		t.Fatalf("waited %v for %s", patience, what)
		return nil
	}
}

// acting checks which lease another host renews.
func acting(t *testing.T, slurm *slurmctl.Client, want string) {
	t.Helper()
	if name, err := claims.Acting(t.Context(), slurm, 15*time.Second, func(string, time.Duration) {}); err != nil || name != want {
		t.Errorf("%q acts, want %q (%v)", name, want, err)
	}
}

// occupy starts a job without a time limit on all nodes.
func occupy(t *testing.T, c *slurmtest.Cluster) {
	if _, err := c.Run(t.Context(), c.Users()[0], "sbatch", "--nodes=2", "--exclusive", "--time=UNLIMITED", "--output=/dev/null", "--wrap=sleep 600"); err != nil {
		t.Fatal(err)
	}
	running := func() bool {
		jobs, err := c.Client().Jobs(t.Context())
		return err == nil && len(jobs) == 1 && len(jobs[0].NodeList) == 2
	}
	for end := time.Now().Add(patience); !running(); time.Sleep(100 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("the job does not run on both nodes after %v", patience)
		}
	}
}
