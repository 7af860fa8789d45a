package msg

import (
	"slices"
	"strings"
)

// HoldFlags are the flags of all holds. Our own node mapping has chosen the nodes. It considers the
// jobs that run there now (IGNORE_JOBS) and all other holds. A node may be held for several jobs, one
// after another, and a job's time limit is later than the planned time to give a node back. With
// OVERLAP, Slurm lets holds share nodes, and starts a job in its own hold although other holds follow.
// Administrators' reservations do not obstruct them. When a hold ends, jobs that wait for it must
// not become held (NO_HOLD_JOBS_AFTER_END).
var HoldFlags = []string{"IGNORE_JOBS", "OVERLAP", "NO_HOLD_JOBS_AFTER_END"}

// StartFlags are the flags of a hold to start in. Such a hold is long. With PURGE_COMP, Slurm deletes
// it once it has begun and has had no job for five minutes. So nodes are not held long for nothing
// while the sidecar is down.
var StartFlags = append(slices.Clip(HoldFlags), "PURGE_COMP=5")

// Same reports whether two lists are the same slice.
func Same[T any](a, b []T) bool { return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0]) }

// Earlier is how many seconds a hold may begin before its step without a correction, because
// planned times shift by seconds all the time.
const Earlier = 10

// FlagsOfStuckHolds are added to a hold that a companion stays in, so that the hold ends soon after the companion.
var FlagsOfStuckHolds = StartFlags[len(HoldFlags):]

// Both returns the list of a hold and a reservation of the site ("": none of these). Slurm lets only jobs ask for it whose users
// may use both.
func Both(hold, inside string) string { return strings.Trim(hold+","+inside, ",") }
