package simulate

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/lease"
	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
	"github.com/evoslurm/evoslurm/slurmctl"
	"github.com/evoslurm/evoslurm/slurmctl/slurmsim"
)

// checks compares every step with what must hold in all histories.
type checks struct {
	*stage
	heldBack heldBack
	held     held
	beyond   time.Duration // when a user last exceeded the shares of holds
	alive    alive
	demands  demands
	texts    map[*string]nodesText // of lists of nodes, by where they are
	asks     bool                  // the last step only asks: see onlyAsks
	still    bool                  // the last step kept the promise to decide nothing, and nothing happened
}

// onlyAsks reports whether a step did nothing except ask for a poll or a plan. Two in three steps do.
// The step with the answer follows, after a plan at the same moment, and is checked.
func onlyAsks(effects []msg.Effect) (asks bool) {
	for _, e := range effects {
		switch e.(type) {
		case msg.Poll, msg.Plan:
			asks = true
		case msg.Wake:
		default:
			return false
		}
	}
	return asks
}

// checkStep checks after a step of the core that its state keeps its invariants and that the
// database matches the state. It leaves out steps that only ask. While nothing happens and the core decides nothing,
// it checks only what time changes: the first step after that finds the rest.
func (h *checks) checkStep() {
	if h.asks {
		return
	}
	if h.mayHoldBack() {
		h.checkDelay()
	}
	h.checkShares()
	if !h.still {
		h.checkState()
	}
}

// mayHoldBack reports whether checkDelay has something to count: some stock job was held back, or waits while holds
// keep idle nodes from it.
func (h *checks) mayHoldBack() bool {
	if len(h.heldBack.jobs) > 0 {
		return true
	}
	for id := range h.stocks {
		if limit, waits := h.s.Cluster.WaitsFor(id); waits {
			if without, with := h.s.Cluster.Idle(limit, h.keeps); with < without {
				return true
			}
		}
	}
	for id := range h.sharing {
		if _, waits := h.s.Cluster.WaitsFor(id); waits {
			if without, with := h.s.Cluster.Room(id, h.keeps); with < without {
				return true
			}
		}
	}
	return false
}

// checkState checks the state of the core after a step, and what Slurm and the database have of it.
func (h *checks) checkState() {
	h.blame(h.s.core.Check())
	for _, c := range h.s.core.Clashes() {
		if !h.excused(c.Jobs[0]) && !h.excused(c.Jobs[1]) {
			h.blame(errors.New(c.Text))
		}
	}
	h.checkBounds()
	for _, name := range h.order {
		if stray := h.s.Cluster.Stray(h.jobs[name]); len(stray) > 0 {
			h.blame(fmt.Errorf("job %d (%s) still runs steps on %s, which it gave back", h.jobs[name], name, slurmctl.CompressNodes(stray)))
		}
	}
	for _, want := range h.s.core.Written(h.text) {
		got, ok := h.s.Database.Jobs[want.Job.ID]
		if !ok {
			h.blame(fmt.Errorf("job %d is not in the database", want.Job.SlurmID))
			continue
		}
		got.Past = nil
		if !sameBooked(got, want) {
			h.blame(fmt.Errorf("job %d: the database has\n%+v, the state is\n%+v", want.Job.SlurmID, got, want))
		}
	}
}

// givesUpWithin is how long the sidecar may take to give up holds beyond a user's share: it may be
// killed meanwhile, and Slurm may be away.
const givesUpWithin = 10 * time.Minute

// checkShares checks that no user exceeds the shares of holds, except briefly.
func (h *checks) checkShares() {
	user, holds := h.s.core.BeyondShare()
	now := h.s.Cluster.Elapsed()
	if user == "" {
		h.beyond = now
	}
	if now-h.beyond > givesUpWithin {
		h.blame(fmt.Errorf("%s has %d holds for %v, more than the shares allow", user, holds, givesUpWithin))
	}
}

