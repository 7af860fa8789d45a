package simulate

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/evoslurm/evoslurm/adapter/internal/drivemode"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core"
	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
	"github.com/evoslurm/evoslurm/slurmctl"
	"github.com/evoslurm/evoslurm/slurmctl/slurmsim"
)

// checkStep checks after a step of the core that its state keeps its invariants and that the
// database matches the state.
func (h *history) checkStep() {
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
	h.checkDelay()
	h.checkShares()
	for _, want := range h.s.core.Written(h.text) {
		got, ok := h.s.Database.jobs[want.Job.ID]
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
func (h *history) checkShares() {
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
func (h *history) text(nodes []string) string {
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

// excuses lists the events that explain why a job is not as planned.
var excuses = []string{"delayed", "overrun", "lapsed", "suspended", "resumed", "requeued", "step corrected", "nodes changed", "kept back", "given up", "failed", "changed"}

// excused reports whether the event log explains why a job is not as planned.
func (h *history) excused(id slurmctl.JobID) bool {
	for _, e := range h.s.Database.Events {
		if h.s.Database.jobs[e.Job].Job.SlurmID == uint32(id) && slices.Contains(excuses, e.Kind) {
			return true
		}
	}
	return h.told[id]
}

// sameBooked compares what is written with what should be. It ignores how the core finds a job
// again whose time limit or begin it has changed.
func sameBooked(got, want core.BookedJob) bool {
	for _, b := range []*core.BookedJob{&got, &want} {
		b.Job.Begin, b.Job.Submitted = time.Time{}, time.Time{}
		for _, t := range []*time.Time{&b.Job.Started, &b.Job.StepStarted, &b.Job.StepEnded, &b.Job.Ended, &b.Job.Behind} {
			*t = t.Truncate(time.Second)
		}
	}
	equal := func(a, b []row.Span) bool {
		return slices.EqualFunc(a, b, func(x, y row.Span) bool {
			return x.Step == y.Step && x.Start.Equal(y.Start) && x.End.Equal(y.End) && x.NodeList == y.NodeList
		})
	}
	return equal(got.Plan, want.Plan) && slices.Equal(got.Parts, want.Parts) && got.Bound == want.Bound && sameJob(got.Job, want.Job)
}

func sameJob(a, b row.Job) bool {
	for _, t := range []*time.Time{&a.Started, &a.StepStarted, &a.StepEnded, &a.Ended, &b.Started, &b.StepStarted, &b.StepEnded, &b.Ended, &a.Behind, &b.Behind} {
		*t = t.UTC()
	}
	return reflect.DeepEqual(a, b)
}

// blame records an error, once per wording.
func (h *history) blame(err error) {
	if err == nil || h.blamed[err.Error()] {
		return
	}
	h.blamed[err.Error()] = true
	h.say("WRONG: " + err.Error())
	h.errs = append(h.errs, fmt.Errorf("%s: %w", stamp(h.s.Cluster.Elapsed()), err))
}

// mayChange checks that the sidecar changes only evolving jobs, its own jobs, and jobs in its
// holds.
func (h *history) mayChange(q slurmsim.Command) {
	if q.User.Name != slurmsim.Root.Name || !q.Changes() {
		return
	}
	for _, id := range q.Jobs {
		r, ok := h.record(id)
		if !ok || h.evolving[id] || strings.HasPrefix(r.Name, "evo_") || strings.HasPrefix(r.Reservation, "evo_") {
			continue
		}
		h.blame(fmt.Errorf("%v changes job %d (%s), which is none of the sidecar's business", q, id, r.Name))
	}
}

// jobOf returns the job of that name, unless slurmctld has forgotten it and its number is another
// job's. It also finds companions by name.
func (h *history) jobOf(name string) (slurmctl.JobID, bool) {
	if strings.HasPrefix(name, "evo_") {
		for _, r := range h.s.Cluster.Queue() {
			if r.Name == name && !r.Ended() {
				return r.ID, true
			}
		}
	}
	if first, link, isLink := strings.Cut(name, "/"); isLink { // Slurm numbers them consecutively
		n, err := strconv.Atoi(link)
		id := h.jobs[first] + slurmctl.JobID(n-1)
		r, known := h.s.Cluster.Record(id)
		return id, err == nil && known && r.Name == first && h.apps[first].Drive == drivemode.Chain
	}
	id, ok := h.jobs[name]
	r, known := h.s.Cluster.Record(id)
	if a := h.apps[name]; known && r.Name != name || !known && a != nil && len(a.Steps) == 0 {
		return 0, false
	}
	return id, ok
}

// tricks reports whether a job is a forged one. slurmctld may have forgotten it, and its number may
// be another job's.
func (h *history) tricks(r slurmctl.Job) bool {
	return h.forged[r.ID] && strings.HasPrefix(r.Name, "evo_")
}

func (h *history) record(id slurmctl.JobID) (slurmctl.Job, bool) {
	for _, r := range h.s.Cluster.Queue() {
		if r.ID == id {
			return r, true
		}
	}
	return slurmctl.Job{}, false
}

// over reports whether no job has anything left to do.
func (h *history) over() bool {
	for _, r := range h.s.Cluster.Queue() {
		if !r.Ended() && !h.tricks(r) {
			return false
		}
	}
	return true
}

// checkEnd checks, long after the last event, that all jobs have ended and nothing is left behind.
func (h *history) checkEnd() {
	for _, r := range h.s.Cluster.Queue() {
		if r.State == slurmctl.Suspended || r.State == slurmctl.Pending && r.Priority == 0 {
			return // the script has left it so, and others may wait for it
		}
	}
	for _, r := range h.s.Cluster.Queue() {
		switch {
		case r.Ended():
		case h.tricks(r):
		case strings.HasPrefix(r.Name, "evo_"):
			h.blame(fmt.Errorf("expander %d (%s) is left, %s", r.ID, r.Name, r.State))
		case h.evolving[r.ID] && !h.refused(r.ID):
			h.blame(fmt.Errorf("job %d (%s) has not come to its end: %s %s", r.ID, r.Name, r.State, h.why(r.ID)))
		case !h.evolving[r.ID]:
			h.blame(fmt.Errorf("stock job %d (%s) has not come to its end: %s %s", r.ID, r.Name, r.State, r.Reason))
		}
	}
	h.s.Sleep(time.Minute) // time for the rest to go away
	reservations, err := h.s.Cluster.Client(admin).Reservations(context.Background())
	h.blame(err)
	for _, r := range reservations {
		if strings.HasPrefix(r.Name, "evo_") {
			h.blame(fmt.Errorf("hold %s is left", r.Name))
		}
	}
	if open := len(h.s.Database.intents); open > 0 && h.s.Running() {
		h.blame(fmt.Errorf("%d intents are not settled", open))
	}
}

// why returns evosqueue's explanation of a job.
func (h *history) why(id slurmctl.JobID) string {
	if v := h.s.View(); v != nil {
		for _, j := range v.Jobs {
			if j.ID == v.Base[uint32(id)] {
				return j.State + ": " + j.Reason
			}
		}
	}
	return "unknown to the sidecar"
}

// refused reports whether the sidecar has refused the job in words: the job stays parked.
func (h *history) refused(id slurmctl.JobID) bool {
	return strings.Contains(h.why(id), "refused: ") || strings.Contains(h.why(id), "can never begin")
}

// checkApps checks that applications got in every step what their profiles say.
func (h *history) checkApps() {
	for _, name := range h.order {
		a := h.apps[name]
		for _, wrong := range append(a.wrong, a.judged()...) {
			h.blame(errors.New(wrong))
		}
	}
}

// wrong returns all errors found.
func (h *history) wrong() error { return errors.Join(h.errs...) }
