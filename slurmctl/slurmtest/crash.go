package slurmtest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// StartController starts slurmctld and returns when it answers.
func (c *Cluster) StartController(ctx context.Context) error {
	return c.startController(ctx, "slurmctld", c.site.host, c.site.conf())
}

// KillController kills slurmctld with SIGKILL, as a crash would.
func (c *Cluster) KillController(ctx context.Context) error {
	return c.sup.kill(ctx, "slurmctld", syscall.SIGKILL)
}

// mostEnding is how long slurmctld may take to end. Once in hundreds of times, that of 22.05 saves its state and then
// waits for its slurmscriptd without end.
const mostEnding = 30 * time.Second

// StopController stops slurmctld with SIGTERM; it saves its state. If it does not end, it is killed.
func (c *Cluster) StopController(ctx context.Context) error {
	short, cancel := context.WithTimeout(ctx, mostEnding)
	defer cancel()
	err := c.sup.kill(short, "slurmctld", syscall.SIGTERM)
	if short.Err() != nil && ctx.Err() == nil {
		return c.KillController(ctx)
	}
	return err
}

// RestartController calls StopController and StartController.
func (c *Cluster) RestartController(ctx context.Context) error {
	if err := c.StopController(ctx); err != nil {
		return err
	}
	return c.StartController(ctx)
}

// StopSlurmdbd stops slurmdbd; the controller then queues its messages.
func (c *Cluster) StopSlurmdbd(ctx context.Context) error {
	return c.sup.kill(ctx, "slurmdbd", syscall.SIGTERM)
}

// StartSlurmdbd starts slurmdbd again.
func (c *Cluster) StartSlurmdbd(ctx context.Context) error { return c.startSlurmdbd(ctx) }

// StartNode starts the slurmd of a node with further arguments (-b reports that the node has just
// booted). It does not wait for the node to be up.
func (c *Cluster) StartNode(ctx context.Context, name string, args ...string) error {
	if err := c.checkNode(name); err != nil {
		return err
	}
	_, err := c.startNode(ctx, name, args...)
	return err
}

func (c *Cluster) startNode(ctx context.Context, name string, args ...string) (*daemon, error) {
	return c.sup.start(ctx, request{
		Name: "slurmd " + name, Path: daemonPath("slurmd"),
		Argv: append([]string{"slurmd", "-D", "-N", name, "-d", daemonPath("slurmstepd")}, args...),
		Env:  c.daemonEnv(), Dir: c.site.dir + "/spool/" + name, Output: c.site.dir + "/log/slurmd." + name + ".out",
	})
}

// StopNode kills a node as a power cut would: its slurmd, its steps and the
// processes of its jobs. Slurm notices after SlurmdTimeout (60 s, unless
// ExtraConf says otherwise).
func (c *Cluster) StopNode(ctx context.Context, name string) error {
	if err := c.checkNode(name); err != nil {
		return err
	}
	if err := c.sup.kill(ctx, "slurmd "+name, syscall.SIGKILL); err != nil {
		return err
	}
	for {
		victims := c.stepProcesses(name)
		if len(victims) == 0 {
			return nil
		}
		for _, pid := range victims {
			syscall.Kill(pid, syscall.SIGKILL)
		}
		if err := pause(ctx); err != nil {
			return fmt.Errorf("slurmtest: processes of %s survive SIGKILL: %w", name, err)
		}
	}
}

// stepProcesses returns the slurmstepds of a node, which hold the node's log open, and all
// processes below them.
func (c *Cluster) stepProcesses(node string) []int {
	log := c.site.dir + "/log/slurmd." + node + ".log"
	procs := processes()
	var pids []int
	for _, pid := range descendants(procs, c.sup.cmd.Process.Pid) {
		fds, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
		for _, fd := range fds {
			if target, err := os.Readlink(fd); err == nil && target == log {
				pids = append(pids, pid)
				pids = append(pids, descendants(procs, pid)...)
				break
			}
		}
	}
	return pids
}

func (c *Cluster) checkNode(name string) error {
	numbers, err := expandNodes(name, c.nodes)
	if err == nil && (len(numbers) != 1 || name != nodeName(numbers[0])) {
		err = fmt.Errorf("slurmtest: %q is not one node", name)
	}
	return err
}

// Reconfigure changes options of the running cluster, rewrites slurm.conf, and runs scontrol
// reconfigure. Options that Slurm changes only at a restart (nodes, SelectType, …) also need
// RestartController.
func (c *Cluster) Reconfigure(ctx context.Context, change func(*Options)) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	before := c.options
	change(&c.options)
	if c.options.Nodes != before.Nodes || c.options.Dir != before.Dir || c.options.Accounting != before.Accounting {
		c.options = before
		return fmt.Errorf("slurmtest: Nodes, Dir and Accounting cannot change")
	}
	if err := c.writeConf(); err != nil {
		c.options = before
		return err
	}
	_, err := c.Run(ctx, Root, "scontrol", "reconfigure")
	return err
}

// SetSchedulerParameters replaces Options.SchedulerParameters and reconfigures.
func (c *Cluster) SetSchedulerParameters(ctx context.Context, params string) error {
	return c.Reconfigure(ctx, func(o *Options) { o.SchedulerParameters = strings.TrimSpace(params) })
}
