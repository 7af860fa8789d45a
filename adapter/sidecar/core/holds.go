package core

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// hold describes a reservation for the nodes that a job gets at the start of a step.
type hold struct {
	job   *job
	step  int // 1-based
	nodes []string
	from  []int64  // last time the job has each node before this step, Unix seconds; 0 if never
	users []string // users that may use the hold
	start int64    // Unix seconds
	end   int64
}

// holdFlags are the flags of all holds. Our own node mapping has chosen the nodes. It considers the
// jobs that run there now (IGNORE_JOBS) and all other holds. A node may be held for several jobs, one
// after another, and a job's time limit is later than the planned time to give a node back. With
// OVERLAP, Slurm lets holds share nodes, and starts a job in its own hold although other holds follow.
// Administrators' reservations do not obstruct them. When a hold ends, jobs that wait for it must
// not become held (NO_HOLD_JOBS_AFTER_END).
var holdFlags = []string{"IGNORE_JOBS", "OVERLAP", "NO_HOLD_JOBS_AFTER_END"}

// startFlags are the flags of a hold to start in. Such a hold is long. With PURGE_COMP, Slurm deletes
// it once it has begun and has had no job for five minutes. So nodes are not held long for nothing
// while the sidecar is down.
var startFlags = append(slices.Clip(holdFlags), "PURGE_COMP=5")

// FlagsOfStuckHolds are added to a hold that a companion stays in, so that the hold ends soon after the companion.
var FlagsOfStuckHolds = startFlags[len(holdFlags):]

// toStartIn reports whether a Slurm job begins in the hold. In other holds, running jobs grow.
func (h hold) toStartIn() bool { return h.step == 1 || h.job.mode.stepsAreJobs }

func (h hold) flags() []string {
	if h.toStartIn() {
		return startFlags
	}
	return holdFlags
}

// Names of holds and expanders contain job, step and attempt (evo_4711_2_1), so that the sidecar finds
// them after a crash. Users can also choose such names. The numbers are limited so that the name
// with the next number remains valid.
const mostDigits, mostIDDigits = 9, 10

type ownName struct {
	job     slurmctl.JobID
	step    int
	attempt int
}

func (n ownName) String() string { return fmt.Sprintf("evo_%d_%d_%d", n.job, n.step, n.attempt) }

func parseHoldName(name string) (ownName, bool) {
	text, ours := strings.CutPrefix(name, "evo_")
	if !ours {
		return ownName{}, false // most names
	}
	job, text, _ := strings.Cut(text, "_")
	of, try, _ := strings.Cut(text, "_")
	if !digits(job, mostIDDigits) || !digits(of, mostDigits) || !digits(try, mostDigits) {
		return ownName{}, false
	}
	id, err1 := strconv.ParseUint(job, 10, 32)
	step, err2 := strconv.Atoi(of)
	attempt, err3 := strconv.Atoi(try)
	if errors.Join(err1, err2, err3) != nil {
		return ownName{}, false
	}
	return ownName{slurmctl.JobID(id), step, attempt}, true
}

// digits reports whether a text is a number with at most a given number of digits.
func digits(text string, most int) bool {
	return text != "" && len(text) <= most && strings.Trim(text, "0123456789") == ""
}

// parseHold returns whose hold a reservation is. A reservation of the site that only has such a
// name lacks the flags.
func parseHold(r slurmctl.Reservation) (ownName, bool) {
	own, ours := parseHoldName(r.Name)
	return own, ours && slices.Contains(r.Flags, "IGNORE_JOBS") && slices.Contains(r.Flags, "OVERLAP")
}

// wantedHolds lists the holds that the plan needs and the site's shares allow. These are holds of
// starts and growths planned within the next hold_ahead, and of growths that a job already waits
// for. Later starts and growths are held when they come within hold_ahead.
func (c *Core) wantedHolds(now int64) []hold {
	var all []hold
	ahead := now + c.holdAhead()
	for j := range c.each(c.active) {
		if h, ok := c.offerHold(j, now); ok {
			all = append(all, h)
		}
		switch {
		case j.kept != nil:
		case j.State == row.Waiting && j.suspendedLong(c.now, c.cfg.Grace): // the nodes would not be used
		case j.runs(), j.State == row.Starting, j.State == row.Queued && len(j.plan) > 0 && j.plan[0].start <= ahead:
			for _, h := range c.holdsOf(j, now) {
				if h.start <= ahead || h.awaited() {
					all = append(all, h)
				}
			}
		}
	}
	// running jobs first, then by start
	slices.SortStableFunc(all, func(a, b hold) int {
		if a.job.runs() != b.job.runs() {
			if a.job.runs() {
				return -1
			}
			return 1
		}
		return cmp.Compare(a.start, b.start)
	})
	return c.allowed(all, now)
}

