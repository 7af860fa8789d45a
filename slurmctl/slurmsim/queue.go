package slurmsim

import (
	"cmp"
	"maps"
	"slices"
	"strings"

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
	return cmp.Or(cmp.Compare(b.Part.Tier, a.Part.Tier), cmp.Compare(b.Priority, a.Priority),
		a.SubmitTime.Compare(b.SubmitTime), cmp.Compare(a.ID, b.ID))
}

// jobTable holds the records of jobs.
type jobTable struct {
	Jobs     map[slurmctl.JobID]*job
	LastID   slurmctl.JobID
	Pending  []*job // most urgent first, unless disorder is set
	Disorder bool
	Special  bool   // some job has waited for more than nodes, or was changed
	Active   []*job // running and suspended jobs, in order of start
	Shared   int    // active jobs that share nodes
	Ending   []*job // completing
	Merged   []*job // merged expanders that still count
	ByEnd    []*job // active jobs by the ends of their limits; nil if to be built
}

// queued adds to the list of pending jobs; unqueued removes.
func (t *jobTable) queued(j *job) {
	if n := len(t.Pending); n > 0 && byUrgency(t.Pending[n-1], j) > 0 {
		t.Disorder = true
	}
	t.Pending = append(t.Pending, j)
	t.Special = t.Special || !j.plain()
}

func (t *jobTable) unqueued(j *job) {
	if i := slices.Index(t.Pending, j); i >= 0 {
		t.Pending = slices.Delete(t.Pending, i, i+1)
	}
}

// inactive removes a job from the active jobs.
func (t *jobTable) inactive(j *job) {
	if i := slices.Index(t.Active, j); i >= 0 {
		t.Active = slices.Delete(t.Active, i, i+1)
		if !j.whole() {
			t.Shared--
		}
	}
	if i := slices.Index(t.ByEnd, j); i >= 0 {
		t.ByEnd = slices.Delete(t.ByEnd, i, i+1)
	}
}

// drop removes a job from the completing jobs.
func (t *jobTable) drop(j *job) {
	if i := slices.Index(t.Ending, j); i >= 0 {
		t.Ending = slices.Delete(t.Ending, i, i+1)
	}
}

// leaving returns the completing jobs.
func (t *jobTable) leaving() []*job {
	var all []*job
	for _, j := range t.Ending {
		if j.State == slurmctl.Completing {
			all = append(all, j)
		}
	}
	return all
}

// byLimit returns the active jobs in the order in which their limits end them.
func (t *jobTable) byLimit() []*job {
	if t.ByEnd == nil && len(t.Active) > 0 {
		t.ByEnd = slices.Clone(t.Active)
		slices.SortStableFunc(t.ByEnd, func(a, b *job) int { return cmp.Compare(a.Ends, b.Ends) })
	}
	return t.ByEnd
}

// refersTo reports whether a pending or running job uses the reservation.
func (t *jobTable) refersTo(name string) bool {
	in := func(j *job) bool {
		return j.Reservation != "" && slices.Contains(strings.Split(j.Reservation, ","), name)
	}
	return slices.ContainsFunc(t.Pending, in) || slices.ContainsFunc(t.Active, in)
}

// count is the use of a bound: running jobs, their nodes, and submitted jobs.
type count struct{ jobs, nodes, submitted int }

// counted counts the active jobs that f selects. Slurm keeps counting merged expanders until it
// rereads its configuration (measured on 22.05).
func (t *jobTable) counted(f func(*job) bool) (n count) {
	for _, j := range t.Active {
		if f(j) {
			n.jobs++
			n.submitted++
			n.nodes += len(j.Nodes)
		}
	}
	for _, j := range t.Merged {
		if f(j) {
			n.jobs++
			n.submitted++
		}
	}
	for _, j := range t.Pending {
		if f(j) {
			n.submitted += j.ArrayTasks
		}
	}
	return n
}
