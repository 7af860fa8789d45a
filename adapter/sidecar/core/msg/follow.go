package msg

import "time"

// Later returns the later of two times. It ensures that no span ends before it began, even if the
// clock was set in between.
func Later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

// Left is nodes that left a job without an action of the sidecar, while it is open whether they failed.
type Left struct {
	Nodes []string
	Whole bool      // a companion that ended: if one of its nodes failed, the job lost all of them
	Step  int       // in which they left
	Seen  time.Time // when the poll that no longer showed them in the job was made
}

// MostEnded is how many ended jobs are in memory, for evosqueue --states=all. The history has them all.
const MostEnded = 200