// text is slurmctl.CompressNodes with a cache: a plan is checked after every step but seldom
// changes.
func (h *checks) text(nodes []string) string {
	if len(nodes) == 0 {
		return ""
	}
	known := h.texts[&nodes[0]]
	if known.of != len(nodes) {
		known = nodesText{len(nodes), slurmctl.CompressNodes(nodes)}
		h.texts[&nodes[0]] = known
	}
	return known.text
}

// nodesText is the text of a list of nodes.
type nodesText struct {
	of   int
	text string
}

// sameBooked compares what is written with what should be. It ignores how the core finds a job
// again whose time limit or begin it has changed.
func sameBooked(got, want msg.BookedJob) bool {
	for _, b := range []*msg.BookedJob{&got, &want} {
		b.Job.Begin, b.Job.Submitted = time.Time{}, time.Time{}
		for _, t := range []*time.Time{&b.Job.Started, &b.Job.StepStarted, &b.Job.StepEnded, &b.Job.Ended, &b.Job.Behind} {
			*t = t.Truncate(time.Second).UTC()
		}
	}
	equal := func(a, b []row.Span) bool {
		return slices.EqualFunc(a, b, func(x, y row.Span) bool {
			return x.Step == y.Step && x.Start.Equal(y.Start) && x.End.Equal(y.End) && x.NodeList == y.NodeList
		})
	}
	return equal(got.Plan, want.Plan) && slices.Equal(got.Parts, want.Parts) && got.Bound == want.Bound &&
		got.Job.Owned == want.Job.Owned && got.Job.Life == want.Job.Life && reflect.DeepEqual(got.Job.Terms, want.Job.Terms) &&
		reflect.DeepEqual(got.Job.Setbacks, want.Job.Setbacks)
}

// mayChange checks that the sidecar changes only evolving jobs, its own jobs, and jobs in its
// holds, or those that began there and left them (hands=leaves).
func (h *checks) mayChange(q slurmsim.Command) {
	if q.User.Name != h.s.account().Name || !q.Changes() {
		return
	}
	for _, id := range q.Jobs {
		r, ok := h.record(id)
		if !ok || h.evolving[r.ArrayJobID] || strings.HasPrefix(r.Name, "evo_") || strings.HasPrefix(r.Reservation, "evo_") || r.Name == "leaves" {
			continue
		}
		h.blame(fmt.Errorf("%v changes job %d (%s), which is none of the sidecar's business", q, id, r.Name))
	}
}

// checkEnd checks, long after the last event, that all jobs have ended and nothing is left behind.
func (h *checks) checkEnd() {
	for _, r := range h.s.Cluster.Queue() {
		if r.State == slurmctl.Suspended || r.State == slurmctl.Pending && r.Priority == 0 {
			return // the script has left it so, and others may wait for it
		}
	}
	for _, r := range h.s.Cluster.Queue() {
		h.checkDenied(&r)
		switch {
		case r.Ended():
		case h.tricks(r):
		case strings.HasPrefix(r.Name, "evo_"):
			h.blame(fmt.Errorf("expander %d (%s) is left, %s", r.ID, r.Name, r.State))
		case h.evolving[r.ArrayJobID] && !h.refused(r.ID):
			h.blame(fmt.Errorf("job %d (%s) has not come to its end: %s %s", r.ID, r.Name, r.State, h.why(r.ID)))
		case !h.evolving[r.ArrayJobID]:
			h.blame(fmt.Errorf("stock job %d (%s) has not come to its end: %s %s", r.ID, r.Name, r.State, r.Reason))
		}
	}
	h.s.Sleep(time.Minute) // time for the rest to go away
	reservations, err := h.s.Cluster.Client(admin).Reservations(context.Background())
	h.blame(err)
	for _, r := range reservations {
		if strings.HasPrefix(r.Name, "evo_") && !strings.HasPrefix(r.Name, lease.Prefix) {
			h.blame(fmt.Errorf("hold %s is left", r.Name))
		}
	}
	if open := len(h.s.Database.Intents); open > 0 && h.s.Running() {
		h.blame(fmt.Errorf("%d intents are not settled", open))
	}
	h.checkLedger()
}

