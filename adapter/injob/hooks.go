package injob

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strconv"
	"syscall"
	"time"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/request"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// HookTime bounds a hook. What a shrink gives back others wait for.
const HookTime = 5 * time.Minute

// VarHookError says, after the eval, which hook failed, and why.
const VarHookError = "EVO_HOOK_ERROR"

// Hooks runs the commands that a job was submitted with for its changes.
type Hooks struct {
	request.Hooks
	Environ []string
	Output  io.Writer     // of all that they print
	Time    time.Duration // 0: HookTime
}

// By are the hooks with no more time than there is until a deadline, a moment at least; zero: there is none.
func (h Hooks) By(deadline time.Time) Hooks {
	if !deadline.IsZero() {
		h.Time = min(HookTime, max(time.Until(deadline), time.Second))
	}
	return h
}

// Leaving runs --on-shrink for nodes that are about to leave.
func (h Hooks) Leaving(ctx context.Context, a api.Allocation, leaving []string) error {
	if h.Shrink == "" || len(leaving) == 0 {
		return nil
	}
	return h.run(ctx, "--on-shrink", h.Shrink, a, "shrink", nil, leaving)
}

// Begun runs --on-grow, if nodes have come, and --on-step, for a step that has begun with the
// nodes of a; before are those of the step before.
func (h Hooks) Begun(ctx context.Context, a api.Allocation, before []string) error {
	if a.Done {
		return nil
	}
	arrived, left := difference(NodesOf(a), before), difference(before, NodesOf(a))
	failed := h.Arrived(ctx, a, before)
	if h.Step != "" {
		failed = errors.Join(failed, h.run(ctx, "--on-step", h.Step, a, "step", arrived, left))
	}
	return failed
}

// Arrived runs --on-grow for nodes of a that are not among those before.
func (h Hooks) Arrived(ctx context.Context, a api.Allocation, before []string) error {
	arrived := difference(NodesOf(a), before)
	if h.Grow == "" || len(arrived) == 0 {
		return nil
	}
	return h.run(ctx, "--on-grow", h.Grow, a, "grow", arrived, nil)
}

// run runs one hook, with the event in its environment.
func (h Hooks) run(ctx context.Context, name, command string, a api.Allocation, event string, arrived, left []string) error {
	e, err := ExportsOf(a, func(name string) string { return lookup(h.Environ, name) })
	if err != nil {
		return err
	}
	at, next := "", ""
	if a.Coming != nil {
		next = strconv.Itoa(a.Coming.Nodes)
		if !a.Coming.At.IsZero() {
			at = strconv.FormatInt(a.Coming.At.Unix(), 10)
		}
	}
	gone := "EVO_LEFT"
	if event == "shrink" {
		gone = "EVO_LEAVING"
	}
	e.Set = append(e.Set, Var{"EVO_EVENT", event}, Var{"EVO_ARRIVED", slurmctl.CompressNodes(arrived)}, Var{gone, slurmctl.CompressNodes(left)},
		Var{"EVO_NEXT_NODES", next}, Var{"EVO_NEXT_AT", at})
	limit := h.Time
	if limit == 0 {
		limit = HookTime
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", command)
	cmd.Env, cmd.Stdout, cmd.Stderr = e.Apply(h.Environ), h.Output, h.Output
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
	if err = cmd.Run(); err == nil {
		return nil
	}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		err = fmt.Errorf("ended after %v", limit)
	}
	return fmt.Errorf("%s: %w", name, err)
}
