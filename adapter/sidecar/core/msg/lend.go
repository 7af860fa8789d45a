package msg

import "github.com/evoslurm/evoslurm/planner/malleable"

// A built-in malleability policy decides immediately. A plugin is asked with an effect, as a strategy is for a
// plan: the manager's run stops there. Once the answer ([Resized]) arrives, the manager repeats the current
// phase from its beginning with all answers so far. Nothing changes before the last answer, and equal state
// makes equal questions.

// Question holds a question to a malleability policy.
type Question struct {
	Asked   malleable.Request
	Jobs    []malleable.Job // by increasing start time
	Nodes   int             // in the cluster
	Now     int64
	Free    int   // idle nodes
	Waiting []int // nodes that pending stock jobs need to start, in the order of the queue
}

// FallbackPolicy answers if a plugin fails.
var FallbackPolicy malleable.Policy = malleable.EGS{}
