package slurmsim

import (
	"cmp"
	"slices"
	"time"

	"github.com/evoslurm/evoslurm/slurmctl"
)

// loop models slurmctld's main loop, which looks once a second for work (_slurmctld_background of
// controller.c), and the main scheduler, which also runs whenever a job has left its nodes. The
// model looks only in seconds with work.
type loop struct {
	asked   bool          // a change requests the main scheduler
	last    time.Duration // when the loop last called it
	full    time.Duration // the same, for the whole queue
	ran     time.Duration // its last run, whatever caused it
	queued  bool          // its next run is on the agenda
	whole   bool          // the next run covers the whole queue
	limits  time.Duration // last check of time limits
	at      time.Duration // next look on the agenda; 0 if none
	version uint64        // of the cluster's state
	reasons uint64        // counts changes of reasons in meaning
	seen    uint64        // version seen by the last full pass
	quiet   time.Time     // until when a pass over the same state does nothing
	looked  time.Duration // last check for reservations that begin or end
}

// tick is how often slurmctld's loop looks.
const tick = time.Second

func (l *loop) start() { *l = loop{version: l.version + l.reasons + 1} }

// kick requests the main scheduler at one of the loop's next looks.
func (c *Cluster) kick() {
	c.loop.asked = true
	c.wake()
}

// wake puts the loop's next useful look on the agenda.
func (c *Cluster) wake() {
	if c.down {
		return
	}
	l := &c.loop
	next := l.limits + limitsEvery // at the latest
	if next <= c.now {
		next = c.now + 1
	}
	sooner := func(t time.Duration) { next = min(next, t) }
	idle := true
	if l.asked {
		idle = false
		sooner(l.last + c.options.SchedDelay)
	}
	if len(c.pending) > 0 {
		idle = false
		sooner(l.full + c.options.SchedInterval)
	}
	if c.options.PowerSaving.on() {
		idle = false
		sooner(c.now + powerLook)
	}
	if idle && len(c.active) == 0 && len(c.reservations) == 0 {
		return
	}
	if t := c.reservationTurn(); t > 0 {
		sooner(t)
	}
	next = max(next, c.now+1)
	phase := c.options.LoopPhase
	next = (next - phase + tick - 1).Truncate(tick) + phase
	if l.at > 0 && l.at >= c.now && l.at <= next { // a look due now has not run yet
		return
	}
	l.at = next
	c.at(next, func() {
		if l.at == next && c.now == next {
			l.at = 0
			c.look()
		}
	})
}

// look is one look of the loop.
func (c *Cluster) look() {
	if c.down {
		return
	}
	l := &c.loop
	if c.now-l.limits >= limitsEvery {
		l.limits = c.now.Truncate(limitsEvery)
		c.limits()
	}
	c.powerTurn()
	c.reservationsDue()
	switch {
	case c.now-l.full >= c.options.SchedInterval:
		l.full, l.last, l.asked = c.now, c.now, false
		if c.restless() {
			c.request(true)
		}
	case l.asked && c.now-l.last >= c.options.SchedDelay:
		l.last, l.asked = c.now, false
		c.request(false)
	}
	c.wake()
}

// restless reports whether a pass over the whole queue may find something new.
func (c *Cluster) restless() bool {
	l := &c.loop
	if len(c.pending) == 0 {
		return false
	}
	return l.version != l.seen || c.options.MultifactorAge > 0 || !c.Now().Before(l.quiet)
}

// schedule requests a run of the main scheduler as soon as sched_min_interval allows.
func (c *Cluster) schedule() { c.request(false) }

func (c *Cluster) request(whole bool) {
	l := &c.loop
	l.whole = l.whole || whole
	if l.queued || c.down {
		return
	}
	l.queued = true
	then := c.now
	if l.ran > 0 {
		then = max(then, l.ran+c.options.SchedMinInterval)
	}
	c.at(then, func() {
		l.queued = false
		if c.down {
			return
		}
		whole := l.whole
		l.whole = false
		c.mainPass(whole)
		l.ran = c.now
	})
}

