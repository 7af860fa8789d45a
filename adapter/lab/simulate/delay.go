package simulate

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
	"github.com/evoslurm/evoslurm/planner/malleable"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// aCycle is how much longer than its budget and a poll's interval a stock job may be held back: the
// commands of one cycle. One after the other are at most as many as slowSteps.
const (
	aCycle    = 2 * time.Second
	slowSteps = 6
	// stoppedFor is how long the sidecar waits for a salloc that its user has stopped.
	stoppedFor = 30 * time.Second
)

// heldBack tracks how long holds have kept stock jobs from starting since the sidecar began.
type heldBack struct {
	total map[slurmctl.JobID]time.Duration
	jobs  []slurmctl.Job // currently
	since time.Duration
	slow  bool          // slurmctld has been
	again time.Duration // until when Slurm may not have looked at nodes that it refused: see slurmsim.Cluster.Refuses
}

// inLine is a job in Slurm's order, with the nodes that it waits for.
type inLine struct {
	priority uint64
	nodes    int
	stock    *slurmctl.Job // nil: an evolving job, or an expander
}

// checkDelay checks that holds keep no stock job from starting for longer than its budget and a
// cycle, also while evolving jobs wait. Exceptions:
//   - A restarted sidecar counts again from zero.
//   - After a fault, a crash of slurmctld, a start, or a change of the clock, some time does not count
//     (calmFrom): the sidecar must see first what is true, and its commands may fail.
//   - Where running jobs have precedence (approach pra), the nodes offered to them count as taken.
//   - Slurm counts the jobs on some nodes wrong (docs/slurm-bugs.md, 5), and has not looked again since.
//   - Where a user stops every salloc in the user's name, a growth keeps its hold until the sidecar has
//     given the salloc up, since its job may start there (stoppedFor).
//   - Until the sidecar has learnt that a running job of its own has ended, nothing counts: it asks how the job ended once a poll
//     lists it no more, and the next poll gives its nodes to others.
//   - A job that Slurm could only backfill, past a job that lacks nodes in any case, does not count
//     (heldBackNow).
func (h *checks) checkDelay() {
	b, now := &h.heldBack, h.s.Cluster.Elapsed()
	if slow := h.slow.most > 0; slow != b.slow { // cycles last otherwise from now on
		b.jobs, b.total, b.slow = nil, nil, slow
	}
	budgets, err := h.s.Config.Delays()
	h.blame(err)
	for i := range b.jobs {
		r := &b.jobs[i]
		if b.total == nil {
			b.total = map[slurmctl.JobID]time.Duration{}
		}
		b.total[r.ID] += now - b.since
		budget, more := budgets.Of(r.Partition, r.QOS), h.s.Config.PollInterval+aCycle+slowSteps*h.slow.most
		if len(h.stopped) > 0 {
			more += stoppedFor
		}
		if b.total[r.ID] > budget+more {
			h.blame(fmt.Errorf("stock job %d is held back for a cycle longer than its budget of %v", r.ID, budget))
		}
	}
	b.jobs, b.since = h.heldBackNow(), now
}

// heldBackNow returns the stock jobs that only holds keep from starting: without holds, there are
// enough idle nodes for them and for all jobs before them in Slurm's order.
func (h *checks) heldBackNow() (held []slurmctl.Job) {
	b, now := &h.heldBack, h.s.Cluster.Elapsed()
	if h.s.Cluster.Refuses() {
		b.again = now + time.Minute
	}
	if now < max(h.calmFrom, b.again) || h.had != nil || !h.s.Running() || len(h.stocks)+len(h.sharing) == 0 || h.isBehind() {
		return nil
	}
	ahead, unheld := 0, []*slurmctl.Job(nil) // nodes for the jobs before, in all, and those of these that have no hold
	for _, one := range h.line() {
		ahead += one.nodes
		if one.stock == nil {
			continue
		}
		r := one.stock
		if h.isHeldBack(r, ahead, unheld) {
			held = append(held, *r)
		}
		if !h.sharing[r.ID] {
			unheld = append(unheld, r)
		}
	}
	return held
}

// isBehind reports whether a job has ended that runs for all the sidecar knows.
func (h *checks) isBehind() bool {
	return slices.ContainsFunc(h.s.View().Jobs, func(j api.Job) bool {
		r, known := h.s.Cluster.Record(slurmctl.JobID(j.ID))
		return j.State == string(row.Running) && known && r.Ended()
	})
}

// isHeldBack reports whether only holds keep a stock job from starting. With the jobs before it, it needs so many nodes; those
// of these that have no hold may share the nodes of a job that asks for some CPUs.
func (h *checks) isHeldBack(r *slurmctl.Job, ahead int, unheld []*slurmctl.Job) bool {
	switch {
	case r.Reservation != "":
		return false
	case h.sharing[r.ID]:
		without, with := h.s.Cluster.Room(r.ID, h.keeps)
		return without >= ahead && with < r.NumNodes
	case h.stocks[r.ID]:
		without, with := h.s.Cluster.Idle(r.TimeLimit, h.keeps)
		return without >= ahead && with < r.NumNodes+h.share(unheld, with)
	}
	return false
}

// share returns how many nodes jobs take at least of some that are idle for long. Shorter jobs have others first.
func (h *checks) share(jobs []*slurmctl.Job, long int) (nodes int) {
	others := 0
	for _, r := range jobs {
		_, may := h.s.Cluster.Idle(r.TimeLimit, h.keeps)
		there := min(r.NumNodes, max(may-long-others, 0))
		others += there
		nodes += r.NumNodes - there
	}
	return nodes
}

// keeps reports whether a reservation keeps nodes from stock jobs for an evolving job.
func (h *checks) keeps(reservation string) bool {
	of, ours := strings.CutPrefix(reservation, "evo_")
	_, step, _ := strings.Cut(of, "_")
	offered := strings.HasPrefix(step, "0_")
	return ours && !(offered && h.s.Config.Malleable.Precedence() == malleable.PRA)
}

// line returns the waiting jobs in Slurm's order: stock jobs, queued evolving jobs with their first
// step, and evolving jobs that wait for a growth with the nodes that they lack.
func (h *checks) line() (all []inLine) {
	v := h.s.View()
	known := map[slurmctl.JobID]*api.Job{}
	for i := range v.Jobs {
		known[slurmctl.JobID(v.Jobs[i].ID)] = &v.Jobs[i]
	}
	queue := h.s.Cluster.Queue()
	for i := range queue {
		r := &queue[i]
		j := known[r.ID]
		switch {
		case j != nil && j.State != string(row.Running) && r.State != slurmctl.Pending:
			all = append(all, inLine{priority: j.Priority, nodes: max(j.NextNodes-j.Nodes, 0)})
		case r.State != slurmctl.Pending:
		case j != nil && j.State == string(row.Queued):
			all = append(all, inLine{priority: j.Priority, nodes: r.NumNodes})
		case j == nil && !h.evolving[r.ArrayJobID] && !strings.HasPrefix(r.Name, "evo_"):
			if r.Priority > 0 {
				all = append(all, inLine{priority: r.Priority, nodes: r.NumNodes, stock: r})
			}
		default: // Slurm is starting it, or nobody knows yet what it becomes
			all = append(all, inLine{priority: math.MaxUint64, nodes: r.NumNodes})
		}
	}
	slices.SortStableFunc(all, func(a, b inLine) int { return cmp.Compare(b.priority, a.priority) })
	return all
}