// awaited reports whether the job already waits for the hold's nodes.
func (h hold) awaited() bool { return h.job.State == row.Waiting && h.step == h.job.Step+1 }

// holdsOf lists a job's holds: one for each step at which it gets nodes.
func (c *Core) holdsOf(j *job, now int64) []hold {
	gains := j.gained()
	if len(gains) == 0 {
		return nil
	}
	all := make([]hold, 0, len(gains))
	grace := int64(c.cfg.Grace / time.Second)
	for _, g := range gains {
		i := g.step - 1
		if j.lastEnd > 0 && j.plan[i].start >= j.lastEnd { // its time limit ends before
			continue
		}
		end := g.end
		h := hold{job: j, step: g.step, nodes: g.nodes, from: g.from, start: j.plan[i].start}
		if h.toStartIn() {
			end = max(end, h.start+late(h.start, now)+c.limitOf(j, i))
		}
		h.end = max(end, now) + max(grace, 60)
		h.users = c.holdUsers(h)
		all = append(all, h)
	}
	return all
}

// gain holds the nodes that a plan brings a job at a step.
type gain struct {
	step  int // 1-based
	nodes []string
	end   int64   // Unix second at which the first of these nodes is planned to be released
	from  []int64 // last time the job has each node before this step, Unix seconds; 0 if never
}

// gains caches the result of gained for a plan, a step and the held parts.
type gains struct {
	all  []gain
	plan []plannedStep
	step int
	held []Part
}

// gained lists the nodes that the plan brings the job from its current step on. It caches the result.
func (j *job) gained() []gain {
	m := &j.gains
	if m.step == j.Step && same(m.plan, j.plan) && same(m.held, j.held) {
		return m.all
	}
	*m = gains{plan: j.plan, step: j.Step, held: j.held}
	had := map[string]int64{} // last time the job has each node, so far
	for i := max(j.Step-1, 0); i < len(j.plan); i++ {
		added := j.plan[i].nodes
		switch {
		case i < j.Step:
			added = nil
		case !j.mode.carriesNodes: // every step gets all its nodes
		case i == j.Step && i > 0:
			added = Without(added, j.nodes())
		case i > 0:
			added = Without(added, j.plan[i-1].nodes)
		}
		if len(added) > 0 {
			g := gain{step: i + 1, nodes: added, end: j.plan[i].end, from: make([]int64, len(added))}
			for k, name := range added {
				g.from[k] = had[name]
			}
			m.all = append(m.all, g)
		}
		for _, name := range j.plan[i].nodes {
			had[name] = j.plan[i].end
		}
	}
	if j.mode.carriesNodes {
		j.lastGains(m.all)
	}
	return m.all
}

// lastGains sets the ends of gains: when the job gives back the first of their nodes.
func (j *job) lastGains(all []gain) {
	type stay struct {
		step int // up to which the stay is known
		end  int64
	}
	stays := map[string]stay{}
	for i, last := len(j.plan)-1, len(all)-1; last >= 0; i-- {
		for _, name := range j.plan[i].nodes {
			s := stays[name]
			if s.end == 0 || s.step != i+1 {
				s.end = j.plan[i].end
			}
			stays[name] = stay{i, s.end}
		}
		if g := &all[last]; g.step == i+1 {
			last--
			g.end = stays[g.nodes[0]].end
			for _, name := range g.nodes {
				g.end = min(g.end, stays[name].end)
			}
		}
	}
}

// same reports whether two lists are the same slice.
func same[T any](a, b []T) bool { return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0]) }

// longestHold limits the holds of jobs without a time limit.
const longestHold = 365 * 24 * 3600

