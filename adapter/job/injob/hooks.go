package injob

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"syscall"
	"time"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/job/request"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// HookTime bounds a hook: other jobs wait for the nodes of a shrink.
const HookTime = 5 * time.Minute

// VarHookError says, after the eval, which hook failed, and why.
const VarHookError = "EVO_HOOK_ERROR"

// Hooks runs the commands that a job was submitted with for its changes.
type Hooks struct {
	request.Hooks
	Environ []string
	Output  io.Writer     // of all that they print
	Time    time.Duration // 0: HookTime
	change  *change       // change for which each hook runs once; nil to run it every time
}

// By returns the hooks with no more time than there is until a deadline, a moment at least; zero: there is none.
func (h Hooks) By(deadline time.Time) Hooks {
	if !deadline.IsZero() {
		h.Time = min(HookTime, max(time.Until(deadline), time.Second))
	}
	return h
}

// Leaving runs --on-shrink for nodes that are about to leave.
func (h Hooks) Leaving(ctx context.Context, a api.Allocation, leaving []string) error {
	var failed error
	if h.change != nil && h.change.offer == 0 { // before this one is on record
		failed = h.Undone().Begun(ctx, a, nil)
	}
	return errors.Join(failed, h.once(ctx, func(r *record) error {
		if h.Shrink == "" || len(leaving) == 0 {
			return nil
		}
		told, _, failed := r.told("--on-shrink")
		if leaving = difference(leaving, told); len(leaving) == 0 {
			return failed
		}
		return h.run(ctx, r, "--on-shrink", h.Shrink, a, "shrink", nil, leaving)
	}))
}

// Begun runs --on-grow, if nodes have arrived, and --on-step, for a step that has begun with the
// nodes of a; before holds the nodes of the previous step.
func (h Hooks) Begun(ctx context.Context, a api.Allocation, before []string) error {
	if a.Done {
		if h.change != nil {
			forgetHooks(h.change.address, h.change.job)
		}
		return nil
	}
	return h.once(ctx, func(r *record) error {
		if r.done && h.change.before == nil { // nothing is undone
			return nil
		}
		if r.before != nil {
			before = r.before
		}
		defer r.finish(ctx)
		failed := h.grown(ctx, r, a, before)
		if h.Step == "" {
			return failed
		}
		_, once, err := r.told("--on-step")
		if !once && !r.done {
			err = h.run(ctx, r, "--on-step", h.Step, a, "step", difference(NodesOf(a), before), difference(before, NodesOf(a)))
		}
		return errors.Join(failed, err)
	})
}

// Arrived runs --on-grow for nodes of a that are not in before.
func (h Hooks) Arrived(ctx context.Context, a api.Allocation, before []string) error {
	return h.once(ctx, func(r *record) error {
		if r.before != nil {
			before = r.before
		}
		defer r.finish(ctx)
		return h.grown(ctx, r, a, before)
	})
}

func (h Hooks) grown(ctx context.Context, r *record, a api.Allocation, before []string) error {
	if h.Grow == "" {
		return nil
	}
	_, once, failed := r.told("--on-grow")
	arrived := difference(NodesOf(a), before)
	if once || r.done || len(arrived) == 0 {
		return failed
	}
	return h.run(ctx, r, "--on-grow", h.Grow, a, "grow", arrived, nil)
}

// once calls do with exclusive access to the record of the change. Without a record, e.g. for lack
// of space, every process calls it.
func (h Hooks) once(ctx context.Context, do func(*record) error) error {
	if len(h.Variables()) == 0 {
		return nil
	}
	if h.change == nil {
		return do(&record{})
	}
	r, err := h.change.open(ctx, h.limit())
	switch {
	case errors.Is(err, errPast):
		return nil
	case errors.Is(err, errBusy):
		return err
	case err != nil:
		return do(&record{})
	}
	defer r.file.Close()
	return do(r)
}

func (h Hooks) limit() time.Duration {
	if h.Time == 0 {
		return HookTime
	}
	return h.Time
}

// hookScript runs a hook and writes down that it has begun, and how it ended. It has the record locked; the hook has not.
const hookScript = `printf "%s\n" "$1" >&3
/bin/sh -c "$0" 3>&-
status=$?
echo "{\"status\":$status}" >&3
exit $status`

// run runs one hook, with the event in its environment.
func (h Hooks) run(ctx context.Context, r *record, name, command string, a api.Allocation, event string, arrived, left []string) error {
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
	cmd := exec.Command("/bin/sh", "-c", command)
	if ctx.Err() != nil {
		return fmt.Errorf("%s: it was not begun: %w", name, context.Cause(ctx))
	}
	if r.file != nil {
		line, err := json.Marshal(hookLine{Hook: name, Nodes: slurmctl.CompressNodes(slices.Concat(arrived, left))})
		if err != nil {
			return err
		}
		cmd = exec.Command("/bin/sh", "-c", hookScript, command, string(line))
		cmd.ExtraFiles = []*os.File{r.file}
	}
	cmd.Env, cmd.Stdout, cmd.Stderr = e.Apply(h.Environ), h.Output, h.Output
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.WaitDelay = time.Second
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case err = <-ended:
	case <-ctx.Done():
		err = errGoesOn
	case <-time.After(h.limit()):
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		err = fmt.Errorf("ended after %v: %w", h.limit(), <-ended)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}
