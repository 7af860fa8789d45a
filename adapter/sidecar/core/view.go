package core

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/internal/config"
	"github.com/evoslurm/evoslurm/adapter/job/request"
	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
	"github.com/evoslurm/evoslurm/planner"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// View holds what the sidecar shows about itself. A step makes it, and it never changes.
type View struct {
	Status    api.Status // without the strategy's name and note
	Jobs      []api.Job  // not ended
	Ended     []api.Job
	Owners    map[uint32]uint32 // Slurm id → uid
	Coming    map[uint32]bool   // Slurm ids of jobs that will be adopted
	Operators config.Operators
	SlurmUser uint32
	Reading   api.Reading
	AsSlurm   bool // users with more rights in Slurm may read more
	Private   Private
	Base      map[uint32]uint32 // Slurm id of a companion or link → base job

	Holds     int // number in Slurm
	HeldNodes int // nodes in these holds
	IdleNodes int // nodes of these that are idle and kept from waiting jobs
}

// Private holds what Slurm's PrivateData hides from users who are not operators, besides jobs.
type Private struct{ Nodes, Partitions, Reservations bool }

// View returns the current state. O(jobs).
func (c *Core) View() *View {
	v := &View{Owners: map[uint32]uint32{}, Coming: map[uint32]bool{}, Base: map[uint32]uint32{}, Operators: c.cfg.Operators, SlurmUser: c.slurmUser, Reading: c.reading(), AsSlurm: c.cfg.Read == config.ReadSlurm,
		Private: Private{Nodes: c.private("nodes"), Partitions: c.private("partitions"), Reservations: c.private("reservations")}}
	v.Status = c.status()
	further := map[uint32][]uint32{}
	for id, j := range c.byID {
		if uint32(id) != j.SlurmID {
			further[j.SlurmID] = append(further[j.SlurmID], uint32(id))
		}
	}
	show := func(j *job) api.Job {
		a := c.shown(c.describe(j))
		a.SlurmJobs = slices.Sorted(slices.Values(further[j.SlurmID]))
		return a
	}
	for j := range c.each(c.active) {
		v.Jobs = append(v.Jobs, show(j))
	}
	for _, id := range slices.Sorted(maps.Keys(c.refused)) {
		r := c.shown(c.refused[id].Job)
		if c.setAside(id, c.refused[id].Submit) != "" {
			v.Status.SetAside++
		}
		v.Jobs = append(v.Jobs, r)
		v.Owners[r.ID], v.Base[r.ID] = r.UID, r.ID
	}
	for _, id := range slices.Sorted(maps.Keys(c.asked)) {
		read := c.asked[id]
		if why := read.why(); why != nil && c.isComing(id) && c.snapshot.byID[id] != nil {
			v.Jobs = append(v.Jobs, c.shown(stranger(c.snapshot.byID[id], "is asked about again at "+c.clockText(read.again)+": "+why.Error())))
			v.Base[uint32(id)] = uint32(id)
		}
	}
	for _, j := range c.ended {
		v.Ended = append(v.Ended, show(j))
	}
	if c.snapshot != nil {
		v.Holds, v.HeldNodes = c.countHolds()
		v.IdleNodes = c.prices.nodes
	}
	for _, j := range slices.Concat(c.ended, c.active) {
		v.Owners[j.SlurmID], v.Base[j.SlurmID] = j.UID, j.SlurmID
	}
	for id, uid := range c.coming {
		v.Owners[uint32(id)], v.Coming[uint32(id)] = uid, c.isComing(id)
	}
	for id, j := range c.byID {
		v.Owners[uint32(id)], v.Base[uint32(id)] = j.UID, j.SlurmID
	}
	return v
}