// sorted returns the pending jobs, most urgent first (sort_job_queue2).
func (c *Cluster) sorted() []*job {
	if c.options.MultifactorAge > 0 {
		for _, j := range c.pending {
			c.age(j)
		}
		c.disorder = true
	}
	if c.disorder {
		c.disorder = false
		slices.SortStableFunc(c.pending, c.order)
	}
	return c.pending
}

// queue returns those jobs in all that are themselves ready to start (build_job_queue).
func (c *Cluster) queue(all []*job) []*job {
	if !c.special {
		return append(all, c.sorted()...)
	}
	for _, j := range c.sorted() {
		if c.independent(j) && (len(j.parts) > 0 || c.lets(j)) {
			all = append(all, j)
		}
	}
	return all
}

// order compares two jobs by urgency.
func (c *Cluster) order(a, b *job) int {
	if in, other := a.Reservation != "", b.Reservation != ""; in != other {
		if in {
			return -1
		}
		return 1
	}
	return cmp.Or(cmp.Compare(b.part.Tier, a.part.Tier), cmp.Compare(b.Priority, a.Priority),
		a.SubmitTime.Compare(b.SubmitTime), cmp.Compare(a.ID, b.ID))
}

// age updates the job's priority under priority/multifactor: it grows from the time at which the
// job became eligible.
func (c *Cluster) age(j *job) {
	if c.options.MultifactorAge == 0 || j.Priority == 0 {
		return
	}
	since := j.SubmitTime
	if j.request.Begin.After(since) {
		since = j.request.Begin
	}
	old := min(max(c.Now().Sub(since).Seconds()/c.options.MaxAge.Seconds(), 0), 1)
	j.Priority = uint64(max(int64(float64(c.options.MultifactorAge)*old)-int64(j.Nice), 1))
}

// verdict is why a job does not start, or that it can.
type verdict int

const (
	fine       verdict = iota
	busy               // its nodes are busy
	reserved           // other jobs' reservations are in its way
	notAvail           // its nodes are down, or there are too few
	notUsable          // its reservation cannot be used
	overLimits         // a limit blocks it
)

// mainPass is a pass of the main scheduler (_schedule of job_scheduler.c). It starts jobs in order
// until a job does not get its nodes. Then the other jobs of that partition wait, and no job gets
// the partition's nodes.
func (c *Cluster) mainPass(whole bool) {
	l := &c.loop
	if whole {
		l.seen, l.quiet = l.version, c.nextTurn()
	}
	c.room.queue = append(c.room.queue[:0], c.sorted()...)
	p := pass{Cluster: c, whole: whole, avail: append(c.room.avail[:0], c.up...)}
	c.room.avail = p.avail
	for _, j := range c.room.queue {
		if len(p.stuck) == len(c.partitions) && !c.watched && len(c.reservations) == 0 {
			return // no job can start any more, and reasons are not watched
		}
		if j.State != slurmctl.Pending || !c.independent(j) {
			continue
		}
		if len(j.parts) == 0 {
			p.try(j)
		} else {
			j.somewhere(func() bool { return p.try(j) })
		}
		if p.enough() {
			return
		}
	}
}

// pass is a pass of the main scheduler.
type pass struct {
	*Cluster
	whole  bool
	avail  nodeSet
	stuck  []*partition
	full   []string // reservations
	tested int
}

// enough reports whether the pass stops trying jobs.
func (p *pass) enough() bool { return !p.whole && p.tested > p.options.QueueDepth+1 }

