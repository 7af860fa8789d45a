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

// A job with a claim (--max-nodes) may grow up to it on demand, and waits for that if necessary. So
// that jobs never wait for each other's nodes, they begin and grow only if the resulting state is
// safe (package claims; the proof is in docs/claims.md). All other jobs are planned as if the jobs with
// claims kept their nodes up to their time limits.

// unsafe says why a job with a claim must wait.
const unsafe = "waits for other jobs with claims: all could come to wait for each other's nodes"

// claimant describes a job with a claim during some time.
type claimant struct {
	claims.Job
	from, until int64 // Unix seconds
}

// claimants returns the started jobs that have a claim, without `except`, with the nodes planned
// for them at a time. It leaves out jobs that have ended by then.
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

// hasAt returns the nodes of a job at some time, according to its plan.
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

// gone marks the nodes that cannot be used at present.
func (s *snapshot) gone() []bool {
	gone := make([]bool, len(s.nodes))
	for i, n := range s.nodes {
		gone[i] = !n.Usable()
	}
	return gone
}

// safeWith reports whether the state is safe if a job has some nodes at a time. A job without a
// claim needs no more nodes to reach its end.
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

// admit delays queued jobs with claims until it is safe to begin them, the most urgent first.
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

// safeFrom returns the first time at which a queued job may begin beside the jobs that have begun
// or will begin before it.
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

// fitSafely does what fitStrictly does, also for a job with a claim: none of its steps grows before
// that is safe.
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

// moveUp replans a job that waits for a requested growth, or for a chain's next link, if it can
// have the nodes sooner because other jobs ended early.
func (c *Core) moveUp(s *snapshot, j *job, now int64) {
	copied := *j
	t := &target{job: &copied, wait: planner.MaxDuration}
	r := c.fitSafely(s, j, t, now, fitting{around: c.aroundOf(s, j), strict: true, wait: t.wait}, false)
	if r.unfit == "" && r.plan[j.Step].start+overrunQuantum <= j.next().start {
		c.storePlan(j, r.plan)
	}
}

// claimBeyond returns an error if a job can never have its claim.
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
