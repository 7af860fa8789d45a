package core

import (
	"errors"
	"slices"

	"github.com/evoslurm/evoslurm/adapter/request"
	"github.com/evoslurm/evoslurm/adapter/store/row"
	"github.com/evoslurm/evoslurm/planner"
)

// malleableOf is what a request takes beyond its profile as a row.
func malleableOf(sp request.Request) *row.Malleable {
	m := sp.Malleable
	if m == nil {
		return nil
	}
	return &row.Malleable{Max: sp.WholeMax(), Sizes: m.Sizes, Grace: m.Grace, Speedup: m.Speedup}
}

// mostOf is how many nodes a job takes in the steps after the present one.
func mostOf(j *job) []int {
	if j.Malleable == nil {
		return nil
	}
	return j.Malleable.Max[j.Step:]
}

// comingOf reads a profile, with bounds where a malleable job has any.
func comingOf(j *job, text string) (planner.Profile, []int, error) {
	var r request.Request
	if err := r.Set("profile", text); err != nil {
		return nil, nil, err
	}
	if r.Malleable == nil {
		return r.Profile, nil, nil
	}
	if j.Malleable == nil {
		return nil, nil, errors.New("the job was not submitted as one that is malleable: give one number of nodes for each step")
	}
	r.Malleable.Sizes = j.Malleable.Sizes
	if err := r.Settle(); err != nil || r.Malleable == nil {
		return r.Profile, nil, err
	}
	return r.Profile, r.Malleable.Max, nil
}

// rebound gives a job with another profile its bounds: its steps up to the present one keep
// theirs, the others have one size, where most does not say more. A job none of whose
// coming steps is malleable is so no more.
func rebound(m *row.Malleable, p planner.Profile, step int, most []int) *row.Malleable {
	if m == nil {
		return nil
	}
	one := *m
	one.Max = request.Sizes(p)
	for i := range min(step, len(m.Max), len(p)) {
		one.Max[i] = max(m.Max[i], p[i].Nodes)
	}
	for i, n := range most {
		if at := len(p) - len(most) + i; at >= 0 {
			one.Max[at] = max(n, p[at].Nodes)
		}
	}
	from := max(step-1, 0)
	if slices.Equal(one.Max[from:], request.Sizes(p)[from:]) {
		return nil
	}
	return &one
}