// limitOf returns the time limit in seconds of the Slurm job that begins with step i of j. A hold to
// start in lasts as long. Slurm ends a running job together with its reservation, and nothing moves
// the job out of the hold while the sidecar is down. That costs other jobs of Slurm nothing: once
// the job runs, its nodes are taken until then anyway.
func (c *Core) limitOf(j *job, i int) int64 {
	choice := 0
	if j.Moldable != nil {
		choice = j.Moldable.Choice
	}
	return c.limitOfAs(j, i, choice)
}

// limitOfAs does what limitOf does, for a given alternative of a moldable job.
func (c *Core) limitOfAs(j *job, i, choice int) int64 {
	r := &j.record
	if j.mode.stepsAreJobs && i < len(j.chain) && c.snapshot != nil && c.snapshot.byID[j.chain[i]] != nil {
		r = c.snapshot.byID[j.chain[i]]
	}
	return min(seconds(j.limitOnceStarted(r, choice, i)), longestHold)
}

// late returns how many seconds a start is overdue, rounded up to whole minutes, so that holds do
// not change every second.
func late(start, now int64) int64 { return (max(now-start, 0) + 59) / 60 * 60 }

// holdKey identifies a hold: a job has one hold for each step that brings it nodes.
type holdKey struct {
	job  slurmctl.JobID
	step int
}

// far reports whether the hold's job neither runs nor starts within a minute.
func (h hold) far(now int64) bool {
	return h.job.State == row.Queued && len(h.job.plan) > 0 && h.job.plan[0].start > now+60
}

// earlier is how many seconds a hold may begin before its step without a correction, because
// planned times shift by seconds all the time.
const earlier = 10

// slack returns how far off a time written into Slurm may be if it is so far ahead. Plans drift with
// every job that starts late or ends early, and each change costs slurmctld milliseconds.
func slack(ahead time.Duration) time.Duration { return max(ahead, 0) / 10 }

// stale reports whether no change can turn a reservation into the hold, because the reservation has
// begun and the hold begins later.
func (c *Core) stale(r slurmctl.Reservation, h hold, now int64) bool {
	return r.Start.Unix() <= now && h.start > now+earlier
}

// nobody is the user of a hold to grow in until its expander is requested. A real user could run
// any job in the reservation.
const nobody = slurmctl.Nobody

// holdUsers returns the users that may use a hold. The job's user may always use a hold to start in:
// in Slurm, no job can refer to a reservation that its user may not use. Slurm must also start the
// job while the sidecar is down.
func (c *Core) holdUsers(h hold) []string {
	switch {
	case h.toStartIn():
		return []string{h.job.User}
	case c.holdsOpen || c.submitter(h.job) != h.job.User:
		return []string{c.submitter(h.job)}
	}
	return []string{nobody}
}

// submitter returns the user in whose name a job's expanders are submitted: the job's user if the
// sidecar is root, otherwise the sidecar's own user.
func (c *Core) submitter(j *job) string {
	if c.site.Root || c.site.User == "" {
		return j.User
	}
	return c.site.User
}

// holdFor returns the reservation for a job's step, and whether there is one.
func (c *Core) holdFor(j *job, step int) (slurmctl.Reservation, bool) {
	name, ok := c.holdNames[holdKey{j.id(), step}]
	return c.reservations[name], ok
}

// confirmed reports whether everything that a queued job needs is held, as far as it is near and the
// shares allow it. It also checks that no other job took the nodes before that: a poll since then must
// cover everything, or cover only the nodes and show them free.
func (c *Core) confirmed(s *snapshot, j *job, now int64) bool {
	ahead := now + c.holdAhead()
	for _, h := range c.holdsOf(j, now) {
		if h.step > 1 && (h.start > ahead || slices.Contains(j.deferred, h.step)) {
			continue
		}
		r, ok := c.holdFor(j, h.step)
		if !ok || !sameSet(r.Nodes, h.nodes) || r.Start.Unix() > max(h.start, now) {
			return false
		}
		since := c.heldSince[r.Name]
		if !s.taken.After(since) && !(s.nodesTaken.After(since) && s.free(h.nodes)) {
			return false
		}
	}
	return true
}

// nextName returns a new name for an expander.
func (c *Core) nextName(j *job, step int) ownName {
	j.attempt++
	return ownName{j.id(), step, j.attempt}
}