// status returns the sidecar's state, without the number of jobs set aside.
func (c *Core) status() api.Status {
	drive, why := c.siteDrive(c.factsWith(false))
	status := api.Status{Version: c.site.Version, Cluster: c.slurmConfig.ClusterName, SlurmVersion: c.slurmConfig.Version,
		Started: c.wall(c.started), SlurmCalls: c.cycleCalls, PollPause: c.pace.pause.Seconds(), Drive: string(drive), DriveReason: why}
	if c.snapshot != nil {
		status.Nodes, status.LastCycle = len(c.snapshot.nodes), c.wall(c.snapshot.taken)
	}
	if c.twin != nil {
		status.LastError = c.twin.Error()
	} else if c.lastErr != nil {
		status.LastError = "its last poll of Slurm failed: " + c.lastErr.Error()
	}
	return status
}

// countHolds counts the holds in Slurm that can be given up, and their nodes.
func (c *Core) countHolds() (holds, nodes int) {
	held := set{}
	for _, r := range c.snapshot.reservations {
		if _, stuck := c.stuckHolds[r.Name]; stuck {
			continue
		}
		if _, ours := parseHold(r); ours {
			holds++
			held.add(r.Nodes)
		}
	}
	return holds, len(held)
}

// Job returns what View shows of one active job, or false if there is none. O(jobs).
func (c *Core) Job(id slurmctl.JobID) (api.Job, bool) {
	for j := range c.each(c.active) {
		if j.SlurmID == uint32(id) {
			return c.shown(c.describe(j)), true
		}
	}
	return api.Job{}, false
}

// reading returns the site's rule for who may read. Slurm's own rule is not known before its configuration is.
func (c *Core) reading() api.Reading {
	switch {
	case c.cfg.Read == config.ReadEverybody:
		return api.Anybody
	case c.cfg.Read == config.ReadOwn || c.private("jobs"):
		return api.OwnJobs
	}
	return api.AllJobs
}

// private reports whether Slurm hides something from users. It reports true before the configuration is known.
func (c *Core) private(what string) bool {
	return c.slurmConfig.Version == "" || c.slurmConfig.Private(what)
}

// shown converts the times of a job to the machine's clock.
func (c *Core) shown(a api.Job) api.Job {
	if c.skew == 0 {
		return a
	}
	a.Submit, a.Start, a.End, a.NextChange = c.wall(a.Submit), c.wall(a.Start), c.wall(a.End), c.wall(a.NextChange)
	if a.Moldable != nil {
		m := *a.Moldable
		m.Alternatives = slices.Clone(m.Alternatives)
		for i, o := range m.Alternatives {
			m.Alternatives[i].Start, m.Alternatives[i].End = c.wall(o.Start), c.wall(o.End)
		}
		a.Moldable = &m
	}
	for _, spans := range []*[]api.Span{&a.Plan, &a.Past} {
		*spans = slices.Clone(*spans)
		for i, p := range *spans {
			(*spans)[i].Start, (*spans)[i].End = c.wall(p.Start), c.wall(p.End)
		}
	}
	return a
}

// describe returns a job as evosqueue shows it, by the core's clock.
func (c *Core) describe(j *job) api.Job {
	nodes := j.nodes()
	a := api.Job{ID: j.SlurmID, Name: j.Name, User: j.User, UID: j.UID, Account: j.Account, Partition: c.partitionShown(j), State: string(j.State),
		Reason: c.why(j), EndState: j.EndState, Drive: j.Drive, Claim: j.Claim, ExpandLimit: c.expandLimit(j).String(), Profile: j.profileText(),
		Step: j.Step, Steps: len(j.Profile), Nodes: len(nodes), NodeList: slurmctl.CompressNodes(nodes), Priority: j.priority,
		Submit: j.Submitted, Start: j.Started, End: j.Ended, HeldIdle: j.heldIdle(), Plan: j.planSpans(), Past: []api.Span{}}
	for _, p := range j.past {
		a.Past = append(a.Past, api.Span{Step: p.Step, Start: p.Start, End: p.End, Nodes: p.Nodes, NodeList: p.NodeList})
	}
	a.Moldable = c.moldableShown(j)
	if m := j.Malleable; m != nil {
		a.Bounds = request.BoundsOf(j.Profile, m.Max).String()
	}
	for _, o := range j.Offers {
		a.Offers = append(a.Offers, c.offerShown(offer(o)))
	}
	a.Progress = c.progressShown(j)
	if j.State == row.Ended {
		a.Nodes, a.NodeList = 0, ""
		return a
	}
	a.Lent = j.lentText()
	if len(j.plan) > 0 && !j.lapsed() {
		if a.Start.IsZero() {
			a.Start = a.Plan[0].Start
		}
		a.End = a.Plan[len(a.Plan)-1].End
	}
	switch next := j.next(); {
	case next != nil:
		a.NextChange, a.NextNodes = time.Unix(next.start, 0), j.Profile[j.Step].Nodes
	case len(j.plan) > 0 && !j.lapsed():
		a.NextChange = a.End
	}
	if a.Reason == "" && j.State == row.Queued && len(j.plan) > 0 {
		a.Reason = "planned"
	}
	if j.isSuspended() {
		a.State = api.Suspended
	}
	if a.Reason == "" {
		a.Reason = j.short
	}
	return a
}

