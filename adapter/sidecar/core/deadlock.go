package core

import (
	"fmt"

	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
)

// Promises are made so that no job waits for one that waits for it. Those that have lapsed are
// gone, though: of two jobs that outlasted their profiles each may keep nodes without which
// the other cannot go on, and give them back only at its end. Then neither gets a longer time
// limit until the other has ended: else both would wait for ever.

// deadlocked gives a job that holds planned nodes of a job which waits for its growth, and
// waits, in turn, for one of that job's; nil: there is none. It follows the wait-for graph of
// the growths that are planned: O(jobs² · nodes), for jobs that wait only.
func (c *Core) deadlocked(j *job) *job {
	seen := map[*job]bool{}
	var reaches func(*job) bool // j, from another
	reaches = func(from *job) bool {
		if from == j {
			return true
		}
		if seen[from] {
			return false
		}
		seen[from] = true
		for _, other := range c.awaited(from) {
			if reaches(other) {
				return true
			}
		}
		return false
	}
	for _, other := range c.awaited(j) {
		if other != j && reaches(other) {
			return other
		}
	}
	return nil
}

// awaited lists the jobs that have nodes of the growth for which j waits.
func (c *Core) awaited(j *job) (all []*job) {
	if j.State != row.Waiting || !j.mode.carriesNodes || j.next() == nil {
		return nil
	}
	for _, other := range c.active {
		if other != j && other.runs() && len(common(j.next().nodes, other.nodes())) > 0 {
			all = append(all, other)
		}
	}
	return all
}

// deadlockWords tell why a job's time limit is as it is.
func deadlockWords(other *job) string {
	return fmt.Sprintf("it waits for nodes of %s, which waits for its own: the one of them that ends, or is cancelled, frees the other", jobNumber(other.SlurmID))
}
