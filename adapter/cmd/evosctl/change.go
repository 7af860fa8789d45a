package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/internal/legible"
	"github.com/evoslurm/evoslurm/adapter/job/injob"
	"github.com/evoslurm/evoslurm/adapter/job/request"
	"github.com/evoslurm/evoslurm/planner"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// refusedStatus is the exit status if a change was refused and nothing has changed.
const refusedStatus = 2

const updateHelp = `Replace the coming steps of an evolving job: the steps after the running one, or all
steps of a waiting job. Only this job is replanned, and the answer is definite: accepted,
with the new planned times, or refused, with the obstacle and the earliest possible time.
A refused change changes nothing. The time limit is raised as needed, within what the
site allows. A running step is not cut short: --current sets how much longer it lasts
from now, if not as long as the profile says. Steps that come before an open tail move it:
--profile='4@10m,?1-16@2h'. Its most is at most the job's claim.

A waiting job keeps its place in the queue if the new profile delays no other job's
planned start. Otherwise it goes behind all jobs that were submitted before.

Exit status: 0 accepted, 2 refused, 1 failed.`

// changing is update, grow or shrink.
type changing struct {
	job     jobFlag
	asJSON  bool
	dryRun  bool
	signal  string // for srun steps on nodes that go; "": none
	request api.ChangeRequest
}

