package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/job/injob"
	"github.com/evoslurm/evoslurm/slurmctl"
)

const nextHelp = `End the current step of the evolving job, wait for the next step's nodes, and print
what the job's shell must evaluate to use them:

  #!/bin/bash
  #EVO --profile=2@10m,5@30m,1@5m
  evosrun ./simulate first                  # on 2 nodes
  while eval "$(evosctl next)" && [ -z "$EVO_DONE" ]; do
      evosrun ./simulate step $EVO_STEP     # on 5 nodes, then on 1
  done

Set after the eval: EVO_JOB_ID, EVO_STEP (from 1), EVO_STEPS, EVO_NODES (the number of
nodes), EVO_NODELIST (n[1-5]), EVO_DRIVE, EVO_DONE (empty; 1 after the last step, or if
another call is useless, also because an administrator has switched Evoslurm off and let the
job go with what it has), and the SLURM_ variables that srun and MPI launchers read. In
drive mode companion, those describe the base job only, since srun reaches no further:
use evosrun, or evosctl hostfile. EVO_GAVE_BACK, if set, lists nodes that the base job
gave back: evosrun excludes them, and srun needs -x. EVO_LOST lists nodes that the job had
and lost since the call before, because a node failed (empty: none); what ran there has
ended, also if EVO_NODELIST has a node again. EVO_RESTARTS is how often Slurm put the job,
or a link of its chain, back into the queue.

Before a shrink, the application must leave the nodes that go; --release names nodes that
it prefers to give up. evosrun --follow on this node drains its instances first. The hooks
--on-grow, --on-shrink and --on-step of the job run for at most five minutes each; if one
fails, EVO_HOOK_ERROR says why, and the job goes on.

Where the sidecar is not root, this command submits the job that brings the nodes, as the
calling user. Only the job's own user can then have it grow.

Exit status: 0, also after the last step; 1 if it failed (the eval then also fails,
EVO_ERROR has the reason, and EVO_DONE is 1) or gave up a growth: the job keeps its nodes,
and another call tries again; 124 after --timeout, 128 + N after signal N: there was no
answer, and the step may have ended. Call again to continue waiting. While the sidecar is
away, this waits. It ends the step --from, else EVO_STEP (set by the last eval), else the
current one; a second call for the same step does nothing.`

type next struct {
	job     jobFlag
	out     output
	from    int
	release string
	timeout time.Duration
}

func newNext() *cobra.Command {
	n := &next{}
	cmd := &cobra.Command{
		Use:   "next",
		Short: "End the current step and wait for the next one's nodes",
		Long:  nextHelp,
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return n.run(cmd) },
	}
	n.job.add(cmd)
	n.out.add(cmd)
	cmd.Flags().IntVar(&n.from, "from", 0, "step to end (default: the current one)")
	cmd.Flags().StringVar(&n.release, "release", "", "nodes to give up at a shrink, e.g. n3,n4")
	cmd.Flags().DurationVar(&n.timeout, "timeout", 0, "longest time to wait, e.g. 5m (0: no limit)")
	return cmd
}

func (n *next) run(cmd *cobra.Command) error {
	release, err := slurmctl.ExpandNodes(n.release)
	if err != nil {
		return n.out.fail(fmt.Errorf("--release: %w", err), 1, true)
	}
	client, job, err := n.job.connect(cmd)
	if err != nil {
		return n.out.fail(err, 1, true)
	}
	ctx, stop := untilSignalOr(cmd.Context(), n.timeout)
	defer stop()
	a, err := n.wait(ctx, client, job, release)
	if err != nil {
		return n.failed(ctx, err)
	}
	if a.Note != "" {
		say("%s", a.Note)
	}
	if a.Done && a.Note == "" {
		say("step %d of %d was the last", a.Steps, a.Steps)
	}
	if err := n.out.print(a); err != nil {
		return n.out.fail(err, 1, true)
	}
	return nil
}

// wait ends the step and waits for the next.
func (n *next) wait(ctx context.Context, client *api.Client, job uint32, release []string) (api.Allocation, error) {
	a, err := injob.Present(ctx, client, job)
	if err != nil || a.Done {
		return a, err
	}
	if _, rigid := injob.Rigid(job, os.Getenv); rigid {
		return injob.NextRigid(a), nil
	}
	from := a.Step
	if n.from > 0 {
		from = n.from
	} else if step := injob.PresentStep(a.Job, os.Getenv); step > 0 && !n.out.json {
		// The shell knows best: a next that was killed before its answer was
		// evaluated may have ended the step already.
		if from = step; step < a.Step {
			say("step %d has ended already, the job is at step %d (evaluate what evosctl next prints, and EVO_STEP is right)", step, a.Step)
		}
	}
	unlock, waited := injob.EndAlone(ctx, client.Address(), job)
	defer unlock()
	if waited {
		if a, err = injob.Present(ctx, client, job); err != nil || a.Done {
			return a, err
		}
	}
	req := api.NextRequest{From: from, Release: release}
	if from < a.Step {
		b, err := client.Next(ctx, job, req)
		b, err = injob.OrLetGo(ctx, job, from, b, err)
		if err == nil {
			hookFailed(hooksFor(ctx, client, a, 0).Undone().Begun(ctx, b, nil))
		}
		return b, err
	}
	return followed(ctx, client, a, release, func(release []string) (api.Allocation, error) {
		req.Release = release
		b, err := client.Next(ctx, job, req)
		return injob.OrLetGo(ctx, job, from, b, err)
	})
}

// followed ends a step by calling end once everything that evosrun --follow has started is off the
// leaving nodes; after the last step, off all nodes. If there are followers, the job gives up
// exactly those nodes.
func followed(ctx context.Context, client *api.Client, a api.Allocation, release []string, end func(release []string) (api.Allocation, error)) (api.Allocation, error) {
	leaving := injob.Leaving(a, release, os.Getenv("SLURMD_NODENAME"))
	hooks := hooksFor(ctx, client, a, 0)
	hookFailed(hooks.Leaving(ctx, a, leaving))
	if hooks.Shrink != "" && len(leaving) > 0 {
		release = leaving
	}
	m := injob.MeetFollowers(ctx, client.Address(), a.Job, injob.Going(a, leaving), a.Coming == nil, time.Time{}, say)
	defer m.End(nil)
	if ctx.Err() != nil {
		return a, errDraining
	}
	if m.Any() && len(leaving) > 0 {
		release = leaving
	}
	b, err := end(release)
	if err == nil {
		m.End(&b)
		hookFailed(hooks.Begun(ctx, b, injob.NodesOf(a)))
	}
	return b, err
}

// unknownEnd describes the situation without an answer: the request may not have reached the
// sidecar.
const unknownEnd = "whether the step has ended is not known, call again to wait for the next one"

// failed says why there is no next step, and separates what may pass (a signal, the limit of
// --timeout) from what will not.
func (n *next) failed(ctx context.Context, err error) error {
	var sig interrupted
	switch {
	case errors.Is(err, errDraining):
		status := 124
		if errors.As(context.Cause(ctx), &sig) {
			status = sig.status()
		}
		return n.out.fail(err, status, false)
	case errors.As(context.Cause(ctx), &sig):
		return n.out.fail(fmt.Errorf("%v; %s", sig, unknownEnd), sig.status(), false)
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return n.out.fail(fmt.Errorf("not ready after %v; %s", n.timeout, unknownEnd), 124, false)
	}
	return n.out.fail(err, 1, true)
}
