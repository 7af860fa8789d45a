package refit

import (
	"time"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/adopt"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/plan"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/slurm"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
	"github.com/evoslurm/evoslurm/planner"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// Occupied returns everything that is certain: what others use, what is promised to evolving jobs that have
// begun, and what was just given up for stock jobs. It leaves out `except`.
func Occupied(c *state.Core, s *state.Snapshot, origin int64, except *state.Job) *msg.Occupancy {
	o := Foreign(c, s, origin)
	for j := range plan.Each(c, c.Active) {
		if j != except && (j.Runs() || j.State == row.Starting) {
			AddPromises(c, o, s, j, s.Taken.Unix())
		}
	}
	addFreed(c, o, s)
	return o
}

// Foreign returns what does not belong to evolving jobs: stock jobs, other reservations, and nodes that cannot
// be used.
func Foreign(c *state.Core, s *state.Snapshot, origin int64) *msg.Occupancy {
	o := msg.NewOccupancy(len(s.Nodes), origin)
	if o.Preemption = c.Rules.Limits.Preemption(); o.Preemption != nil {
		o.Tenures = make([][]msg.Tenure, len(s.Nodes))
	}
	slurm.AddNodes(c, o, s)
	addStock(c, o, s)
	for _, by := range state.SortedKeys(s.Reservations) {
		r := s.Reservations[by]
		if _, ours := s.Holds[by]; ours && !c.Config.Observes() {
			continue
		}
		for _, name := range r.Nodes {
			if n, ok := s.Index[name]; ok {
				o.Reserve(n, r.Start.Unix(), r.End.Unix(), by)
			}
		}
	}
	return o
}

// addStock adds the nodes that stock jobs have.
func addStock(c *state.Core, o *msg.Occupancy, s *state.Snapshot) {
	now := s.Taken.Unix()
	for i := range s.Jobs {
		r := &s.Jobs[i]
		if len(r.NodeList) == 0 || c.Owner(r.ID) != nil && r.State != slurmctl.Completing || merged(c, r) {
			continue // ours follow below, with their promises
		}
		end := slurm.Releases(c, r, now)
		if Outlived(c, s, r) { // it will be cancelled in this cycle
			end = now + max(slurm.Margin(c), 1)
		}
		for _, name := range r.NodeList {
			if n, ok := s.Index[name]; ok {
				until := end
				if end != planner.Forever {
					until += slurm.OffAfter(&c.Power, s.Nodes[n])
				}
				if o.Preemption == nil || r.State != slurmctl.Running {
					o.Add(n, o.Origin, until)
				} else if b, ok := o.Interval(n, o.Origin, until); ok {
					o.Tenures[n] = append(o.Tenures[n], msg.Tenure{b, slurm.RankOf(c, r)})
				}
			}
		}
	}
}

// merged reports whether a job in a poll is an expander that was merged since: its nodes are the running job's. As a job
// of somebody else, it would keep them from later steps until its time limit.
func merged(c *state.Core, r *slurmctl.Job) bool {
	own, ours := state.ParseHoldName(r.Name)
	j := c.ByID[own.Job]
	return ours && j != nil && j.Runs() && j.Mode.CarriesNodes && slurm.IsExpander(c, r) && adopt.MayBring(c, r, j) && len(msg.Without(r.NodeList, j.Nodes())) == 0
}

// AddPromises adds the nodes that a job has and will have, each until the margin after its planned release.
func AddPromises(c *state.Core, o *msg.Occupancy, s *state.Snapshot, j *state.Job, now int64) {
	margin := int64(c.Config.Margin / time.Second)
	if !j.Mode.CarriesNodes && !j.Lapsed() {
		slurm.AddLinks(c, o, s, j, now)
		return
	}
	if j.BestEffort() {
		addBestEffort(c, o, s, j, now)
		return
	}
	from, until := promisedTimes(c, j, now)
	if len(j.Plan) == 0 {
		until = supposed(j)
	}
	if Lacks(j) {
		p := j.Plan[j.Step-1]
		c.Moves = true
		for _, n := range p.Nodes { // it gets what it lacks for the rest of its step, not from the step's start on
			from[n] = p.End - (c.Until(now, j.Expected()) - now)
		}
	}
	for _, n := range j.Nodes() {
		from[n] = o.Origin
	}
	prolong(c, j, until, now)
	for _, n := range j.Nodes() {
		until[n] = c.Until(now, until[n]) // an overrunning step still holds them
	}
	addLent(c, o, s, j, now)
	for name, start := range from {
		if n, ok := s.Index[name]; ok {
			o.Add(n, start, until[name]+margin)
		}
	}
}

// Lacks reports whether a running job has fewer nodes than its step needs. It gets the others of its plan as soon as it can.
func Lacks(j *state.Job) bool {
	return j.State == row.Running && len(j.Plan) >= j.Step && len(Own(j)) < slurm.Needs(j)
}

// promisedTimes returns when a job first gets each promised node, and its planned release.
func promisedTimes(c *state.Core, j *state.Job, now int64) (from, until map[string]int64) {
	from, until = make(map[string]int64, len(j.Nodes())), make(map[string]int64, len(j.Nodes()))
	for _, step := range slurm.Promised(c, j, now) {
		for _, n := range step.Nodes {
			until[n] = step.End
			if _, seen := from[n]; !seen {
				from[n] = step.Start
			}
		}
	}
	return from, until
}

// addBestEffort adds the nodes of a best-effort job: others may have each of them after its grace.
func addBestEffort(c *state.Core, o *msg.Occupancy, s *state.Snapshot, j *state.Job, now int64) {
	if j.State != row.Starting {
		addLent(c, o, s, j, now)
		return
	}
	for _, name := range j.Planned() {
		if n, ok := s.Index[name]; ok {
			o.Add(n, o.Origin, lentUntil(c, j, name, now)+slurm.Margin(c))
		}
	}
}

// prolong extends the planned releases of the nodes that a job may keep for longer.
func prolong(c *state.Core, j *state.Job, until map[string]int64, now int64) {
	if j.Claim > 0 && j.Runs() { // it may keep them until its time limit
		for _, n := range j.Nodes() {
			until[n] = max(until[n], now+slurm.Reach(c, j, now))
		}
	}
	if j.Lapsed() || j.State == row.Waiting && j.Next() == nil {
		for _, n := range Keeps(j) {
			until[n] = now + slurm.Reach(c, j, now)
		}
	}
	if adopt.IsMalleable(j) && j.Runs() && len(j.Plan) >= j.Step {
		for _, n := range Own(j) { // a lent node replaces a lost one
			until[n] = max(until[n], j.Plan[j.Step-1].End)
		}
	}
	if at := slurm.Pinned(j); at != "" && len(j.Plan) > 0 { // even before a plan contains it: see heedPinned
		until[at] = max(until[at], j.Plan[len(j.Plan)-1].End)
	}
}

// addKept adds what a running job has as if it got nothing more: until its current step ends or, with `long`, what
// the next step needs for as long as the job may run.
func addKept(c *state.Core, o *msg.Occupancy, s *state.Snapshot, j *state.Job, now int64, long bool) {
	kept, until := msg.SetOf(Keeps(j)), max(j.Plan[j.Step-1].End, now)
	for _, name := range j.Nodes() {
		end := until + slurm.Margin(c)
		if kept[name] && long {
			end = max(end, now+slurm.Reach(c, j, now))
		}
		if n, ok := s.Index[name]; ok {
			o.Add(n, o.Origin, end)
		}
	}
}