// try starts a job in its partition if it can, or all tasks of an array for which there is room.
// Otherwise other jobs may have to wait behind it. It reports whether the job started.
func (p *pass) try(j *job) bool {
	if !p.lets(j) {
		return false
	}
	for tasks := true; tasks && j.State == slurmctl.Pending; {
		tasks = false
		if p.tested++; p.enough() {
			return false
		}
		switch {
		case j.Reservation != "":
			if slices.Contains(p.full, j.Reservation) {
				p.why(j, "Priority")
				continue
			}
		case slices.Contains(p.stuck, j.part):
			if j.Reason == "None" || j.Reason == "Resources" {
				p.why(j, "Priority")
			}
			continue
		}
		fails := false
		if p.avail.common(j.part.set) < j.NumNodes {
			p.why(j, "Resources")
			fails = true
		} else {
			more := j.ArrayTasks > 1
			switch p.tryNow(j, p.avail) {
			case fine:
				tasks = more
				continue
			case busy:
				fails = true
			case reserved, notUsable:
				if r := p.reservation(j.Reservation); r != nil {
					p.avail.minus(r.set)
				}
			}
			if j.required != nil && j.required.count() >= j.NumNodes {
				fails = false
				p.avail.minus(j.required)
			}
		}
		if fails && j.Reservation != "" {
			fails = false
			p.full = append(p.full, j.Reservation)
		}
		if fails {
			p.stuck = append(p.stuck, j.part)
			p.avail.minus(j.part.set)
		}
	}
	return j.State != slurmctl.Pending
}

// nextTurn returns when time alone will change something: a job's begin time, or a reservation's
// start or end.
func (c *Cluster) nextTurn() time.Time {
	now, next := c.Now(), c.Now().Add(forever)
	sooner := func(t time.Time) {
		if t.After(now) && t.Before(next) {
			next = t
		}
	}
	if c.special {
		for _, j := range c.pending {
			sooner(j.request.Begin)
		}
	}
	for _, r := range c.reservations {
		sooner(r.Start)
		sooner(r.End)
	}
	return next
}

// independent reports whether a pending job waits only for nodes: it is not held, has no later
// begin time, and depends on no other job. Otherwise it sets the reason.
func (c *Cluster) independent(j *job) bool {
	if j.Priority == 0 {
		return false
	}
	if len(j.request.After) > 0 && !c.dependencies(j) {
		return false
	}
	if b := j.request.Begin; !b.IsZero() && b.After(c.Now()) {
		c.why(j, "BeginTime")
		return false
	}
	switch j.Reason {
	case "BeginTime", "Dependency", "JobHeldUser", "JobHeldAdmin":
		c.why(j, "None")
	}
	return true
}

// dependencies reports whether a job's dependencies are met.
func (c *Cluster) dependencies(j *job) bool {
	for _, d := range j.request.After {
		other := c.jobs[d.Job]
		switch {
		case other == nil:
			continue // ended long ago
		case !other.Ended():
			c.why(j, "Dependency")
			return false
		case d.Kind == "afterok" && other.State != slurmctl.Completed, d.Kind == "afternotok" && other.State == slurmctl.Completed:
			c.why(j, "DependencyNeverSatisfied")
			if j.request.KillOnInvalidDep {
				c.after(0, func() {
					if j.State == slurmctl.Pending {
						c.finish(j, slurmctl.Cancelled)
					}
				})
			}
			return false
		}
	}
	j.request.After, j.Dependency = nil, ""
	return true
}

// lets reports whether the job's partition admits it (job_limits_check).
func (c *Cluster) lets(j *job) bool {
	if why := j.part.against(j); why != "" {
		c.why(j, why)
		return false
	}
	if j.Reason == "PartitionDown" || j.Reason == "PartitionNodeLimit" || j.Reason == "PartitionTimeLimit" {
		c.why(j, "None")
	}
	return true
}

// against returns why the partition rejects a job, or "".
func (p *partition) against(j *job) string {
	switch {
	case !p.Up:
		return "PartitionDown"
	case j.NumNodes > len(p.Nodes), p.MaxNodes > 0 && j.NumNodes > p.MaxNodes, j.NumNodes < p.MinNodes:
		return "PartitionNodeLimit"
	case p.MaxTime > 0 && (j.TimeLimit > p.MaxTime || j.TimeLimit == slurmctl.Unlimited):
		return "PartitionTimeLimit"
	}
	return ""
}

