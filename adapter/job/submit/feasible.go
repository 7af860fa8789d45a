package submit

import (
	"context"
	"fmt"
	"time"

	"github.com/evoslurm/evoslurm/adapter/job/request"
	"github.com/evoslurm/evoslurm/planner"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// feasible returns the submission as the cluster and its limits can run it, or why they never can.
func (s site) feasible(ctx context.Context, r submission) (submission, error) {
	r, err := s.asBestEffort(r)
	if err != nil {
		return r, err
	}
	r, err = s.orDoubt(ctx, r, s.allowed(ctx, r.options))
	if err == nil && s.mayPrefer != nil {
		err = s.mayPrefer(r.request.Aim)
	}
	if err == nil {
		err = s.inside(ctx, r)
	}
	if err != nil {
		return r, err
	}
	switch {
	case r.request.Moldable != nil:
		return s.checkAlternatives(ctx, r)
	case r.request.Malleable == nil && !r.request.Endless():
		return s.fit(ctx, r)
	}
	if err := s.checkGrace(r.request.Malleable); err != nil {
		return r, err
	}
	if r, err = s.lasting(ctx, r); err != nil {
		return r, err
	}
	if r, err = s.fit(ctx, r); err != nil {
		return r, err
	}
	return r, r.complete() // its bounds may have changed
}

// checkGrace rejects a malleable job that requests more time to give nodes back than the site
// allows.
func (s site) checkGrace(m *request.Malleable) error {
	if m != nil && s.maxGrace > 0 && time.Duration(m.Grace)*time.Second > s.maxGrace {
		return fmt.Errorf("--grace=%s: the site allows %v at most (malleable.max_grace)", planner.FormatDuration(int64(m.Grace)), s.maxGrace)
	}
	return nil
}

// lasting gives a job with --malleable but without --time sbatch's time limit: the partition's
// default, otherwise its maximum; of several partitions, the shortest.
func (s site) lasting(ctx context.Context, r submission) (submission, error) {
	if !r.request.Endless() {
		return r, nil
	}
	if s.cluster == nil {
		return r, errNoEnd
	}
	ctx, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	var places []place
	nodes, partitions, err := s.cluster.Nodes(ctx)
	if err == nil {
		places, err = r.options.places(nodes, partitions, r.gres)
	}
	least := int64(unlimited)
	if u, known := s.limits(ctx, r.options); known {
		least = u.givenMinutes(u.partitions(r.options, places))
	} else if err != nil {
		return r, fmt.Errorf("--malleable: the duration is not known, give --time: %w", err)
	}
	for _, p := range places {
		for _, limit := range []time.Duration{p.partition.DefaultTime, p.partition.MaxTime} {
			if limit != slurmctl.Unlimited && limit > 0 {
				least = min(least, int64(limit/time.Minute))
				break
			}
		}
	}
	if least > planner.MaxDuration/60 {
		return r, fmt.Errorf("%w, as the partition has none", errNoEnd)
	}
	r.request.Lasts(least * 60)
	r.userTime, r.implied = least, true
	return r, r.complete()
}
