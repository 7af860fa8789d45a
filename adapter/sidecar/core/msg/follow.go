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

// MostEnded is how many ended jobs are in memory, for evosqueue --states=all. The history has them all.
const MostEnded = 200