// tryNow starts a job on some of these nodes if they are free (select_nodes of node_scheduler.c).
func (c *Cluster) tryNow(j *job, avail nodeSet) verdict {
	if reason := c.limited(j); reason != "" {
		c.why(j, reason)
		return overLimits
	}
	if slurmctl.KindOf(j.Reason) == slurmctl.LimitReason {
		c.why(j, "None")
	}
	usable, overlap, _, why := c.permitted(j, c.Now(), false)
	if why != fine {
		switch why {
		case busy:
			c.why(j, "Resources")
		case reserved:
			c.why(j, "ReqNodeNotAvail, Reserved for maintenance")
		default:
			c.why(j, "Reservation")
		}
		return why
	}
	c.within(j, usable)
	ever := usable // the nodes on which it could run if no other job or reservation had them
	if j.Reservation == "" && overlap {
		ever = slices.Clone(j.part.set)
		c.within(j, ever)
	}
	if ever.count() < j.NumNodes { // impossible in the current state
		if overlap {
			c.why(j, "Reservation")
			return reserved
		}
		c.why(j, "Resources")
		return notAvail
	}
	usable.and(avail)
	if j.required != nil && !avail.holds(j.required) {
		c.why(j, "ReqNodeNotAvail, May be reserved for other job")
		return notAvail
	}
	up := usable.count()
	usable.minus(c.completing)
	usable.minus(c.resuming)
	if set, ok := c.choose(j, &c.usage, usable); ok {
		c.startJob(j, set.list())
		return fine
	}
	if c.makeRoom(j, usable) {
		return busy
	}
	if j.whole() {
		usable.and(c.usage.idle)
	} else {
		usable.minus(c.usage.sole)
	}
	if usable.count() == up && up < j.NumNodes { // none is busy
		c.why(j, "ReqNodeNotAvail, May be reserved for other job")
		return notAvail
	}
	c.why(j, "Resources")
	return busy
}

// within keeps those nodes of the job's partition that have what it requests.
func (c *Cluster) within(j *job, nodes nodeSet) {
	nodes.and(j.part.set)
	if j.excluded != nil {
		nodes.minus(j.excluded)
	}
	if j.Features == "" && !c.scarce(j) {
		return
	}
	for n := nodes.next(0); n >= 0; n = nodes.next(n + 1) {
		if j.Features != "" && !c.features(n, j.Features) || !c.capable(j, n) {
			nodes.drop(n)
		}
	}
}

// first reports whether no other pending job precedes this one (_top_priority): Slurm tries such a
// job when salloc submits it. Jobs in reservations are not compared with others.
func (c *Cluster) first(j *job) bool {
	for _, o := range c.pending {
		if o == j || o.Reservation != j.Reservation || !c.independent(o) {
			continue
		}
		switch {
		case o.part == j.part:
		case !o.part.set.overlaps(j.part.set), o.part.Tier < j.part.Tier:
			continue
		case o.part.Tier > j.part.Tier:
			return false
		}
		if o.Priority > j.Priority && c.lets(o) {
			return false
		}
	}
	return true
}

// limitsEvery is how often slurmctld checks for jobs and reservations that have ended.
const limitsEvery = 30 * time.Second

// limits ends jobs that are past their time limit or their reservation's end.
func (c *Cluster) limits() {
	if c.options.PowerSaving.on() {
		c.configured()
	}
	now := c.Now()
	if all := c.byLimit(); len(c.reservations) == 0 && (len(all) == 0 || all[0].ends > now.Unix()) {
		return
	}
	for _, j := range slices.Clone(c.active) {
		if j.State != slurmctl.Running {
			continue
		}
		r := c.reservation(j.Reservation)
		if !j.EndTime.IsZero() && !now.Before(j.EndTime) || r != nil && !r.has("FLEX") && now.After(r.End) {
			c.finish(j, slurmctl.TimedOut)
		}
	}
	c.dropReservations()
}
