package slurmsim

import (
	"cmp"
	"maps"
	"slices"

	"github.com/evoslurm/evoslurm/slurmctl"
)

func sortedIDs(jobs map[slurmctl.JobID]*job) []slurmctl.JobID { return slices.Sorted(maps.Keys(jobs)) }

// byUrgency compares two jobs by urgency.
func byUrgency(a, b *job) int {
	if in, other := a.Reservation != "", b.Reservation != ""; in != other {
		if in {
			return -1
		}
		return 1
	}
	return cmp.Or(cmp.Compare(b.part.Tier, a.part.Tier), cmp.Compare(b.Priority, a.Priority),
		a.SubmitTime.Compare(b.SubmitTime), cmp.Compare(a.ID, b.ID))
}

// jobTable holds the records of jobs.
type jobTable struct {
	jobs     map[slurmctl.JobID]*job
	lastID   slurmctl.JobID
	pending  []*job // most urgent first, unless disorder is set
	disorder bool
	special  bool   // some job has waited for more than nodes, or was changed
	active   []*job // running and suspended jobs, in order of start
	shared   int    // active jobs that share nodes
	ending   []*job // completing
	merged   []*job // merged expanders that still count
	byEnd    []*job // active jobs by the ends of their limits; nil if to be built
}

// queued adds to the list of pending jobs; unqueued removes.
func (t *jobTable) queued(j *job) {
	if n := len(t.pending); n > 0 && byUrgency(t.pending[n-1], j) > 0 {
		t.disorder = true
	}
	t.pending = append(t.pending, j)
	t.special = t.special || !j.plain()
}

func (t *jobTable) unqueued(j *job) {
	if i := slices.Index(t.pending, j); i >= 0 {
		t.pending = slices.Delete(t.pending, i, i+1)
	}
}

// inactive removes a job from the active jobs.
func (t *jobTable) inactive(j *job) {
	if i := slices.Index(t.active, j); i >= 0 {
		t.active = slices.Delete(t.active, i, i+1)
		if !j.whole() {
			t.shared--
		}
	}
	if i := slices.Index(t.byEnd, j); i >= 0 {
		t.byEnd = slices.Delete(t.byEnd, i, i+1)
	}
}

// drop removes a job from the completing jobs.
func (t *jobTable) drop(j *job) {
	if i := slices.Index(t.ending, j); i >= 0 {
		t.ending = slices.Delete(t.ending, i, i+1)
	}
}

// leaving returns the completing jobs.
func (t *jobTable) leaving() []*job {
	var all []*job
	for _, j := range t.ending {
		if j.State == slurmctl.Completing {
			all = append(all, j)
		}
	}
	return all
}

// byLimit returns the active jobs in the order in which their limits end them.
func (t *jobTable) byLimit() []*job {
	if t.byEnd == nil && len(t.active) > 0 {
		t.byEnd = slices.Clone(t.active)
		slices.SortStableFunc(t.byEnd, func(a, b *job) int { return cmp.Compare(a.ends, b.ends) })
	}
	return t.byEnd
}

// refersTo reports whether a pending or running job uses the reservation.
func (t *jobTable) refersTo(name string) bool {
	in := func(j *job) bool { return j.Reservation == name }
	return slices.ContainsFunc(t.pending, in) || slices.ContainsFunc(t.active, in)
}

// count is the use of a bound: running jobs, their nodes, and submitted jobs.
type count struct{ jobs, nodes, submitted int }

// counted counts the active jobs that f selects. Slurm keeps counting merged expanders until it
// rereads its configuration (measured on 22.05).
func (t *jobTable) counted(f func(*job) bool) (n count) {
	for _, j := range t.active {
		if f(j) {
			n.jobs++
			n.submitted++
			n.nodes += len(j.nodes)
		}
	}
	for _, j := range t.merged {
		if f(j) {
			n.jobs++
			n.submitted++
		}
	}
	for _, j := range t.pending {
		if f(j) {
			n.submitted += j.ArrayTasks
		}
	}
	return n
}
