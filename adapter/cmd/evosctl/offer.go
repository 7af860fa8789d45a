package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/internal/when"
	"github.com/evoslurm/evoslurm/adapter/job/injob"
)

const waitEventHelp = `Wait for an offer of nodes to a malleable job, or a demand to give some back, and print it as
JSON:

  {"offer": 1795379104, "kind": "shrink", "mandatory": true, "nodes": 4, "node_list": "n[5-8]",
   "names": ["n5", "n6", "n7", "n8"], "has": 8, "why": "stock job 4711 waits",
   "deadline": "2026-11-22T20:45:04Z", "seconds": 30}

or, with --shell=sh (csh, fish), what the job's shell evaluates: EVO_OFFER, EVO_OFFER_KIND,
EVO_OFFER_MANDATORY (1, or empty), EVO_OFFER_NODES, EVO_OFFER_NODELIST, EVO_OFFER_SECONDS, EVO_OFFER_UNTIL (and
EVO_OFFER_JOB).

kind grow: the job may have up to "nodes" nodes, until the deadline. Answer with evosctl accept K (as many
as the application can use) or evosctl decline; without an answer the offer is withdrawn. "until" (EVO_OFFER_UNTIL,
in Unix seconds) is when the nodes must be left for the next job that is planned on them. It is missing (empty) if
there is none. Jobs that come later, or stock jobs, may need the nodes sooner.
kind shrink: the job should give back "nodes" nodes, those of "node_list". Leave them, then call evosctl
accept K. You may give back more than "nodes": those of "further", in their order. If the offer is mandatory,
Slurm takes the nodes at the deadline whatever the answer, with all processes there (the job's processes first
get the site's overrun_signal). Otherwise evosctl decline, or no answer, changes nothing.

An offer that was not answered yet is printed again, unless --after names it.

  eval "$(evosctl wait-event --shell=sh)" && ./prepare && eval "$(evosctl accept $EVO_OFFER_NODES)"

Exit status: 0; 1 if it failed; 124 after --timeout; 128 + N after signal N.`

type waitEvent struct {
	job     jobFlag
	out     output
	after   int64
	timeout time.Duration
}

func newWaitEvent() *cobra.Command {
	w := &waitEvent{}
	cmd := &cobra.Command{
		Use:   "wait-event",
		Short: "Wait for an offer to a malleable job, or for a demand",
		Long:  waitEventHelp,
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return w.run(cmd) },
	}
	w.job.add(cmd)
	cmd.Flags().StringVar(&w.out.shell, "shell", "", "write for sh (also bash, dash, ksh, zsh), csh (tcsh) or fish, not JSON")
	cmd.Flags().Int64Var(&w.after, "after", 0, "wait for an offer later than this one")
	cmd.Flags().DurationVar(&w.timeout, "timeout", 0, "longest time to wait, e.g. 5m (0: no limit)")
	return cmd
}

func (w *waitEvent) run(cmd *cobra.Command) error {
	w.out.json = w.out.shell == ""
	client, job, err := w.job.connect(cmd)
	if err != nil {
		return w.out.fail(err, 1, true)
	}
	ctx, stop := untilSignalOr(cmd.Context(), w.timeout)
	defer stop()
	o, err := client.Offer(ctx, job, api.OfferQuery{After: w.after})
	var sig interrupted
	switch {
	case err == nil:
	case errors.As(context.Cause(ctx), &sig):
		return w.out.fail(sig, sig.status(), false)
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return w.out.fail(fmt.Errorf("no offer in %v", w.timeout), 124, false)
	default:
		return w.out.fail(err, 1, true)
	}
	if !w.out.json {
		e, err := injob.ExportsOfOffer(o)
		if err == nil {
			err = w.out.export(e)
		}
		if err != nil {
			return w.out.fail(err, 1, true)
		}
		return nil
	}
	o.Ready, o.State = false, "" // of no interest here
	names, err := injob.NodesOfOffer(o)
	if err != nil {
		return w.out.fail(err, 1, true)
	}
	return printJSON(os.Stdout, struct {
		api.Offer
		Names []string `json:"names"`
	}{o, names})
}

