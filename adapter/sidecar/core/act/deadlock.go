package act

import (
	"fmt"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
)

// The core makes promises so that no two jobs wait for each other. Lapsed promises no longer
// prevent that. If two jobs exceed their profiles, each may keep nodes that the other needs to
// continue, and give them back only at its end. Then neither job gets a longer time limit until
// the other has ended. Otherwise both would wait forever.

// Deadlocked returns a job that has planned nodes of j and itself waits, directly or through other
// jobs, for nodes of j. It returns nil if there is none. It follows the wait-for graph of the
// planned growths: O(jobs² · nodes), for waiting jobs only.
func Deadlocked(c *state.Core, j *state.Job) *state.Job {
	seen := map[*state.Job]bool{}
	var reaches func(*state.Job) bool // j, from another
	reaches = func(from *state.Job) bool {
		if from == j {
			return true
		}
		if seen[from] {
			return false
		}
		seen[from] = true
		for _, other := range awaited(c, from) {
			if reaches(other) {
				return true
			}
		}
		return false
	}
	for _, other := range awaited(c, j) {
		if other != j && reaches(other) {
			return other
		}
	}
	return nil
}

// awaited lists the jobs that have nodes of the growth for which j waits, or come before it.
func awaited(c *state.Core, j *state.Job) (all []*state.Job) {
	if j.State != row.Waiting || !j.Mode.CarriesNodes {
		return nil
	}
	next := j.Next()
	for _, other := range c.Active {
		if other != j && other.Runs() && (other.BaseID() == j.YieldedTo || next != nil && len(msg.Common(next.Nodes, other.Nodes())) > 0) {
			all = append(all, other)
		}
	}
	return all
}

// deadlockWords explains why a job's time limit is not raised.
func deadlockWords(other *state.Job) string {
	return fmt.Sprintf("it waits for nodes of %s, which waits for its own: the one of them that ends, or is cancelled, frees the other", msg.JobNumber(other.SlurmID))
}
