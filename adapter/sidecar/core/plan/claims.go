package plan

import (
	"fmt"
	"slices"
	"time"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/slurm"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
	"github.com/evoslurm/evoslurm/planner/claims"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// claimant describes a job with a claim during some time.
type claimant struct {
	claims.Job
	from, Until int64 // Unix seconds
}

// Claimants returns the started jobs that have a claim, without `except`, with the nodes planned
// for them at a time. It leaves out jobs that have ended by then.
func Claimants(c *state.Core, s *state.Snapshot, except *state.Job, at int64) []claimant {
	var all []claimant
	now := s.Taken.Unix()
	for _, j := range c.Active {
		if j.Claim == 0 || j.SlurmID == except.SlurmID || !j.Runs() && j.State != row.Starting {
			continue
		}
		until := now + slurm.Reach(c, j, now)
		if j.State == row.Starting {
			until += mirrorSeconds
		}
		if until > at {
			all = append(all, claimant{claimOf(c, s, j, hasAt(j, at)), 0, until})
		}
	}
	return all
}

const mirrorSeconds = int64(MirrorDelay / time.Second)

// hasAt returns the nodes of a job at some time, according to its plan.
func hasAt(j *state.Job, at int64) []string {
	has := j.Nodes()
	for _, step := range j.Coming() {
		if step.Start <= at {
			has = step.Nodes
		}
	}
	return has
}

func claimOf(c *state.Core, s *state.Snapshot, j *state.Job, has []string) claims.Job {
	may, _ := slurm.EligibleBeside(c, s, j)
	one := claims.Job{May: may, Claim: j.Claim}
	for _, name := range has {
		if n, ok := s.Index[name]; ok {
			one.Has = append(one.Has, n)
		}
	}
	return one
}

// gone marks the nodes that cannot be used at present.
func gone(s *state.Snapshot) []bool {
	gone := make([]bool, len(s.Nodes))
	for i, n := range s.Nodes {
		gone[i] = !n.Usable()
	}
	return gone
}

// SafeWith reports whether the state is safe if a job has some nodes at a time. A job without a
// claim needs no more nodes to reach its end.
func SafeWith(c *state.Core, s *state.Snapshot, j *state.Job, at int64, nodes []string) bool {
	if j.Claim == 0 {
		return true
	}
	jobs := []claims.Job{claimOf(c, s, j, nodes)}
	for _, other := range Claimants(c, s, j, at) {
		jobs = append(jobs, other.Job)
	}
	return len(jobs) == 1 || claims.Safe(len(s.Nodes), gone(s), jobs)
}

// admit delays queued jobs with claims until it is safe to begin them, the most urgent first.
func admit(c *state.Core, s *state.Snapshot, list []slurm.Candidate, now int64) {
	var begun []claimant
	queued := false // begun has jobs that could begin now
	for i := range list {
		cand := &list[i]
		j := cand.Job
		if j == nil || j.Claim == 0 {
			continue
		}
		if begun == nil {
			begun = Claimants(c, s, j, now)
		}
		c.Moves = c.Moves || queued // their time ends later in every second
		at, one := safeFrom(c, s, cand, begun)
		if at > cand.Earliest {
			cand.Earliest = at
			j.WaitsFor(state.Because(state.WhyClaimsConflict))
		}
		begun = append(begun, claimant{one, at, at + slurm.Seconds(cand.Record.TimeLimit)})
		queued = c.ReachedSecond(now, at) || queued
	}
}

// safeFrom returns the first time at which a queued job may begin beside the jobs that have begun
// or will begin before it.
func safeFrom(c *state.Core, s *state.Snapshot, cand *slurm.Candidate, begun []claimant) (at int64, one claims.Job) {
	times := []int64{cand.Earliest}
	for _, other := range begun {
		if other.Until > cand.Earliest {
			times = append(times, other.Until)
		}
	}
	slices.Sort(times)
	for _, at = range times {
		var jobs []claims.Job
		used := make([]bool, len(s.Nodes))
		for _, other := range begun {
			if other.Until <= at {
				continue
			}
			jobs = append(jobs, other.Job)
			for _, n := range other.Has {
				used[n] = true
			}
		}
		one = claims.Job{May: cand.Nodes, Claim: cand.Job.Claim}
		for _, n := range cand.Nodes {
			if !used[n] && len(one.Has) < cand.Profile[0].Nodes {
				one.Has = append(one.Has, n)
			}
		}
		if len(one.Has) == cand.Profile[0].Nodes && claims.Safe(len(s.Nodes), gone(s), append(jobs, one)) {
			return at, one
		}
	}
	return at, one
}

// ClaimBeyond returns an error if a job can never have its claim.
func ClaimBeyond(c *state.Core, j *state.Job) error {
	s, r := c.Snapshot, &j.Record
	if j.Claim == 0 || s == nil || r.State != slurmctl.Pending {
		return nil
	}
	most := 0
	for _, name := range slurm.Partitions(j) {
		n := slurm.MostTogether(s, slurm.InPartition(r, name), j.GRES)
		if p := s.Partitions[name]; p.MaxNodes > 0 {
			n = min(n, p.MaxNodes)
		}
		most = max(most, n)
	}
	if j.Claim > most {
		return fmt.Errorf("its claim is %d nodes (--max-nodes), and it may have %d at most: submit it with less", j.Claim, most)
	}
	return nil
}