func newUpdate() *cobra.Command {
	c := &changing{}
	var u api.Update
	var current, wait string
	cmd := &cobra.Command{
		Use:   "update [JOB]",
		Short: "Replace the coming steps of a job's profile",
		Long:  updateHelp,
		Example: `  evosctl update --profile=8@20m,2@5m           in the job: the steps after this one
  evosctl update 4711 --profile=4@1h --dry-run  would the sidecar accept it, and when?
  evosctl update --current=15m                  this step goes on for 15 minutes`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := c.named(cmd, args); err != nil {
				return err
			}
			for text, to := range map[*string]*int64{&current: &u.Current, &wait: &u.Wait} {
				if err := duration(*text, to); err != nil {
					return err
				}
			}
			if u.Profile != "" {
				var r request.Request
				if err := r.Set("profile", u.Profile); err != nil {
					return fmt.Errorf("--profile: %w", err)
				}
			}
			if u.Profile == "" && u.Current == 0 {
				return errors.New("nothing to change: set --profile, --current, or both")
			}
			c.request.Update = &u
			client, job, err := c.job.connect(cmd)
			if err != nil {
				return err
			}
			a, err := c.ask(cmd.Context(), client, job)
			if err != nil {
				return err
			}
			if err := c.show(os.Stdout, a); err != nil {
				return err
			}
			if !a.Accepted {
				return exitStatus(refusedStatus)
			}
			return nil
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	c.job.add(cmd)
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVar(&u.Profile, "profile", "", "coming steps, NODES@DURATION[,…]; for a malleable job MIN-MAX@DURATION")
	f.StringVar(&current, "current", "", "how much longer the current step lasts, from now")
	f.StringVar(&wait, "wait", "", "how late the next step may start (default: not at all)")
	f.BoolVar(&c.dryRun, "dry-run", false, "report the outcome without changing anything")
	f.BoolVar(&c.asJSON, "json", false, "write the answer as JSON")
	return cmd
}

const growHelp = `End the current step and begin one with N more nodes, planned like any other: now, or
within --wait as soon as this moves no other job's plan. It prints what evosctl next
prints:

  if eval "$(evosctl grow 4 --for=20m)"; then
      evosrun ./refine                      # on 4 more nodes
      eval "$(evosctl shrink 4)"
  else
      echo "no more nodes: $EVO_ERROR"      # and the earliest time for them
  fi

The new step lasts for --for; evosctl next then returns to the old number of nodes.
Without --for, it lasts for the rest of the current step. With --min, fewer nodes are
enough. A malleable job gets N more than its current nodes: it keeps its lent nodes,
promised for the new step, unless other jobs wait for them, and it must have one of its
sizes (--size). The growth is a new step of the profile: EVO_STEP and EVO_STEPS increase
by one.

Exit status: 0 once the nodes are there; 2 refused: EVO_ERROR has the obstacle and the
earliest time, and nothing has changed; 1 failed; 128 + N after signal N: an accepted
growth goes on, and evosctl next waits for it.`

func newGrow() *cobra.Command {
	c := &changing{}
	var out output
	var g api.Grow
	var lasts, wait string
	cmd := &cobra.Command{
		Use:   "grow N",
		Short: "Get N more nodes, now or soon, or learn when they could come",
		Long:  growHelp,
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if g.Nodes, err = strconv.Atoi(args[0]); err != nil {
				return out.fail(fmt.Errorf("invalid number of nodes %q", args[0]), 1, false)
			}
			for text, to := range map[*string]*int64{&lasts: &g.For, &wait: &g.Wait} {
				if err := duration(*text, to); err != nil {
					return out.fail(err, 1, false)
				}
			}
			c.request.Grow = &g
			return c.resize(cmd, &out)
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	c.job.add(cmd)
	out.add(cmd)
	cmd.Flags().StringVar(&lasts, "for", "", "how long to keep the new size (default: the rest of the current step)")
	cmd.Flags().IntVar(&g.Min, "min", 0, "smallest acceptable growth (default: N)")
	cmd.Flags().StringVar(&wait, "wait", "", "how long to wait for the nodes (default: not at all)")
	cmd.Flags().BoolVar(&c.dryRun, "dry-run", false, "report whether and when, without changing anything")
	return cmd
}

const shrinkHelp = `End the current step and begin one with N fewer nodes, or without the nodes of --nodes. It
prints what evosctl next prints. The application must leave these nodes before this call;
evosrun --follow on this node drains them. The new step lasts for --for, or else for the rest
of the current one.

A malleable job first gives back lent nodes, and its step goes on; it then gets no offer for a
while. Giving back more than its lent nodes ends the step.

With --signal=TERM, srun steps with tasks on leaving nodes get that signal first, and the command
waits for them, up to 30 seconds. Other steps get no signal.

Exit status: the same as for evosctl grow.`

func newShrink() *cobra.Command {
	c := &changing{}
	var out output
	var sh api.Shrink
	var list, lasts string
	cmd := &cobra.Command{
		Use:   "shrink N | shrink --nodes=LIST",
		Short: "Give nodes back",
		Long:  shrinkHelp,
		Args:  cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if len(args) > 0 {
				if sh.Nodes, err = strconv.Atoi(args[0]); err != nil || sh.Nodes < 1 {
					return out.fail(fmt.Errorf("invalid number of nodes %q", args[0]), 1, false)
				}
			}
			if sh.List, err = slurmctl.ExpandNodes(list); err != nil {
				return out.fail(fmt.Errorf("--nodes: %w", err), 1, false)
			}
			if (sh.Nodes > 0) == (len(sh.List) > 0) {
				return out.fail(errors.New("say how many nodes to give back, or which (--nodes), and not both"), 1, false)
			}
			if err := duration(lasts, &sh.For); err != nil {
				return out.fail(err, 1, false)
			}
			if c.signal != "" {
				if c.signal, err = injob.LeaveSignal(c.signal); err != nil {
					return out.fail(err, 1, false)
				}
			}
			c.request.Shrink = &sh
			return c.resize(cmd, &out)
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	c.job.add(cmd)
	out.add(cmd)
	cmd.Flags().StringVar(&list, "nodes", "", "nodes to give back, e.g. n3,n4")
	cmd.Flags().StringVar(&lasts, "for", "", "how long to keep the new size (default: the rest of the current step)")
	cmd.Flags().BoolVar(&c.dryRun, "dry-run", false, "report the outcome without changing anything")
	addSignal(cmd, &c.signal)
	return cmd
}

// duration reads a length of time, if there is one.
func duration(text string, to *int64) (err error) {
	if text != "" {
		*to, err = planner.ParseDuration(text)
	}
	return err
}

// named takes the job that is an argument.
func (c *changing) named(cmd *cobra.Command, args []string) error {
	switch {
	case len(args) == 0:
		return nil
	case cmd.Flags().Changed("job"):
		return errors.New("the job is named twice")
	}
	return cmd.Flags().Set("job", args[0])
}

// ask sends the request until it is answered.
func (c *changing) ask(ctx context.Context, client *api.Client, job uint32) (api.Change, error) {
	id := make([]byte, 8)
	if _, err := rand.Read(id); err != nil {
		return api.Change{}, err
	}
	c.request.ID, c.request.DryRun = hex.EncodeToString(id), c.dryRun
	if c.request.Update == nil { // the shell knows best which step this is to end
		c.request.From = injob.PresentStep(job, os.Getenv)
	}
	ctx, stop := untilSignal(ctx)
	defer stop()
	a, err := client.Change(ctx, job, c.request)
	var sig interrupted
	if errors.As(context.Cause(ctx), &sig) && err != nil {
		return a, fmt.Errorf("%w; evosctl events tells whether it was accepted", sig)
	}
	return a, err
}

// leaveTime is how long srun steps may continue after the signal of evosctl shrink --signal.
const leaveTime = 30 * time.Second

// askFollowed requests a growth or shrink, with the job's hooks. Before a shrink that will be
// accepted, it drains everything that evosrun --follow has started on the leaving nodes, and names
// these nodes.
func (c *changing) askFollowed(ctx context.Context, client *api.Client, job uint32) (api.Change, error) {
	if c.dryRun || c.signal == "" && unwatched(client, job) {
		return c.ask(ctx, client, job)
	}
	limited, stop := untilSignal(ctx)
	defer stop()
	has, err := injob.Present(limited, client, job)
	if err != nil {
		return api.Change{}, err
	}
	var leaving []string
	if c.request.Shrink != nil {
		var a api.Change
		if leaving, a, err = c.rehearse(ctx, client, job, &has); err != nil || !a.Accepted {
			return a, err
		}
	}
	hooks := hooksFor(limited, client, has, 0)
	hookFailed(hooks.Leaving(limited, has, leaving))
	m := injob.MeetFollowers(limited, client.Address(), job, leaving, false, time.Time{}, say)
	defer m.End(nil)
	if limited.Err() != nil {
		return api.Change{}, errDraining
	}
	if c.signal != "" && len(leaving) > 0 {
		if err := leaveNodes(limited, client, job, leaving, c.signal, time.Now().Add(leaveTime)); err != nil {
			return api.Change{}, err
		}
	}
	a, err := c.ask(ctx, client, job)
	if err == nil && a.Accepted && a.Has != nil {
		m.End(a.Has)
		hookFailed(hooks.Begun(limited, *a.Has, injob.NodesOf(has)))
	}
	return a, err
}

// rehearse asks whether a shrink will be accepted. It returns the nodes that will leave, and has the
// request name them.
func (c *changing) rehearse(ctx context.Context, client *api.Client, job uint32, has *api.Allocation) ([]string, api.Change, error) {
	sh := c.request.Shrink
	c.dryRun = true
	a, err := c.ask(ctx, client, job)
	c.dryRun = false
	if err != nil || !a.Accepted {
		return nil, a, err
	}
	has.Coming = &api.Coming{Nodes: has.Nodes - max(sh.Nodes, len(sh.List))}
	leaving := a.Leaving
	if len(leaving) == 0 { // an older sidecar
		leaving = injob.Leaving(*has, sh.List, os.Getenv("SLURMD_NODENAME"))
	}
	sh.Nodes, sh.List = 0, leaving
	return leaving, a, nil
}

// resize requests a growth or shrink and prints what the job then has.
func (c *changing) resize(cmd *cobra.Command, out *output) error {
	client, job, err := c.job.connect(cmd)
	if err != nil {
		return out.fail(err, 1, false)
	}
	a, err := c.askFollowed(cmd.Context(), client, job)
	var sig interrupted
	switch {
	case errors.As(err, &sig):
		return out.fail(err, sig.status(), false)
	case err != nil:
		return out.fail(err, 1, false)
	case !a.Accepted:
		return out.fail(errors.New(refusalText(a)), refusedStatus, false)
	case a.Has == nil: // a dry run
		c.asJSON = out.json
		return c.show(os.Stdout, a)
	}
	if err := out.print(*a.Has); err != nil {
		return out.fail(err, 1, false)
	}
	return nil
}

// refusalText returns why a change was refused, and when it would be possible.
func refusalText(a api.Change) string {
	text := "refused: " + a.Why
	if !a.Earliest.IsZero() {
		text += "; it could be had from " + a.Earliest.Local().Format("2006-01-02T15:04:05") + " on"
	}
	return legible.Printable(text, false)
}

// show writes the answer for people, or as JSON.
func (c *changing) show(out io.Writer, a api.Change) error {
	if c.asJSON {
		return printJSON(out, a)
	}
	switch {
	case !a.Accepted:
		say("%s", refusalText(a))
		return nil
	case a.DryRun:
		fmt.Fprintf(out, "job %d: it would be accepted\n", a.Job)
	default:
		fmt.Fprintf(out, "job %d: accepted\n", a.Job)
	}
	if len(a.Plan) == 0 {
		fmt.Fprintln(out, "  it is not planned at present: see evosqueue")
	}
	for _, p := range a.Plan {
		fmt.Fprintf(out, "  step %-3d %4d nodes  %s to %s\n", p.Step, p.Nodes, p.Start.Local().Format("2006-01-02T15:04:05"), p.End.Local().Format(time.TimeOnly))
	}
	return nil
}
