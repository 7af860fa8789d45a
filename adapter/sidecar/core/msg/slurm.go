package msg

import (
	"fmt"
	"slices"
	"time"

	"github.com/evoslurm/evoslurm/planner"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// Occupancy holds when every node of the cluster is in use, in seconds from an origin. It is kept per node,
// not as a count, because jobs may be eligible for different sets of nodes, and because reservations and
// promised growths use specific nodes. A node promised to one job is promised to no other job, in whatever
// partition.
type Occupancy struct {
	Origin   int64 // Unix second that counts as 0
	Busy     [][]planner.NodeBusy
	Reserved [][]Reserved

	Licenses   Licenses             // those that evolving jobs wait for
	Preemption *slurmctl.Preemption // nil: no job yields
	Tenures    [][]Tenure           // of stock jobs, if some may yield
}

// Reserved is a node that a reservation of the site has for some time.
type Reserved struct {
	planner.NodeBusy
	By string // the reservation
}

// Licenses holds licences by their positions.
type Licenses struct {
	Names []string
	All   []planner.License
}

// Needs returns what a job asks for of these licences.
func (l *Licenses) Needs(asked []slurmctl.License) (needs []planner.LicenseNeed) {
	for _, a := range asked {
		if i := slices.Index(l.Names, a.Name); i >= 0 {
			needs = append(needs, planner.LicenseNeed{License: i, Count: min(a.Count, l.All[i].Total)})
		}
	}
	return needs
}

func NewOccupancy(nodes int, origin int64) *Occupancy {
	const usual = 2 // intervals per node
	busy, memory := make([][]planner.NodeBusy, nodes), make([]planner.NodeBusy, usual*nodes)
	for i := range busy {
		busy[i] = memory[usual*i : usual*i : usual*(i+1)]
	}
	return &Occupancy{Origin: origin, Busy: busy, Reserved: make([][]Reserved, nodes)}
}

// Add marks a node busy during [start, end), in Unix seconds.
func (o *Occupancy) Add(node int, start, end int64) {
	if b, ok := o.Interval(node, start, end); ok {
		o.Busy[node] = append(o.Busy[node], b)
	}
}

// Reserve marks a node as reserved during [start, end), in Unix seconds.
func (o *Occupancy) Reserve(node int, start, end int64, by string) {
	if b, ok := o.Interval(node, start, end); ok {
		o.Reserved[node] = append(o.Reserved[node], Reserved{b, by})
	}
}

func (o *Occupancy) Interval(node int, start, end int64) (planner.NodeBusy, bool) {
	start = max(start-o.Origin, 0)
	if end != planner.Forever {
		end -= o.Origin
	}
	return planner.NodeBusy{Node: node, Start: start, End: end}, end > start
}

// Window returns what is in use in a pool of nodes (indices into the cluster's nodes) for a job of a rank. It
// numbers the nodes by their position in the pool.
func (o *Occupancy) Window(nodes []int, to Rank) []planner.NodeBusy {
	return o.Claimed(windowOf(o.Busy, nodes), nodes, to)
}

// ReservedOn returns what others have reserved of these nodes, in the same form, for a job in a reservation ("": none). A job
// avoids a node that is reserved before its time limit ends, even if the plan gives the node back in time. Slurm does the same, and
// a job that overruns would block a maintenance.
func (o *Occupancy) ReservedOn(nodes []int, own string) (all []planner.NodeBusy) {
	for i, n := range nodes {
		for _, b := range o.Reserved[n] {
			if b.By != own {
				all = append(all, planner.NodeBusy{Node: i, Start: b.Start, End: b.End})
			}
		}
	}
	return all
}

// Outside returns when a job's own reservation ("": none) does not have these nodes, in the same form.
func (o *Occupancy) Outside(nodes []int, own string) (all []planner.NodeBusy) {
	for i, n := range nodes {
		for _, b := range o.Reserved[n] {
			if own == "" || b.By != own {
				continue
			}
			if b.Start > 0 {
				all = append(all, planner.NodeBusy{Node: i, Start: 0, End: b.Start})
			}
			all = append(all, planner.NodeBusy{Node: i, Start: b.End, End: planner.Forever})
		}
	}
	return all
}

func windowOf(byNode [][]planner.NodeBusy, nodes []int) []planner.NodeBusy {
	var all []planner.NodeBusy
	for i, n := range nodes {
		for _, b := range byNode[n] {
			b.Node = i
			all = append(all, b)
		}
	}
	return all
}

// Rank decides for which jobs Slurm ends other jobs. It is the zero value if Slurm does not preempt.
type Rank struct{ Partition, QOS string }

// Tenure is the use of a node by a stock job that Slurm may end for others.
type Tenure struct {
	planner.NodeBusy
	Of Rank
}

// yields reports whether Slurm ends jobs of rank `of` for a job of rank `to`.
func (o *Occupancy) yields(of, to Rank) bool {
	return o.Preemption.Yields(of.Partition, of.QOS, to.Partition, to.QOS)
}

// Claimed adds the use of the nodes by stock jobs that do not yield to a rank. It numbers the nodes by their
// position.
func (o *Occupancy) Claimed(busy []planner.NodeBusy, nodes []int, to Rank) []planner.NodeBusy {
	if o.Preemption == nil {
		return busy
	}
	for i, n := range nodes {
		for _, b := range o.Tenures[n] {
			if !o.yields(b.Of, to) {
				b.Node = i
				busy = append(busy, b.NodeBusy)
			}
		}
	}
	return busy
}

// preempts reports whether any job on the nodes yields to a rank.
func (o *Occupancy) preempts(nodes []int, to Rank) bool {
	return o.Preemption != nil && slices.ContainsFunc(nodes, func(n int) bool {
		return slices.ContainsFunc(o.Tenures[n], func(t Tenure) bool { return o.yields(t.Of, to) })
	})
}

// Sparing plans one job on the nodes as if no job yielded. Like Slurm, it prefers a plan that makes jobs yield
// only if the job then completes sooner.
func (o *Occupancy) Sparing(nodes []int, to Rank, plan func(Rank) ([]planner.Planned, error)) ([]planner.Planned, error) {
	if !o.preempts(nodes, to) {
		return plan(to)
	}
	end := func(planned []planner.Planned, err error) int64 {
		if err != nil || planned[0].Unfit != "" {
			return planner.Forever
		}
		return planned[0].End()
	}
	best, err := plan(Rank{})
	if taken, takenErr := plan(to); end(taken, takenErr) < end(best, err) {
		best, err = taken, takenErr
	}
	return best, err
}

// Untouched returns the positions of the nodes on which no job yields to a rank, if a job on other nodes does;
// otherwise nil.
func (o *Occupancy) Untouched(nodes []int, to Rank) []int {
	if !o.preempts(nodes, to) {
		return nil
	}
	rest := []int{}
	for i, n := range nodes {
		if !o.preempts([]int{n}, to) {
			rest = append(rest, i)
		}
	}
	return rest
}

// ConfigFor is how long the sidecar relies on the configuration that it read from Slurm.
const ConfigFor = 5 * time.Minute

// Unlike returns in words how a job that a process of the user submitted differs from the request for it, or "". A promise
// is used at the price and priority at which it was made, so account, QOS, and partition must be the same. moved says that
// a plugin of the site may have put the job into another QOS and partition. A longer time limit keeps nodes promised to others.
func Unlike(k *slurmctl.Job, q *slurmctl.AllocateRequest, moved bool) string {
	for _, f := range []struct {
		what, has, want string
		moves           bool
	}{{"account", k.Account, q.Account, false}, {"QOS", k.QOS, q.QOS, true}, {"partition", k.Partition, q.Partition, true}} {
		if f.want != "" && f.has != f.want && !(moved && f.moves) {
			return fmt.Sprintf("its %s is %q, not %q", f.what, f.has, f.want)
		}
	}
	switch {
	case q.TimeLimit <= 0 || k.TimeLimit != slurmctl.Unlimited && k.TimeLimit <= q.TimeLimit:
		return ""
	case k.TimeLimit == slurmctl.Unlimited:
		return "it has no time limit"
	}
	return fmt.Sprintf("its time limit is %v, not %v", k.TimeLimit, q.TimeLimit)
}

// Unready returns in words why an expander that has nodes cannot be used yet, or "". If the sidecar merged an
// expander whose nodes do not come up, Slurm would end the base job. An expander with a step manager rejects
// steps until its prologs have ended.
func Unready(k *slurmctl.Job, stepMgr bool) string {
	switch {
	case k.State == slurmctl.Configuring:
		return "waits for nodes that Slurm is switching on"
	case k.State == slurmctl.Suspended:
		return "waits for nodes on which Slurm has suspended it"
	case stepMgr && k.InProlog():
		return "waits for the prolog on the nodes that it gets"
	}
	return ""
}