const acceptHelp = `Accept K nodes of an offer to a malleable job, or give back K nodes that the sidecar demands (see evosctl
wait-event), and wait until they have come or gone. It prints what evosctl next prints: evaluate it, and srun
and mpiexec use the job's current nodes. The step goes on. Before nodes leave, evosrun --follow drains them,
within the deadline of a demand, and the job's --on-shrink runs. After nodes have come, its --on-grow runs.

With --signal=TERM, srun steps with tasks on leaving nodes get that signal first. The command waits for them until
shortly before the deadline. Other steps get no signal. (The site's overrun_signal, after a demand without an
answer, goes to the whole job.)

With --until=TIME, the job promises to give accepted nodes back by then: EVO_OFFER_UNTIL, other Unix seconds, or a
time as sacct takes it (20:45, now+10minutes). It must not be later than the offer's. Give them back with evosctl
shrink. Otherwise the sidecar demands them, a grace before the time, and Slurm takes them at the time. Under the
approach PRA, other jobs are planned on these nodes from then on. The promise does not keep anyone from
demanding the nodes sooner.

The command answers the offer --offer, else EVO_OFFER, else the open one. A second call for the same offer
changes nothing.

Exit status: 0 once the nodes have come or gone; 1 if it failed (the offer is over, or the job cannot have
that size): EVO_ERROR has the reason, and the job keeps its nodes; 128 + N after signal N: the accepted change
goes on.`

const declineHelp = `Decline an offer to a malleable job, or a demand (see evosctl wait-event). The job then gets no offer for a
while. Slurm still takes the nodes of a mandatory shrink at the deadline.

The command answers the offer --offer, else EVO_OFFER, else the open one.`

// answering is accept or decline.
type answering struct {
	job   jobFlag
	out   output
	offer int64

	signal string // for srun steps on nodes that go; "": none
	until  string // by when to give offered nodes back; "": no promise
}

func newAccept() *cobra.Command {
	a := &answering{}
	cmd := &cobra.Command{
		Use:   "accept K",
		Short: "Accept offered nodes, or give back demanded ones",
		Long:  acceptHelp,
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			nodes, err := strconv.Atoi(args[0])
			if err != nil || nodes < 1 {
				return a.out.fail(fmt.Errorf("invalid number of nodes %q; want at least 1, or evosctl decline", args[0]), 1, false)
			}
			if a.signal != "" {
				if a.signal, err = injob.LeaveSignal(a.signal); err != nil {
					return a.out.fail(err, 1, false)
				}
			}
			return a.run(cmd, nodes)
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	a.job.add(cmd)
	a.out.add(cmd)
	cmd.Flags().Int64Var(&a.offer, "offer", 0, "number of the offer to answer")
	addSignal(cmd, &a.signal)
	cmd.Flags().StringVar(&a.until, "until", "", "time by which the job gives the nodes back (default: no promise)")
	return cmd
}

// promise reads a time of --until.
func promise(text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if s, err := strconv.ParseInt(text, 10, 64); err == nil && s >= 1e8 && s < 1e11 { // shorter ones are dates of sacct
		return time.Unix(s, 0), nil
	}
	t, err := when.Parse(text, now)
	if err != nil {
		return time.Time{}, fmt.Errorf("--until: %w", err)
	}
	return t, nil
}

func newDecline() *cobra.Command {
	a := &answering{}
	cmd := &cobra.Command{
		Use:   "decline",
		Short: "Decline an offer to a malleable job, or a demand",
		Long:  declineHelp,
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return a.run(cmd, 0) },
	}
	a.out.json = true
	a.job.add(cmd)
	cmd.Flags().Int64Var(&a.offer, "offer", 0, "number of the offer to answer")
	return cmd
}

// run answers the offer with that many nodes.
func (a *answering) run(cmd *cobra.Command, nodes int) error {
	until, err := promise(a.until, time.Now())
	if err != nil {
		return a.out.fail(err, 1, false)
	}
	client, job, err := a.job.connect(cmd)
	if err != nil {
		return a.out.fail(err, 1, false)
	}
	ctx, stop := untilSignal(cmd.Context())
	defer stop()
	id, err := a.which(ctx, client, job)
	if err != nil {
		return a.out.fail(err, 1, false)
	}
	if a.signal != "" {
		err = a.leave(ctx, client, job, id, nodes)
	}
	var got api.Answer
	if err == nil {
		got, err = a.answer(ctx, client, job, api.AnswerRequest{Offer: id, Accept: nodes, Until: until})
	}
	var sig interrupted
	switch {
	case err == nil:
	case errors.As(context.Cause(ctx), &sig) && errors.Is(err, errAnswering):
		return a.out.fail(err, sig.status(), false)
	case errors.As(context.Cause(ctx), &sig):
		return a.out.fail(fmt.Errorf("%w; what was accepted goes on", sig), sig.status(), false)
	default:
		return a.out.fail(err, 1, false)
	}
	if got.Note != "" {
		say("%s", got.Note)
	}
	switch {
	case got.Has == nil && nodes > 0:
		return a.out.fail(fmt.Errorf("offer %d was declined before", id), 1, false)
	case got.Has == nil:
		return nil
	}
	if err := a.out.print(*got.Has); err != nil {
		return a.out.fail(err, 1, false)
	}
	return nil
}