// checkApps checks that applications got in every step what their profiles say.
func (h *checks) checkApps() {
	for _, name := range h.order {
		a := h.apps[name]
		for _, wrong := range append(a.Wrong, a.judged()...) {
			h.blame(errors.New(wrong))
		}
	}
}

// checkBounds checks that no malleable application has more nodes than its current and next step
// allow, nor fewer than the smaller minimum of these, unless nodes are lost. Between two steps it may have more for a
// moment: nodes of the next step come before lent ones go.
func (h *checks) checkBounds() {
	var queue []slurmctl.Job
	for _, name := range h.order {
		a := h.apps[name]
		step := a.step()
		if a.Malleable == nil || step == 0 || step > len(a.Profile) {
			continue
		}
		next := min(step+1, len(a.Profile))
		most, least := max(a.Malleable.Max[step-1], a.Malleable.Max[next-1]), min(a.Profile[step-1].Nodes, a.Profile[next-1].Nodes)
		nodes, id, runs := 0, h.jobs[name], false
		if queue == nil {
			queue = h.s.Cluster.Queue()
		}
		own := fmt.Sprintf("evo_%d_", id)
		for i := range queue {
			r := &queue[i]
			if r.State == slurmctl.Running && (r.ID == id || strings.HasPrefix(r.Name, own) && !h.tricks(*r)) {
				nodes += len(r.NodeList)
			}
			runs = runs || r.ID == id && r.State == slurmctl.Running
		}
		switch {
		case !runs || h.excused(id):
		case nodes > most && !h.unseen(id, nodes) && !h.between(id):
			h.blame(fmt.Errorf("%s has %d nodes in step %d, and may have %d", name, nodes, step, most))
		case nodes < least && !h.lossy:
			h.blame(fmt.Errorf("%s has %d nodes in step %d, and was promised %d", name, nodes, step, least))
		}
	}
}

// unseen reports whether slurmctld has forgotten in a crash that a job gave nodes back, and the
// sidecar has not seen it yet: the job has more than the sidecar knows.
func (h *checks) unseen(id slurmctl.JobID, nodes int) bool {
	j, known := h.s.Job(id)
	return h.crashed && known && j.Nodes < nodes
}

// between reports whether a job has ended a step and waits for the next one.
func (h *checks) between(id slurmctl.JobID) bool {
	j, known := h.s.Job(id)
	return known && j.State == string(row.Waiting)
}

// checkThreshold checks that no offer would let malleable jobs, with those that are about to begin, exceed the site's threshold.
func (h *checks) checkThreshold(effects []msg.Effect) {
	threshold := h.s.Config.Malleable.Threshold
	if threshold == 0 || !slices.ContainsFunc(effects, func(e msg.Effect) bool { a, ok := e.(msg.AddEvent); return ok && a.Kind == "offered" }) {
		return
	}
	sum := 0
	for _, j := range h.s.View().Jobs {
		if j.Bounds == "" {
			continue
		}
		if sum += j.Nodes; j.State == string(row.Starting) && j.Nodes == 0 && len(j.Plan) > 0 {
			sum += j.Plan[0].Nodes
		}
		for _, o := range j.Offers {
			switch { // what it has of the offer already counts above
			case o.Kind == "grow" && o.State == "open":
				sum += o.Nodes + o.Has - j.Nodes
			case o.Kind == "grow" && o.State == "accepted": // what it left may be offered to others
				sum += o.Accepted + o.Has - j.Nodes
			}
		}
	}
	if sum > threshold {
		h.blame(fmt.Errorf("malleable jobs are offered nodes to have %d together, above the threshold of %d", sum, threshold))
	}
}
