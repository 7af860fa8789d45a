package follow

import (
	"fmt"
	"math"
	"time"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/job/request"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
	"github.com/evoslurm/evoslurm/planner/malleable"
)

// An application may report its progress. Its speed by number of nodes follows from the reports, and the
// marginal-gain policy prefers that to the declared speedup. Time counts as the job's own time, without
// suspensions: so a report does not depend on clock settings.

// TakeProgress processes a report and answers it.
func TakeProgress(c *state.Core, k *state.OpenCall) {
	j, err := Callee(c, k.Job)
	switch {
	case err != nil:
	case !j.Runs():
		err = api.Errorf(api.ErrConflict, "%s is not running", msg.JobNumber(j.SlurmID))
	case !(k.Progress.Fraction >= 0 && k.Progress.Fraction <= 1):
		err = api.Errorf(api.ErrInvalid, "invalid progress %v: want 0 to 1", k.Progress.Fraction)
	default:
		err = progress(c, j, k.Progress.Fraction)
	}
	a := api.Progress{Job: k.Job}
	if err == nil {
		a = *ProgressShown(c, j)
		a.Ready, a.Job = true, j.SlurmID
	}
	c.Emit(msg.Reply{ID: k.ID, Progress: &a, Err: err})
}

// progress records the progress of an application.
func progress(c *state.Core, j *state.Job, fraction float64) error {
	var p malleable.Progress
	if j.Progress != nil {
		p = *j.Progress
	}
	r := malleable.Report{At: seconds(j, c.Now), Fraction: fraction, Nodes: max(len(j.Nodes()), 1), Since: seconds(j, steadySince(j, c.Now))}
	if p.Last != nil {
		r.At = max(r.At, p.Last.At) // clocks may differ between runs of the sidecar
	}
	measured := p.Speedup() != nil
	if err := p.Add(r); err != nil {
		return api.Errorf(api.ErrInvalid, "%s", err)
	}
	j.Progressed(&p)
	if s := p.Speedup(); s != nil && !measured {
		c.Event(j, "measured", map[string]any{"speedup": speedupText(s), "sizes": len(p.Runs)})
	}
	c.Save(j)
	return nil
}

// seconds returns how long a job had run at a time.
func seconds(j *state.Job, at time.Time) int64 {
	if j.Started.IsZero() {
		return 0
	}
	return max(int64((at.Sub(j.Started)-j.Suspended)/time.Second), 0)
}

// steadySince returns since when a job has worked with its current nodes, or now if it waits for others.
func steadySince(j *state.Job, now time.Time) time.Time {
	if j.State != row.Running {
		return now
	}
	since := j.StepStarted
	if n := len(j.Past); n > 0 {
		since = msg.Later(since, j.Past[n-1].Start)
	}
	return since
}

// Speedup returns the measured speedup of a malleable job by nodes, or else the declared one; nil: not known.
func Speedup(j *state.Job) malleable.Speedup {
	if j.Progress != nil {
		if s := j.Progress.Speedup(); s != nil {
			return s
		}
	}
	if j.Malleable == nil {
		return nil
	}
	return (&request.Malleable{Speedup: j.Malleable.Speedup}).Declared()
}

// ProgressShown returns what a job has reported and what follows from it, or nil if it has not reported.
func ProgressShown(c *state.Core, j *state.Job) *api.Progress {
	p := j.Progress
	if p == nil || p.Last == nil {
		return nil
	}
	a := &api.Progress{Fraction: p.Last.Fraction, At: c.Wall(j.Started.Add(j.Suspended + time.Duration(p.Last.At)*time.Second))}
	for _, r := range p.Runs {
		a.Measured = append(a.Measured, api.Measured{Nodes: r.Nodes, Seconds: r.Seconds, Fraction: round(r.Fraction)})
	}
	if s := p.Speedup(); s != nil {
		a.Speedup = speedupText(s)
	}
	return a
}

func speedupText(s malleable.Speedup) string {
	if f, ok := s.(malleable.Amdahl); ok {
		s = malleable.Amdahl(round(float64(f)))
	}
	return fmt.Sprint(s)
}

// round keeps four decimal places.
func round(x float64) float64 { return math.Round(x*1e4) / 1e4 }
