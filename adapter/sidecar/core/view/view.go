package view

import (
	"maps"
	"slices"
	"time"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/internal/config"
	"github.com/evoslurm/evoslurm/adapter/job/request"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/adopt"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/follow"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/lend"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/pace"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/plan"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/power"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/refit"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/slurm"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
	"github.com/evoslurm/evoslurm/planner"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// ViewOf returns the current state. O(jobs).
func ViewOf(c *state.Core) *msg.View {
	v := &msg.View{Owners: map[uint32]uint32{}, Coming: map[uint32]bool{}, Base: map[uint32]uint32{}, Operators: c.Config.Operators, SlurmUser: c.SlurmUser, Reading: Reading(c), AsSlurm: c.Config.Read == config.ReadSlurm,
		Private: msg.Private{Nodes: private(c, "nodes"), Partitions: private(c, "partitions"), Reservations: private(c, "reservations")}}
	v.Status, v.Skew = status(c), c.Skew
	further := map[uint32][]uint32{}
	for id, j := range c.ByID {
		if uint32(id) != j.SlurmID {
			further[j.SlurmID] = append(further[j.SlurmID], uint32(id))
		}
	}
	show := func(j *state.Job) api.Job {
		a := shown(c, Describe(c, j))
		a.SlurmJobs = slices.Sorted(slices.Values(further[j.SlurmID]))
		return a
	}
	for j := range plan.Each(c, c.Active) {
		v.Jobs = append(v.Jobs, show(j))
	}
	for _, r := range strangers(c, &v.Status) {
		v.Jobs = append(v.Jobs, shown(c, r))
		v.Owners[r.ID], v.Base[r.ID] = r.UID, r.ID
	}
	for _, id := range slices.Sorted(maps.Keys(c.Asked)) {
		read := c.Asked[id]
		if why := read.Why(); why != nil && plan.IsComing(c, id) && c.Snapshot.ByID[id] != nil {
			v.Jobs = append(v.Jobs, shown(c, adopt.Stranger(c.Snapshot.ByID[id], "is asked about again at "+state.ClockText(c, read.Again)+": "+why.Error())))
			v.Base[uint32(id)] = uint32(id)
		}
	}
	for _, j := range c.Ended {
		v.Ended = append(v.Ended, show(j))
	}
	if c.Snapshot != nil {
		v.Holds, v.HeldNodes = countHolds(c)
		v.Seen = len(c.Snapshot.Jobs)
		v.IdleNodes, v.Idle = c.Prices.Nodes, slurm.IdleOf(c)
	}
	for _, j := range slices.Concat(c.Ended, c.Active) {
		v.Owners[j.SlurmID], v.Base[j.SlurmID] = j.UID, j.SlurmID
	}
	for id, uid := range c.Coming {
		v.Owners[uint32(id)], v.Coming[uint32(id)] = uid, plan.IsComing(c, id)
	}
	for id, j := range c.ByID {
		v.Owners[uint32(id)], v.Base[uint32(id)] = j.UID, j.SlurmID
	}
	return v
}

// strangers returns what is shown without being adopted: refused jobs, and the records in which tasks of arrays wait. It
// counts the jobs set aside.
func strangers(c *state.Core, status *api.Status) []api.Job {
	all := adopt.Rests(c)
	for _, id := range slices.Sorted(maps.Keys(c.Refused)) {
		all = append(all, c.Refused[id].Job)
		if adopt.SetAside(c, id, c.Refused[id].Submit) != "" {
			status.SetAside++
		}
	}
	return all
}

// status returns the sidecar's state, without the number of jobs set aside.
func status(c *state.Core) api.Status {
	drive, why := slurm.SiteDrive(c, c.Facts.With(false))
	status := api.Status{Version: c.Site.Version, Cluster: c.SlurmConfig.ClusterName, SlurmVersion: c.SlurmConfig.Version,
		Mode: string(c.Config.Mode), Started: c.Wall(c.Started), ClockLead: c.Lead.Seconds(), SlurmCalls: c.CycleCalls, PollPause: c.Pace.Pause.Seconds(), PollsApart: pace.Apart(&c.Pace).Seconds(), SlurmShare: pace.Share(&c.Pace, c.Config.PollInterval), MostShare: c.Config.Slurm.Share, Drive: string(drive), DriveReason: why, Drain: drainShown(c), Power: power.Summary(c)}
	if c.Snapshot != nil {
		status.Nodes, status.LastCycle = len(c.Snapshot.Nodes), c.Wall(c.Snapshot.Taken)
	}
	if c.Twin != nil {
		status.LastError = c.Twin.Error()
	} else if c.LastErr != nil {
		status.LastError = "its last poll of Slurm failed: " + c.LastErr.Error()
	}
	return status
}

// countHolds counts the holds in Slurm that can be given up, and their nodes.
func countHolds(c *state.Core) (holds, nodes int) {
	held := msg.Set{}
	for name := range c.Snapshot.Holds {
		if _, stuck := c.StuckHolds[name]; !stuck {
			holds++
			held.Add(c.Snapshot.Reservations[name].Nodes)
		}
	}
	return holds, len(held)
}

// Job returns what View shows of one active job, or false if there is none. O(jobs).
func Job(c *state.Core, id slurmctl.JobID) (api.Job, bool) {
	for j := range plan.Each(c, c.Active) {
		if j.SlurmID == uint32(id) {
			return shown(c, Describe(c, j)), true
		}
	}
	return api.Job{}, false
}

// Reading returns the site's rule for who may read. Slurm's own rule is not known before its configuration is.
func Reading(c *state.Core) api.Reading {
	switch {
	case c.Config.Read == config.ReadEverybody:
		return api.Anybody
	case c.Config.Read == config.ReadOwn || private(c, "jobs"):
		return api.OwnJobs
	}
	return api.AllJobs
}

// private reports whether Slurm hides something from users. It reports true before the configuration is known.
func private(c *state.Core, what string) bool {
	return c.SlurmConfig.Version == "" || c.SlurmConfig.Private(what)
}

// shown converts the times of a job to Slurm's clock.
func shown(c *state.Core, a api.Job) api.Job {
	if c.Skew == 0 {
		return a
	}
	a.Submit, a.Start, a.End, a.NextChange = c.Wall(a.Submit), c.Wall(a.Start), c.Wall(a.End), c.Wall(a.NextChange)
	if a.Moldable != nil {
		m := *a.Moldable
		m.Alternatives = slices.Clone(m.Alternatives)
		for i, o := range m.Alternatives {
			m.Alternatives[i].Start, m.Alternatives[i].End = c.Wall(o.Start), c.Wall(o.End)
		}
		a.Moldable = &m
	}
	for _, spans := range []*[]api.Span{&a.Plan, &a.Past} {
		*spans = slices.Clone(*spans)
		for i, p := range *spans {
			(*spans)[i].Start, (*spans)[i].End = c.Wall(p.Start), c.Wall(p.End)
		}
	}
	return a
}

// Describe returns a job as evosqueue shows it, by the core's clock.
func Describe(c *state.Core, j *state.Job) api.Job {
	nodes := j.Nodes()
	a := api.Job{ID: j.SlurmID, Name: j.Name, User: j.User, UID: j.UID, Account: j.Account, Partition: slurm.PartitionShown(c, j), State: string(j.State),
		Reason: c.Why(j), EndState: j.EndState, Drive: j.Drive, Claim: j.Claim, ExpandLimit: plan.ExpandLimit(c, j).String(), Profile: profileText(j),
		Step: j.Step, Steps: len(j.Profile), Nodes: len(nodes), NodeList: slurmctl.CompressNodes(nodes), Priority: j.Priority,
		Submit: j.Submitted, Start: j.Started, End: j.Ended, HeldIdle: j.IdleHeld(), Plan: planSpans(j), Past: []api.Span{}}
	a.CPUFreq = j.Display.CPUFreq
	if a.Array, a.ArrayTask = j.Array, j.Task; a.Array != 0 && j.State != row.Ended {
		a.ArrayLimit = c.Arrays[slurmctl.JobID(j.Array)].Most
	}
	for _, p := range j.Past {
		a.Past = append(a.Past, api.Span{Step: p.Step, Start: p.Start, End: p.End, Nodes: p.Nodes, NodeList: p.NodeList})
	}
	a.Moldable = plan.MoldableShown(c, j)
	for _, one := range j.Components {
		a.Components = append(a.Components, componentShown(j, one))
	}
	if m := j.Malleable; m != nil {
		a.Bounds = request.BoundsOf(j.Profile, m.Max).String()
	}
	for _, o := range j.Offers {
		a.Offers = append(a.Offers, lend.OfferShown(c, refit.Offer(o)))
	}
	a.Progress = follow.ProgressShown(c, j)
	if j.State == row.Ended {
		a.Nodes, a.NodeList = 0, ""
		return a
	}
	a.Lent = lend.LentText(j)
	if len(j.Plan) > 0 && !j.Lapsed() {
		if a.Start.IsZero() {
			a.Start = a.Plan[0].Start
		}
		a.End = a.Plan[len(a.Plan)-1].End
	}
	switch next := j.Next(); {
	case next != nil:
		a.NextChange, a.NextNodes = time.Unix(next.Start, 0), j.Profile[j.Step].Nodes
	case len(j.Plan) > 0 && !j.Lapsed():
		a.NextChange = a.End
	}
	if a.Reason == "" && j.State == row.Queued && len(j.Plan) > 0 {
		a.Reason = "planned"
	}
	if follow.IsSuspended(j) {
		a.State = api.Suspended
	}
	if a.Reason == "" {
		a.Reason = j.Short
	}
	return a
}

// componentShown returns a component as evosqueue shows it.
func componentShown(j *state.Job, one row.Component) api.JobComponent {
	var p planner.Profile
	for i, n := range one.Sizes {
		switch last := len(p) - 1; {
		case n == 0 || i >= len(j.Profile): // it is over
		case last >= 0 && p[last].Nodes == n:
			p[last].Duration += j.Profile[i].Duration
		default:
			p = append(p, planner.Step{Duration: j.Profile[i].Duration, Nodes: n})
		}
	}
	shown := api.JobComponent{Name: one.Name, Profile: p.String()}
	if j.Runs() {
		shown.Nodes, shown.NodeList = len(one.Nodes), slurmctl.CompressNodes(one.Nodes)
	}
	return shown
}

// profileText returns the profile as text, and keeps the one with CPU frequencies beside it.
func profileText(j *state.Job) string {
	if d := &j.Display; !msg.Same(d.Profile, j.Profile) || d.Text == "" {
		d.Profile, d.Text, d.CPUFreq = j.Profile, j.Profile.String(), request.WithFrequencies(j.Profile, j.Frequencies)
	}
	return j.Display.Text
}

// planSpans returns the plan for display. The list must not be modified.
func planSpans(j *state.Job) []api.Span {
	d := &j.Display
	if d.Spans != nil && msg.Same(d.Plan, j.Plan) && msg.Same(d.Sizes, j.Profile) {
		return d.Spans
	}
	spans := make([]api.Span, 0, len(j.Plan))
	for i, p := range j.Plan {
		spans = append(spans, api.Span{Step: i + 1, Start: time.Unix(p.Start, 0), End: time.Unix(p.End, 0),
			Nodes: j.Profile[i].Nodes, NodeList: slurmctl.CompressNodes(p.Nodes)})
	}
	d.Plan, d.Sizes, d.Spans = j.Plan, j.Profile, spans
	return spans
}

// Problem returns the current queue as a problem for any strategy, or nil before the first poll of Slurm. A
// job of several partitions is in the partition of its current plan, or in the first one.
func Problem(c *state.Core) *msg.Problem {
	if c.Snapshot == nil {
		return nil
	}
	p := refit.Problem(c, c.Snapshot)
	for i := range p.Batches {
		b := &p.Batches[i]
		at := max(b.Present, 0)
		b.Places = b.Places[at : at+1]
	}
	return p
}
