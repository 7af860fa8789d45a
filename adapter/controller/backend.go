package controller

import (
	"context"
	"slices"
	"time"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/config"
	"github.com/evoslurm/evoslurm/adapter/store"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// Status implements api.Backend.
func (c *Controller) Status(context.Context) (api.Status, error) { return c.view.Load().status, nil }

// Jobs implements api.Backend.
func (c *Controller) Jobs(_ context.Context, all bool) ([]api.Job, error) {
	v := c.view.Load()
	if all {
		return slices.Concat(v.ended, v.jobs), nil
	}
	return slices.Clone(v.jobs), nil
}

// Job implements api.Backend.
func (c *Controller) Job(_ context.Context, id uint32) (api.Job, error) {
	v := c.view.Load()
	base := v.alias[id]
	for _, list := range [][]api.Job{v.jobs, v.ended} {
		for i := len(list) - 1; i >= 0; i-- {
			if list[i].ID == base {
				return list[i], nil
			}
		}
	}
	return api.Job{}, v.unknown(id)
}

// unknown is the error for a job that the sidecar knows nothing of. Before it has
// looked at Slurm for the first time it knows of none, and says so; a job that it has
// seen it is about to know.
func (v *view) unknown(id uint32) error {
	if v.status.LastCycle.IsZero() || v.coming[id] {
		return api.Errorf(api.ErrUnavailable, "the sidecar has just started and has not seen %s yet", jobNumber(id))
	}
	return api.Unknown(id)
}

// Owner implements api.Backend.
func (c *Controller) Owner(_ context.Context, id uint32) (uint32, error) {
	v := c.view.Load()
	uid, ok := v.owners[id]
	if !ok {
		return 0, v.unknown(id)
	}
	return uid, nil
}

// Operator says whether a user may act on everybody's jobs: root, SlurmUser and
// those whom the site names.
func (c *Controller) Operator(uid uint32) bool {
	v := c.view.Load()
	return uid == 0 || uid == v.slurmUser || v.operators.Allows(uid)
}

// Reading says who may read at present.
func (c *Controller) Reading() api.Reading { return c.view.Load().reading }

// reading is the site's rule; Slurm's own is not known before its configuration is.
func (c *Controller) reading() api.Reading {
	switch {
	case c.cfg.Read == config.ReadEverybody:
		return api.Anybody
	case c.cfg.Read == config.ReadOwn || c.slurmConfig.Version == "" || c.slurmConfig.Private("jobs"):
		return api.OwnJobs
	}
	return api.AllJobs
}

// answer is an allocation or why there is none.
type answer struct {
	allocation api.Allocation
	err        error
	wait       chan struct{} // closed when it is worth asking again
}

// ask runs f for a job on the loop's goroutine.
func (c *Controller) ask(ctx context.Context, id uint32, f func(*job) answer) answer {
	a := call(ctx, c, func() *answer {
		j := c.byID[slurmctl.JobID(id)]
		switch {
		case c.snapshot == nil, c.isComing(slurmctl.JobID(id)): // what the database says may be out of date, and is not all
			return &answer{err: api.Errorf(api.ErrUnavailable, "the sidecar has just started and has not seen %s yet", jobNumber(id))}
		case j == nil:
			return &answer{err: api.Errorf(api.ErrNotFound, "%s is not an evolving job, or has ended", jobNumber(id))}
		}
		a := f(j)
		return &a
	})
	if a == nil {
		return answer{err: api.Errorf(api.ErrUnavailable, "the sidecar is busy or stopping")}
	}
	return *a
}

// Allocation implements api.Backend.
func (c *Controller) Allocation(ctx context.Context, id uint32) (api.Allocation, error) {
	a := c.ask(ctx, id, func(j *job) answer {
		if !j.runs() {
			// a script may ask before the loop has seen its job start
			c.nextCycle = time.Now()
			return answer{err: api.Errorf(api.ErrUnavailable, "%s is not running yet", jobNumber(id))}
		}
		return answer{allocation: c.allocation(j)}
	})
	return a.allocation, a.err
}

// Next implements api.Backend. It ends the step that the caller names and no
// other: one that ended before is not ended twice.
func (c *Controller) Next(ctx context.Context, id uint32, req api.NextRequest) (api.Allocation, error) {
	since := -1 // growths given up when the caller began to wait
	for {
		a := c.ask(ctx, id, func(j *job) answer {
			if since < 0 {
				since = j.denials
			}
			if req.From == j.Step && (j.denied != "" || since < j.denials) {
				j.denied = ""
				return answer{err: api.Errorf(api.ErrConflict, "%s", j.denial)}
			}
			return c.endOrWait(j, req)
		})
		if a.err != nil || a.wait == nil {
			return a.allocation, a.err
		}
		select {
		case <-a.wait:
		case <-ctx.Done():
			a.allocation.Ready = false
			return a.allocation, nil
		}
	}
}

func (c *Controller) endOrWait(j *job, req api.NextRequest) answer {
	waiting := func() answer {
		w := make(chan struct{})
		j.waiters = append(j.waiters, w)
		a := c.allocation(j)
		a.Ready, a.Note = false, j.why()
		return answer{allocation: a, wait: w}
	}
	if j.State == store.Running {
		c.believe(j, req.From)
	}
	switch {
	case !j.runs():
		c.nextCycle = time.Now()
		return waiting()
	case req.From < 1 || req.From > len(j.Profile):
		return answer{err: api.Errorf(api.ErrInvalid, "step %d: the job has steps 1 to %d", req.From, len(j.Profile))}
	case req.From > j.Step:
		return answer{err: api.Errorf(api.ErrConflict, "step %d has not begun: the job is in step %d", req.From, j.Step)}
	case req.From < j.Step:
		return answer{allocation: c.allocation(j)}
	case j.last():
		if j.StepEnded.IsZero() {
			j.StepEnded = time.Now()
			c.together(func() {
				c.save(j)
				c.event(j, "step ended", map[string]any{"step": j.Step})
			})
		}
		a := c.allocation(j)
		a.Done = true
		return answer{allocation: a}
	case j.isChain():
		return answer{err: api.Errorf(api.ErrConflict, "%s is a chain: every step is a job of its own, which ends when its script does", jobNumber(j.SlurmID))}
	case j.State == store.Running:
		if bad := without(req.Release, j.nodes()); len(bad) > 0 {
			return answer{err: api.Errorf(api.ErrInvalid, "the job does not hold %s", slurmctl.CompressNodes(bad))}
		}
		if slices.Contains(req.Release, j.BatchHost) {
			return answer{err: api.Errorf(api.ErrInvalid, "%s runs the batch script and cannot be released before the end", j.BatchHost)}
		}
		j.release = req.Release
		c.endStep(j, time.Now())
	}
	return waiting()
}
