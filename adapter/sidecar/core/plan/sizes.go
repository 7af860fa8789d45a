package plan

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/evoslurm/evoslurm/adapter/job/request"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
	"github.com/evoslurm/evoslurm/planner"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// Malleable checks the request of a malleable job. Like evosbatch, it cuts what the job takes beyond its
// profile to what its partitions and limits allow. (If Slurm resizes a job only once, or does not allow
// changes of a running job, lent nodes come and go by whole companions.)
func Malleable(c *state.Core, r *slurmctl.Job, sp request.Request) (request.Request, error) {
	if err := sp.CheckMalleable(); err != nil || sp.Malleable == nil {
		return sp, err
	}
	if most := c.Config.Malleable.MaxGrace; time.Duration(sp.Malleable.Grace)*time.Second > most {
		return sp, fmt.Errorf("it asks for %d seconds to give nodes back (--grace), the site allows %v at most (malleable.max_grace)", sp.Malleable.Grace, most)
	}
	if c.Snapshot == nil {
		return sp, nil
	}
	most, why := 0, ""
	for _, name := range strings.Split(r.Partition, ",") {
		p, known := c.Snapshot.Partitions[name]
		if !known {
			return sp, nil
		}
		if n, against := mostIn(c, r, sp, p); n > most {
			most, why = n, against
		}
	}
	if before := sp.MostNodes(); sp.CutMax(max(most, sp.Profile.Peak())) && c.MayTell(r.UID) {
		c.Log.WithField("job", r.ID).WithField("user", r.User).Info(fmt.Sprintf("it is malleable up to %d nodes, not %d: %s", sp.MostNodes(), before, why))
	}
	return sp, nil
}

// mostIn returns the largest size that a malleable job can have in a partition, and why it has no larger one.
func mostIn(c *state.Core, r *slurmctl.Job, sp request.Request, p slurmctl.Partition) (n int, against string) {
	n = len(p.Nodes)
	if p.MaxNodes > 0 {
		n = min(n, p.MaxNodes)
	}
	against = fmt.Sprintf("partition %s has %d nodes for it", p.Name, n)
	if named, err := slurmctl.CountNodes(sp.Nodes); sp.Nodes != "" && err == nil && named < n {
		n, against = named, "its --nodelist names "+strconv.Itoa(named)
	}
	if limits := c.Rules.Limits; limits != nil {
		if lower, why := limits.MostNodes(state.Subject(r, p.Name), state.NeedOf(sp.Profile, false), max(n, sp.Profile.Peak())); why != "" {
			n, against = lower, why
		}
	}
	return n, against
}

// MalleableOf returns what a request takes beyond its profile, as a row.
func MalleableOf(sp request.Request) *row.Malleable {
	m := sp.Malleable
	if m == nil {
		return nil
	}
	return &row.Malleable{Max: sp.WholeMax(), Sizes: m.Sizes, Grace: m.Grace, Speedup: m.Speedup, BestEffort: m.BestEffort}
}

// MostOf returns how many nodes a job takes in the steps after the current one.
func MostOf(j *state.Job) []int {
	if j.Malleable == nil {
		return nil
	}
	return j.Malleable.Max[j.Step:]
}

// ComingOf parses a profile, with bounds for a malleable job. The bounds are cut to the number of nodes in the
// cluster.
func ComingOf(j *state.Job, text string, nodes int) (planner.Profile, []int, error) {
	var r request.Request
	if err := r.Set("profile", text); err != nil {
		return nil, nil, err
	}
	switch {
	case r.Frequencies != nil:
		return nil, nil, errors.New("the steps of a changed profile have no CPU frequencies: leave them out")
	case r.Tail > 0 && j.Claim == 0:
		return nil, nil, errors.New("the job was submitted without a claim: give one number of nodes for each step")
	case r.Tail > j.Claim:
		return nil, nil, fmt.Errorf("the open tail goes up to %d nodes, and the job's claim is %d", r.Tail, j.Claim)
	case r.Malleable == nil:
		return r.Profile, nil, nil
	}
	if j.Malleable == nil {
		return nil, nil, errors.New("the job was not submitted as one that is malleable: give one number of nodes for each step")
	}
	r.Malleable.Sizes = j.Malleable.Sizes
	if err := r.Settle(); err != nil {
		return nil, nil, err
	}
	if r.CutMax(max(nodes, r.Profile.Peak())); r.Malleable == nil {
		return r.Profile, nil, nil
	}
	return r.Profile, r.Malleable.Max, nil
}

// Rebound returns the bounds of a job with a new profile. Its steps up to the current one keep their bounds,
// and the others have one size unless `most` allows more. If no coming step is malleable, the job is not
// malleable any more.
func Rebound(m *row.Malleable, p planner.Profile, step int, most []int) *row.Malleable {
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
	if one.BestEffort == "" && slices.Equal(one.Max[from:], request.Sizes(p)[from:]) {
		return nil
	}
	return &one
}
