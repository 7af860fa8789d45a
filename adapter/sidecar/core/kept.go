package core

import (
	"cmp"
	"fmt"
	"time"

	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// More nodes do not help against a limit. If an account, QOS, or partition allows no more at present, the job
// waits with the nodes that it has, and holds no nodes that other jobs could use. The sidecar tries again when
// the limit may have room, and replans the job then.

// keptBack describes a start or growth that Slurm does not allow at present.
type keptBack struct {
	limit  string // squeue's reason, or the words of a refusal
	text   string // what evosqueue says
	to     int    // number of nodes to grow to; 0: it is a start
	again  time.Time
	look   bool      // read the limit's figures before the next attempt
	fresh  time.Time // the figures must be read at this time or later
	looked time.Time // when they were last read
	// givenUp reports that the cause is not a limit: only a request of the script starts another attempt.
	givenUp bool
	usage   usage // highest usage since then of the jobs that the limit may count
}

const (
	// firstAgain is the longest wait before the first further attempt; mostAgain is the longest one after many
	// attempts.
	firstAgain = 30 * time.Second
	mostAgain  = 5 * time.Minute
	// soonestAgain is the shortest wait before a further attempt.
	soonestAgain = 3 * time.Second
	// limitPatience is how long a released job may show a limit as its reason.
	limitPatience = 2 * time.Second
)

// keepBack is called when Slurm did not let a job start (to is 0) or grow to `to` nodes.
func (c *Core) keepBack(j *job, limit string, to int) {
	j.keptTimes++
	k := &keptBack{limit: limit, to: to, again: c.now.Add(min(firstAgain<<min(j.keptTimes-1, 4), mostAgain))}
	k.say(limit)
	k.look, k.fresh = slurmctl.KindOf(limit) == slurmctl.LimitReason, c.now
	if c.snapshot != nil {
		k.usage = c.snapshot.usageBeside(&j.record)
	}
	j.kept, j.reason = k, saying(whyKeptBack, k.text)
	if j.keptTimes == 1 {
		c.event(j, "kept back", map[string]any{"limit": limit, "nodes": to})
		c.logJob(j).WithField("limit", limit).Info(k.text)
	}
}

// say sets what evosqueue says.
func (k *keptBack) say(limit string) {
	k.text = "Slurm did not start it: " + limit
	if k.to > 0 {
		k.text = fmt.Sprintf("the growth to %d nodes waits for %s", k.to, limit)
	}
}

// stillKept reports whether it is too early to try again.
func (j *job) stillKept(now time.Time) bool {
	return j.kept != nil && (j.kept.givenUp || j.kept.look || now.Before(j.kept.again))
}

// tryAgain replans a running job whose growth was kept back.
func (c *Core) tryAgain(s *snapshot, j *job, now time.Time) {
	limit := j.kept.limit
	j.kept = nil
	j.reason = saying(whyRoomUnder, limit)
	c.refit(s, j, now.Unix(), "its growth was kept back by "+limit)
}

// followKept starts another attempt once the jobs that the limit may count use less.
func (c *Core) followKept(s *snapshot) {
	for j := range c.each(c.active) {
		if j.kept == nil || j.kept.givenUp || j.touched.After(s.taken) {
			continue
		}
		k, u := j.kept, s.usageBeside(&j.record)
		if u.less(k.usage) {
			if soon := j.touched.Add(soonestAgain); soon.Before(k.again) {
				k.again = soon
			}
			k.usage, k.fresh, k.look = u, c.now, slurmctl.KindOf(k.limit) == slurmctl.LimitReason
		}
		k.usage = u.most(k.usage)
		c.explain(j, c.now)
	}
}

// usage holds what some jobs use in Slurm.
type usage struct{ jobs, nodes, cpus int }

func (u usage) less(than usage) bool {
	return u.jobs < than.jobs || u.nodes < than.nodes || u.cpus < than.cpus
}

func (u usage) most(other usage) usage {
	return usage{max(u.jobs, other.jobs), max(u.nodes, other.nodes), max(u.cpus, other.cpus)}
}

// usageBeside returns the usage of all jobs that share the user, account, QOS, or partition with a job.
// O(jobs).
func (s *snapshot) usageBeside(with *slurmctl.Job) (u usage) {
	for i := range s.jobs {
		r := &s.jobs[i]
		if len(r.NodeList) == 0 || r.UID != with.UID && r.Account != with.Account && r.QOS != with.QOS && r.Partition != with.Partition {
			continue
		}
		u.jobs++
		u.nodes += len(r.NodeList)
		u.cpus += r.NumCPUs
	}
	return u
}

// keptStart reports whether Slurm shows a limit as the reason why it does not start a released job.
func keptStart(s *snapshot, r *slurmctl.Job, letGo time.Time) bool {
	return r.State == slurmctl.Pending && s.taken.Sub(letGo) > limitPatience && slurmctl.KindOf(r.Reason) == slurmctl.LimitReason
}

// park takes back a Slurm job of j that Slurm does not start for a reason of its own, such as a limit of the
// account. So no nodes are held for nothing.
func (c *Core) park(j *job, r *slurmctl.Job, state row.State) {
	limit := cmp.Or(r.Reason, "no reason given")
	c.takeBack(j, r.ID, "Slurm did not start it: "+limit, KindPark, Args{State: state, Limit: limit})
}

// settlePark is called when a job that Slurm did not start was parked.
func (c *Core) settlePark(j *job, p *Pending, o Outcome) {
	if !c.tookBack(j, p, o) {
		return
	}
	limit := p.Args.Limit
	if slurmctl.KindOf(limit) != slurmctl.NodesReason || j.mode.stepsAreJobs || len(j.plan) == 0 || !c.shun(j, j.plan[0].nodes, limit) {
		c.keepBack(j, limit, 0)
		return
	}
	c.storePlan(j, nil)
	j.reason = saying(whyNotStarted, limit)
	c.nextCycle = c.now
}

// takeBack parks a Slurm job of j that was released and does not run.
func (c *Core) takeBack(j *job, id slurmctl.JobID, why string, kind Kind, args Args) {
	none := ""
	c.do(j, "park", why, kind, Update{Job: id, Change: slurmctl.JobUpdate{StartTime: c.now.Add(parked), Reservation: &none}}, args)
}

// tookBack records that a job was parked, and reports whether it was.
func (c *Core) tookBack(j *job, p *Pending, o Outcome) bool {
	if o.Err != nil {
		return false
	}
	j.State, j.letGo = p.Args.State, 0
	c.save(j)
	c.event(j, "parked again", map[string]any{"reason": p.Task.Intent.Detail})
	return true
}

// promised returns the current and coming steps of a job, with its own nodes. A job that is kept back keeps
// the nodes that it has, for as long as if it were planned now.
func (j *job) promised(now int64) []plannedStep {
	steps := j.plan[min(max(j.Step-1, 0), len(j.plan)):]
	if j.kept == nil || !j.runs() {
		return steps
	}
	have, late := j.nodes(), int64(0)
	if next := j.next(); next != nil {
		late = max(now-next.start, 0)
	}
	all := make([]plannedStep, len(steps))
	for i, step := range steps {
		all[i] = plannedStep{start: step.start, end: step.end + late, nodes: common(have, step.nodes)}
	}
	return all
}