// leave signals what runs on the nodes that are about to be given back, and waits for it.
func (a *answering) leave(ctx context.Context, client *api.Client, job uint32, id int64, nodes int) error {
	j, err := client.Job(ctx, job)
	if err != nil {
		return err
	}
	o, open := openOffer(j, id)
	if !open { // the answer says so
		return nil
	}
	if o.Kind != "shrink" {
		return errors.New("--signal is for nodes that are given back, and these are offered")
	}
	names, err := injob.NodesOfOffer(o)
	if err != nil {
		return err
	}
	names = append(names, o.Further...)
	if nodes > len(names) || o.Mandatory && nodes < o.Nodes {
		return nil
	}
	return leaveNodes(ctx, client, job, names[:nodes], a.signal, o.Deadline.Add(-leaveBefore))
}

// openOffer returns an offer of a job, if it can still be answered.
func openOffer(j api.Job, id int64) (api.Offer, bool) {
	i := slices.IndexFunc(j.Offers, func(o api.Offer) bool { return o.ID == id && o.State == "open" })
	if i < 0 {
		return api.Offer{}, false
	}
	return j.Offers[i], true
}

// leaveBefore is how long before the deadline to answer, whatever still runs on the nodes.
const leaveBefore = 3 * time.Second

// errAnswering is an end that came before the answer.
var errAnswering = errors.New("evosrun --follow was still draining nodes: nothing was answered")

// answer accepts or declines. Before that, it drains what evosrun --follow has started on nodes
// given back, and it runs the job's hooks for the change.
func (a *answering) answer(ctx context.Context, client *api.Client, job uint32, req api.AnswerRequest) (api.Answer, error) {
	if req.Accept == 0 || unwatched(client, job) {
		return client.Answer(ctx, job, req)
	}
	has, err := client.Allocation(ctx, job)
	if err != nil {
		return api.Answer{}, err
	}
	j, err := client.Job(ctx, job)
	if err != nil {
		return api.Answer{}, err
	}
	hooks := hooksFor(ctx, client, has, req.Offer)
	o, open := openOffer(j, req.Offer)
	if !open { // nothing comes of it, or has already
		got, err := client.Answer(ctx, job, req)
		if err == nil && got.Has != nil {
			hookFailed(hooks.Undone().Arrived(ctx, *got.Has, nil))
		}
		return got, err
	}
	leaving := injob.GivenBack(o, req.Accept)
	given := has
	given.Coming = &api.Coming{Nodes: has.Nodes - len(leaving)}
	hookFailed(hooks.By(mandatoryBy(o)).Leaving(ctx, given, leaving))
	m := injob.MeetFollowers(ctx, client.Address(), job, leaving, false, mandatoryBy(o), say)
	defer m.End(nil)
	if ctx.Err() != nil {
		return api.Answer{}, errAnswering
	}
	got, err := client.Answer(ctx, job, req)
	if err == nil && got.Has != nil {
		m.End(got.Has)
		hookFailed(hooks.Arrived(ctx, *got.Has, injob.NodesOf(has)))
	}
	return got, err
}

// mandatoryBy returns when nodes are taken whatever the answer; zero: they are not.
func mandatoryBy(o api.Offer) time.Time {
	if !o.Mandatory {
		return time.Time{}
	}
	return o.Deadline
}

// which returns the offer to answer.
func (a *answering) which(ctx context.Context, client *api.Client, job uint32) (int64, error) {
	if a.offer != 0 {
		return a.offer, nil
	}
	if id := injob.PresentOffer(job, os.Getenv); id != 0 {
		return id, nil
	}
	j, err := client.Job(ctx, job)
	if err != nil {
		return 0, err
	}
	for _, o := range j.Offers {
		if o.State == "open" || o.State == "accepted" {
			return o.ID, nil
		}
	}
	return 0, errors.New("nothing is offered at present, or asked for")
}
