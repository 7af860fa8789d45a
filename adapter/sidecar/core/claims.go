package core

import (
	"fmt"
	"slices"
	"time"

	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
	"github.com/evoslurm/evoslurm/planner"
	"github.com/evoslurm/evoslurm/planner/claims"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// A job with a claim (--max-nodes) may grow up to it on demand, and waits for that if it has
// to. So that no jobs ever wait for each other's nodes they begin and grow only where the
// state after is safe (package claims; the proof is in docs/claims.md). Everybody else is
// planned as if they kept what they have up to their time limits.

// unsafe says why a job with a claim has to wait.
const unsafe = "waits for other jobs with claims: all could come to wait for each other's nodes"

// claimant is a job with a claim during some time.
type claimant struct {
	claims.Job
	from, until int64 // Unix seconds
}

// claimants are the jobs with a claim that have begun, but for one, as they are planned to be
// at some time or later.
func (c *Core) claimants(s *snapshot, except *job, at int64) []claimant {
	var all []claimant
	now := s.taken.Unix()
	for _, j := range c.active {
		if j.Claim == 0 || j.SlurmID == except.SlurmID || !j.runs() && j.State != row.Starting {
			continue
		}
		until := now + j.reach(now)
		if j.State == row.Starting {
			until += mirrorSeconds
		}
		if until > at {
			all = append(all, claimant{c.claimOf(s, j, j.hasAt(at)), 0, until})
		}
	}
	return all
}

const mirrorSeconds = int64(mirrorDelay / time.Second)

// hasAt is what a job has at some time, as far as it is planned.
func (j *job) hasAt(at int64) []string {
	has := j.nodes()
	for _, step := range j.coming() {
		if step.start <= at {
			has = step.nodes
		}
	}
	return has
}

func (c *Core) claimOf(s *snapshot, j *job, has []string) claims.Job {
	may, _ := s.eligible(c.recordFor(s, j), j.gres)
	one := claims.Job{May: may, Claim: j.Claim}
	for _, name := range has {
		if n, ok := s.index[name]; ok {
			one.Has = append(one.Has, n)
		}
	}
	return one
}

// gone are the nodes that are of no use at present.
func (s *snapshot) gone() []bool {
	gone := make([]bool, len(s.nodes))
	for i, n := range s.nodes {
		gone[i] = !n.Usable()
	}
	return gone
}

// safeWith reports whether the state is safe if a job has some nodes at a time. One without a
// claim needs nothing more to come to its end.
func (c *Core) safeWith(s *snapshot, j *job, at int64, nodes []string) bool {
	if j.Claim == 0 {
		return true
	}
	jobs := []claims.Job{c.claimOf(s, j, nodes)}
	for _, other := range c.claimants(s, j, at) {
		jobs = append(jobs, other.Job)
	}
	return len(jobs) == 1 || claims.Safe(len(s.nodes), s.gone(), jobs)
}

// admit has queued jobs with claims begin only once that is safe, most urgent first.
func (c *Core) admit(s *snapshot, list []candidate, now int64) {
	var begun []claimant
	for i := range list {
		cand := &list[i]
		j := cand.job
		if j == nil || j.Claim == 0 {
			continue
		}
		if begun == nil {
			begun = c.claimants(s, j, now)
		}
		at, one := c.safeFrom(s, cand, begun)
		if at > cand.earliest {
			cand.earliest = at
			j.reason = because(whyClaimsConflict)
		}
		begun = append(begun, claimant{one, at, at + seconds(cand.record.TimeLimit)})
	}
}

// safeFrom is the first time at which a queued job may begin beside those that have begun, or
// are to.
func (c *Core) safeFrom(s *snapshot, cand *candidate, begun []claimant) (at int64, one claims.Job) {
	times := []int64{cand.earliest}
	for _, other := range begun {
		if other.until > cand.earliest {
			times = append(times, other.until)
		}
	}
	slices.Sort(times)
	for _, at = range times {
		var jobs []claims.Job
		used := make([]bool, len(s.nodes))
		for _, other := range begun {
			if other.until <= at {
				continue
			}
			jobs = append(jobs, other.Job)
			for _, n := range other.Has {
				used[n] = true
			}
		}
		one = claims.Job{May: cand.nodes, Claim: cand.job.Claim}
		for _, n := range cand.nodes {
			if !used[n] && len(one.Has) < cand.profile[0].Nodes {
				one.Has = append(one.Has, n)
			}
		}
		if len(one.Has) == cand.profile[0].Nodes && claims.Safe(len(s.nodes), s.gone(), append(jobs, one)) {
			return at, one
		}
	}
	return at, one
}

// fitSafely is fitStrictly of a job that may have a claim: no step of it grows before that is
// safe.
func (c *Core) fitSafely(s *snapshot, j *job, t *target, now int64, f fitting, beyond bool) rest {
	for {
		r := c.fitStrictly(s, j, t, now, f, beyond)
		if r.unfit != "" || t.Claim == 0 {
			return r
		}
		bad := int64(0)
		for k := t.Step; k < len(r.plan) && bad == 0; k++ {
			if len(r.plan[k].nodes) > len(t.nodes()) && !c.safeWith(s, t.job, max(r.plan[k].start, now), r.plan[k].nodes) {
				bad = max(r.plan[k].start, now)
			}
		}
		if bad == 0 {
			return r
		}
		next := planner.Forever
		for _, other := range c.claimants(s, t.job, bad) {
			next = min(next, other.until)
		}
		if next == planner.Forever {
			return rest{unfit: unsafe}
		}
		f.notBefore = next
	}
}

// moveUp plans anew what is to come of a job that waits for a growth that was asked for, or for a
// chain's next link, if it can be had sooner: others have ended before their time.
func (c *Core) moveUp(s *snapshot, j *job, now int64) {
	copied := *j
	t := &target{job: &copied, wait: planner.MaxDuration}
	r := c.fitSafely(s, j, t, now, fitting{around: c.aroundOf(s, j), strict: true, wait: t.wait}, false)
	if r.unfit == "" && r.plan[j.Step].start+overrunQuantum <= j.next().start {
		c.storePlan(j, r.plan)
	}
}

// claimBeyond says why a job can never have its claim.
func (c *Core) claimBeyond(j *job) error {
	s, r := c.snapshot, &j.record
	if j.Claim == 0 || s == nil || r.State != slurmctl.Pending {
		return nil
	}
	most := 0
	for _, name := range j.partitions() {
		nodes, err := s.eligible(inPartition(r, name), j.gres)
		if err != nil {
			continue
		}
		n := len(nodes)
		if p := s.partitions[name]; p.MaxNodes > 0 {
			n = min(n, p.MaxNodes)
		}
		most = max(most, n)
	}
	if j.Claim > most {
		return fmt.Errorf("its claim is %d nodes (--max-nodes), and it may have %d at most: submit it with less", j.Claim, most)
	}
	return nil
}
