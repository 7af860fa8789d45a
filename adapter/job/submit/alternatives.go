package submit

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/evoslurm/evoslurm/adapter/job/request"
	"github.com/evoslurm/evoslurm/planner"
)

// checkAlternatives checks each alternative of a moldable job as if it were the only one. It reports
// infeasible ones and leaves them out, and fails only if all are. It reports problems of the cluster
// as a whole once.
func (s site) checkAlternatives(ctx context.Context, r submission) (submission, error) {
	s.stderr = onceWriter{s.stderr, map[string]bool{}}
	m := *r.request.Moldable
	m.Minutes = slices.Clone(m.Minutes)
	if m.Minutes == nil {
		m.Minutes = make([][]int64, len(m.Alternatives))
		for k := range m.Minutes {
			m.Minutes[k] = []int64{unlimited}
		}
	}
	var reasons []string
	for k, p := range m.Alternatives {
		if len(m.Minutes[k]) == 0 {
			continue
		}
		one := r
		one.request.Moldable, one.request.Profile = nil, p
		one.maxTime = m.Minutes[k][0]
		one, err := s.checkAlternative(ctx, one)
		if err != nil {
			reasons = append(reasons, fmt.Sprintf("alternative %s: %v", brief(p), err))
			m.Minutes[k] = nil
			continue
		}
		m.Minutes[k] = []int64{one.maxTime}
	}
	if !slices.ContainsFunc(m.Minutes, func(limits []int64) bool { return len(limits) > 0 }) {
		return r, fmt.Errorf("no alternative is feasible: %s", strings.Join(reasons, "; "))
	}
	for _, why := range reasons {
		fmt.Fprintf(s.stderr, "evosbatch: warning: left out: %s\n", why)
	}
	return r.choose(m)
}

// checkAlternative checks a job with one alternative as its profile: its options, then what the
// cluster and its limits allow.
func (s site) checkAlternative(ctx context.Context, one submission) (submission, error) {
	p := one.request.Profile
	if err := one.options.refuseTasks(p[0].Nodes); err != nil {
		return one, err
	}
	if _, err := one.options.nodeList(p); err != nil {
		return one, err
	}
	var err error
	if one.userTime, err = one.checkTime(); err != nil {
		return one, err
	}
	return s.fit(ctx, one)
}

// choose completes a moldable job with its feasible alternatives, whose Minutes hold the longest
// time limits that the cluster allows.
func (r submission) choose(m request.Moldable) (_ submission, err error) {
	k := m.Submitted()
	r.request.Profile = m.Alternatives[k]
	if r.userTime, err = r.checkTime(); err != nil {
		return r, err
	}
	if r.request.Nodes, err = r.options.nodeList(r.request.Profile); err != nil {
		return r, err
	}
	if len(m.Minutes[k]) > 0 {
		r.maxTime = m.Minutes[k][0]
	}
	limits := make([][]int64, len(m.Alternatives))
	for k, p := range m.Alternatives {
		if len(m.Minutes[k]) > 0 {
			limits[k] = r.limits(p, m.Minutes[k][0])
		}
	}
	m.Minutes = limits
	r.request.Moldable = &m
	return r, r.complete()
}

// limits returns the time limits of a job with this profile, one for each Slurm job, if the cluster
// allows no more than most.
func (r submission) limits(p planner.Profile, most int64) (limits []int64) {
	r.maxTime = most
	if !r.request.Drive.Means().StepsAreJobs {
		return []int64{min(r.wholeLimit(p), request.Unlimited)}
	}
	for i := range p {
		limits = append(limits, min(r.linkLimit(p, i), request.Unlimited))
	}
	return limits
}

// onceWriter passes each text on once.
type onceWriter struct {
	io.Writer
	said map[string]bool
}

func (w onceWriter) Write(p []byte) (int, error) {
	if w.said[string(p)] {
		return len(p), nil
	}
	w.said[string(p)] = true
	return w.Writer.Write(p)
}
