package slurmtest

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"
)

// childEnv makes this test binary act as another process; see children.
const childEnv = "SLURMTEST_CHILD"

// children are the programs that tests run in a process of their own.
var children = map[string]func() error{
	"panic":        func() error { _, err := bootWithJobs(); panic(err) },
	"sleep":        sleep,
	"unprivileged": unprivileged,
}

func TestMain(m *testing.M) {
	if name := os.Getenv(childEnv); name != "" {
		if err := children[name](); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func sleep() error {
	if _, err := bootWithJobs(); err != nil {
		return err
	}
	time.Sleep(time.Hour)
	return nil
}

// bootWithJobs boots a cluster with every kind of process that could be left behind, and prints its
// folder when they run.
func bootWithJobs() (*Cluster, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	c, err := Boot(ctx, Options{Nodes: 2, Accounting: true})
	if err != nil {
		return nil, err
	}
	if err := startJobs(ctx, c); err != nil {
		return nil, err
	}
	fmt.Println(c.Dir())
	return c, nil
}

// startJobs starts an srun, a waiting salloc, and a batch job that leaves a process in its own
// session without Slurm variables. It returns when all are running.
func startJobs(ctx context.Context, c *Cluster) error {
	u := c.Users()[0]
	if _, err := c.Run(ctx, u, "sbatch", "-N1", "--exclusive", "--wrap", "env -i setsid sleep 3601 & sleep 3602"); err != nil {
		return err
	}
	if err := c.Command(context.Background(), u, "srun", "-N1", "--exclusive", "sleep", "3603").Start(); err != nil {
		return err
	}
	if err := waitForJobs(ctx, c, "R", 2); err != nil {
		return err
	}
	if err := c.Command(context.Background(), u, "salloc", "--no-shell", "-N2").Start(); err != nil {
		return err
	}
	return waitForJobs(ctx, c, "PD", 1)
}

func waitForJobs(ctx context.Context, c *Cluster, state string, n int) error {
	for {
		out, err := c.Run(ctx, Root, "squeue", "-h", "-t", state)
		if err != nil || lines(out) == n {
			return err
		}
		if err := pause(ctx); err != nil {
			return fmt.Errorf("%d jobs, want %d in state %s: %w", lines(out), n, state, err)
		}
	}
}

func contextWithTimeout() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), 5*time.Minute)
}
