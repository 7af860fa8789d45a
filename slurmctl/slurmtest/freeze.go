package slurmtest

import (
	"context"
	"math/rand/v2"
	"os"
	"syscall"
	"time"
)

// Freeze stops all processes of the cluster with SIGSTOP, as if the machine slept: daemons, jobs,
// their steps, and all clients with Env. The returned function continues them in an order drawn
// from a seed.
func (c *Cluster) Freeze() (thaw func(seed uint64)) {
	frozen := map[int]bool{}
	for found := true; found; { // the next round finds processes that were just being created
		found = false
		for _, pid := range c.processes() {
			if !frozen[pid] && syscall.Kill(pid, syscall.SIGSTOP) == nil {
				frozen[pid], found = true, true
			}
		}
	}
	return func(seed uint64) {
		var pids []int
		for pid := range frozen {
			pids = append(pids, pid)
		}
		random := rand.New(rand.NewPCG(seed, 0))
		random.Shuffle(len(pids), func(i, k int) { pids[i], pids[k] = pids[k], pids[i] })
		for _, pid := range pids {
			syscall.Kill(pid, syscall.SIGCONT)
			time.Sleep(time.Duration(random.IntN(20)) * time.Millisecond)
		}
	}
}

// Signal sends a signal to a daemon of the cluster: slurmctld, slurmdbd, or mariadbd. After SIGSTOP,
// it hangs until SIGCONT.
func (c *Cluster) Signal(ctx context.Context, daemon string, signal syscall.Signal) error {
	_, err := c.sup.call(ctx, request{Op: "signal", Name: daemon, Signal: int(signal)})
	return err
}

// processes returns all processes of the cluster except the supervisor.
func (c *Cluster) processes() []int {
	procs := processes()
	return append(descendants(procs, c.sup.cmd.Process.Pid), clientsOf(c.site.dir, procs, c.sup.cmd.Process.Pid, os.Getpid())...)
}