// display caches what is shown of a job's profile and plan, with the values that it was made from: every step
// makes views, and few plans change.
type display struct {
	profile planner.Profile
	text    string
	plan    []plannedStep
	sizes   planner.Profile
	spans   []api.Span
}

// profileText returns the profile as text.
func (j *job) profileText() string {
	if d := &j.display; !same(d.profile, j.Profile) || d.text == "" {
		d.profile, d.text = j.Profile, j.Profile.String()
	}
	return j.display.text
}

// planSpans returns the plan for display. The list must not be modified.
func (j *job) planSpans() []api.Span {
	d := &j.display
	if d.spans != nil && same(d.plan, j.plan) && same(d.sizes, j.Profile) {
		return d.spans
	}
	spans := make([]api.Span, 0, len(j.plan))
	for i, p := range j.plan {
		spans = append(spans, api.Span{Step: i + 1, Start: time.Unix(p.start, 0), End: time.Unix(p.end, 0),
			Nodes: j.Profile[i].Nodes, NodeList: slurmctl.CompressNodes(p.nodes)})
	}
	d.plan, d.sizes, d.spans = j.plan, j.Profile, spans
	return spans
}

// allocation returns what a job holds now, with the CPUs of its nodes: evolving jobs take whole nodes.
func (c *Core) allocation(j *job) api.Allocation {
	a := api.Allocation{Ready: true, Job: j.SlurmID, Step: j.Step, Steps: len(j.Profile), Drive: j.Drive, Nodes: len(j.nodes()), Parts: []api.Part{}}
	for _, p := range j.held {
		part := api.Part{Job: uint32(p.ID), NodeList: p.Nodes, CPUs: make([]int, len(p.Nodes))}
		for i, name := range p.Nodes {
			if c.snapshot != nil {
				if n, ok := c.snapshot.index[name]; ok {
					part.CPUs[i] = c.snapshot.nodes[n].CPUs
				}
			}
		}
		a.Parts = append(a.Parts, part)
	}
	a.Coming, a.Demand = c.comingStep(j), c.demanded(j)
	return a
}

// comingStep returns what the job's next step brings and takes, or nil after the last step.
func (c *Core) comingStep(j *job) *api.Coming {
	if j.Step < 1 || j.last() {
		return nil
	}
	a := &api.Coming{Step: j.Step + 1, Nodes: j.Profile[j.Step].Nodes}
	if next := j.next(); next != nil {
		a.At, a.Arriving, a.Leaving = c.wall(time.Unix(next.start, 0)), Without(next.nodes, j.nodes()), Without(j.nodes(), next.nodes)
		if !j.mode.carriesNodes {
			a.Arriving, a.Leaving = next.nodes, j.nodes()
		}
	}
	return a
}

// jobNumber names a job in messages.
func jobNumber(id uint32) string {
	return strings.TrimSpace("job " + strconv.FormatUint(uint64(id), 10))
}
