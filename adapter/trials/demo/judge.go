package demo

import (
	"fmt"
	"strings"
	"time"

	"github.com/evoslurm/evoslurm/planner"
)

// tolerance is how long after a step boundary the application must be able to use its nodes, and so
// how much longer than its limit a step may last.
const tolerance = 2 * time.Second

// judge tells all that is not as it must be; nothing, if all is well.
func judge(evolving, rigid outcome) []string {
	var faults []string
	for _, r := range evolving.jobs {
		faults = append(faults, r.faults(r.Evolving)...)
	}
	for _, r := range rigid.jobs {
		for _, f := range r.faults(false) {
			faults = append(faults, "at peak size: "+f)
		}
	}
	for _, o := range []outcome{evolving, rigid} {
		if !o.leftovers.None() {
			faults = append(faults, fmt.Sprintf("Slurm is not clean after %q: %s", o.title, o.leftovers))
		}
	}
	return faults
}

// faults tells what is wrong with one job.
func (r *result) faults(evolving bool) []string {
	var faults []string
	fault := func(format string, args ...any) {
		faults = append(faults, fmt.Sprintf("job %d %s: ", r.id, r.Name)+fmt.Sprintf(format, args...))
	}
	switch r.endState {
	case "COMPLETED":
	case "":
		fault("Slurm does not know how it ended")
	default:
		fault("it ended %s", strings.ToLower(r.endState))
	}
	if !evolving {
		if r.trace.end.IsZero() {
			fault("it did not come to its end")
		}
		return faults
	}
	for i, step := range r.Profile {
		if i >= len(r.trace.steps) {
			fault("step %d never began", i+1)
			break
		}
		s := r.trace.steps[i]
		for _, a := range []struct {
			when string
			answer
		}{{"beginning", s.first}, {"end", s.last}} {
			switch n := len(a.nodes); {
			case a.came.IsZero():
				fault("step %d: srun was not run at its %s", i+1, a.when)
			case a.status != 0:
				fault("step %d: srun failed at its %s (exit status %d)", i+1, a.when, a.status)
			case n != step.Nodes:
				fault("step %d: %s at its %s, requested are %d", i+1, count(n), a.when, step.Nodes)
			}
		}
		if held, longest := r.held(i), r.longest(i); held > 0 && (held < seconds(step.Duration) || held > longest) {
			fault("step %d lasted %.1f s, requested are %d s and allowed %.1f s", i+1, held.Seconds(), step.Duration, longest.Seconds())
		}
		if i > 0 {
			allowed := r.longest(i-1) - seconds(r.Profile[i-1].Duration)
			if latency := r.latency(i); !s.first.came.IsZero() && latency > allowed {
				fault("step %d: its nodes were usable %.2f s after its boundary, allowed are %.0f s", i+1, latency.Seconds(), allowed.Seconds())
			}
		}
	}
	if r.trace.end.IsZero() {
		fault("it did not come to its end")
	}
	return faults
}

// held returns how long step i lasted; 0 where it did not end.
func (r *result) held(i int) time.Duration {
	end := r.trace.stepEnd(i)
	if end.IsZero() {
		return 0
	}
	return end.Sub(r.trace.steps[i].began)
}

// longest returns how long step i may last: its duration, or a multiple of it where the
// job lets it be expanded, and the tolerance.
func (r *result) longest(i int) time.Duration {
	stretch := r.expandLimit().Stretch(r.Profile[i].Duration)
	if stretch == planner.Forever {
		return phaseTime
	}
	return seconds(stretch) + tolerance
}

// latency returns how long after the boundary before step i (counted from 0), which is
// the call of evosctl next, the application had used the step's nodes: a srun over
// all of them had come back.
func (r *result) latency(i int) time.Duration {
	return r.trace.steps[i].first.came.Sub(r.trace.steps[i].called)
}

func seconds(n int64) time.Duration { return time.Duration(n) * time.Second }
