package simulate

import (
	"fmt"
	"slices"
	"time"

	"github.com/evoslurm/evoslurm/adapter/job/request"
)

// startsOver judges the run before by the profile that it had.
func (a *App) startsOver() {
	a.Wrong, a.First = append(a.Wrong, a.judged()...), len(a.Steps)
}

// judged returns the steps of the current run in which it did not get what its profile says.
func (a *App) judged() (wrong []string) {
	for _, b := range a.Steps[a.First:] {
		if b.Step > len(a.Profile) {
			wrong = append(wrong, fmt.Sprintf("%s began step %d, and has %d", a.Name, b.Step, len(a.Profile)))
		} else if want := a.Profile[b.Step-1].Nodes; !a.within(b.Step, b.Nodes) && !(b.Bound && b.Nodes == 2 && want == 1) && !a.standsIn(b) && !a.withFailed(b) && !a.beganAsBefore(b) && !(a.PeaksFrom > 0 && b.At >= a.PeaksFrom && b.Step == 1 && b.Nodes == a.Profile.Peak()) {
			wrong = append(wrong, fmt.Sprintf("%s began step %d on %d nodes, want %d", a.Name, b.Step, b.Nodes, want))
		}
	}
	return wrong
}

// within reports whether an application may have so many nodes in a step.
func (a *App) within(step, nodes int) bool {
	if a.Malleable == nil {
		return nodes == a.Profile[step-1].Nodes
	}
	return nodes >= a.Profile[step-1].Nodes && nodes <= a.Malleable.Max[step-1] && a.Malleable.Sizes.Has(nodes)
}

// standsIn reports whether a step has more nodes than requested because the original request is
// unknown. The step was over when a change was written into the marker; the job was adopted again
// from the marker, requeued, and began the step again. It never has fewer nodes, nor more than any
// of the past steps.
func (a *App) standsIn(b Begun) bool {
	return a.First > 0 && b.Step <= a.Over && b.Nodes >= a.Profile[b.Step-1].Nodes && b.Nodes <= a.Profile[:min(a.Over, len(a.Profile))].Peak()
}

// withFailed reports whether an application had what it may have in a step, apart from nodes that
// have failed since or that it has regained.
func (a *App) withFailed(b Begun) bool {
	for n := b.Nodes - b.Regained; n <= b.Nodes+b.Failed; n++ {
		if a.within(b.Step, n) {
			return true
		}
	}
	return false
}

// beganAsBefore reports whether a job has begun on the nodes requested before a change. slurmctld
// forgot the change in a crash and started the job when it was back, before the sidecar could write
// the change again.
func (a *App) beganAsBefore(b Begun) bool {
	return b.Step == 1 && a.Booted > 0 && b.At >= a.Booted && b.At-a.Booted < time.Minute &&
		slices.ContainsFunc(a.Before, func(r request.Request) bool { return r.Profile[0].Nodes == b.Nodes })
}
