package row

import (
	"slices"
	"time"

	"github.com/evoslurm/evoslurm/planner"
	"github.com/evoslurm/evoslurm/planner/malleable"
)

// These verbs say what happened to a job, as far as the database keeps it. Package state has the others.

// MostOffers is how many offers of a job the sidecar keeps, to count each answer once.
const MostOffers = 4

// mostChanges is how many changes of a job are remembered, so that each is made only once.
const mostChanges = 4

// NotLaunched records that the job stays parked: Slurm was not asked to start it, or refused.
func (j *Job) NotLaunched() { j.State = Queued }

// EnterStep corrects which step the job is in, and since when.
func (j *Job) EnterStep(step int, began time.Time) { j.Step, j.StepStarted = step, began }

// EndLastStep records that the application has ended the last step.
func (j *Job) EndLastStep(at time.Time) { j.StepEnded = at }

// StayInStep records that the step goes on: the growth to the next step was given up.
func (j *Job) StayInStep() { j.State, j.StepEnded = Running, time.Time{} }

// End records that the job ended at a time, in a state of Slurm.
func (j *Job) End(at time.Time, st string) { j.State, j.Ended, j.EndState = Ended, at, st }

// Lose records that nodes failed which the job had; the application learns it when it ends a step.
func (j *Job) Lose(step int, nodes []string) {
	if len(nodes) > 0 {
		j.lose(step, append(j.LostSince(step), nodes...))
	}
}

// lose replaces the losses of a step, and forgets the steps before the previous one, and later steps.
func (j *Job) lose(step int, nodes []string) {
	kept := slices.DeleteFunc(slices.Clone(j.Losses), func(l Loss) bool { return l.Step != step-1 })
	slices.Sort(nodes)
	if nodes = slices.Compact(nodes); len(nodes) > 0 {
		kept = append(kept, Loss{step, nodes})
	}
	j.Losses = kept
}

// LostSince returns the nodes that the job lost in a step or later, sorted. Losses are kept for the current step and the one
// before: the application may ask again for the answer to the call that ended that step.
func (j *Job) LostSince(step int) (nodes []string) {
	for _, l := range j.Losses {
		if l.Step >= step {
			nodes = append(nodes, l.Nodes...)
		}
	}
	slices.Sort(nodes)
	return slices.Compact(nodes)
}

// BeginAgain records that Slurm put the job, or a link of its chain, back into the queue, so that it begins again in a step.
// What it lost in the step that it was in counts for that step.
func (j *Job) BeginAgain(step int) {
	j.Restarts++
	j.lose(step, j.LostSince(j.Step))
}

// Choose records the alternative of a moldable job, and reports whether it is another one than before. Until
// Slurm starts the job, the choice is not fixed.
func (j *Job) Choose(choice int, fixed bool) (changed bool) {
	m := *j.Moldable
	m.Choice, m.Fixed = choice, fixed
	changed = choice != j.Moldable.Choice
	j.Moldable = &m
	if changed {
		j.Profile = m.Alternatives[choice]
	}
	return changed
}

// Floor raises the profile to the nodes that the job cannot give back.
func (j *Job) Floor(p planner.Profile) { j.Profile = p }

// Delay moves the times of the current step by a time for which the job was suspended.
func (j *Job) Delay(by time.Duration) { j.Suspended += by }

// Progressed records what the application has reported in all.
func (j *Job) Progressed(p *malleable.Progress) { j.Progress = p }

// Changed remembers a change that was made.
func (j *Job) Changed(made Change) {
	j.Changes = append(slices.Clone(j.Changes[max(len(j.Changes)-mostChanges+1, 0):]), made)
}

// OpenChange returns the last change if it is not known whether Slurm has it.
func (j *Job) OpenChange() (last Change, open bool) {
	if n := len(j.Changes); n > 0 {
		last = j.Changes[n-1]
	}
	return last, last.Open
}

// CloseChange records that it is known whether Slurm has the last change. It reports whether it was not.
func (j *Job) CloseChange() bool {
	last, open := j.OpenChange()
	if open {
		last.Open = false
		j.Changes = append(slices.Clone(j.Changes[:len(j.Changes)-1]), last)
	}
	return open
}

// AddOffer adds an offer to the job, and forgets old ones.
func (j *Job) AddOffer(o Offer, keep func(Offer) bool) {
	j.Offers = append(slices.Clone(j.Offers), o)
	for len(j.Offers) > MostOffers {
		i := max(slices.IndexFunc(j.Offers[:len(j.Offers)-1], func(old Offer) bool { return !keep(old) }), 0)
		j.Offers = slices.Delete(j.Offers, i, i+1)
	}
}

// UpdateOffer replaces an offer of the job.
func (j *Job) UpdateOffer(o Offer) {
	j.Offers = slices.Clone(j.Offers)
	for i := range j.Offers {
		if j.Offers[i].ID == o.ID {
			j.Offers[i] = o
		}
	}
}

// DriveBy records the job's drive mode. The core must look up its row of the table then.
func (j *Job) DriveBy(drive string) { j.Drive = drive }
