package msg

import (
	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
	"github.com/evoslurm/evoslurm/planner"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// Site holds what the core learns at startup about where it runs.
type Site struct {
	Version string // of the sidecar
	User    string // user that the sidecar runs as
	Host    string // host on which the sidecar runs, without its domain
	Root    bool   // the sidecar may submit jobs in the name of any user
}

// Strategy holds what the core needs to know about the strategy in use.
type Strategy struct {
	ExpandLimit planner.ExpandLimit
	Policy      string // policy in use for malleable jobs; "" if it is the configured one
	Plugin      bool   // the policy is a plugin
}

// Books holds the contents of the database at startup.
type Books struct {
	Active     []BookedJob // not ended, oldest first
	Ended      []BookedJob // the last ones, in the order of their ends
	Known      []row.Known
	LastRow    int64
	Intents    []row.Intent // never settled
	LastIntent int64
	Holds      []row.Hold  // rows of holds that were not given up
	LastHold   int64       // highest ID of such a row, given up or not
	Delays     []row.Delay // of stock jobs that waited
	GrowDelays []row.GrowDelay
	Epilogs    []row.Epilog
	Arrivals   []row.Arrivals
	Aside      []Aside        // jobs to set aside
	Doubt      slurmctl.JobID // job being handled when the previous process ended, if that proves nothing; 0 if none
}

// BookedJob holds a job with everything that the database records about it.
type BookedJob struct {
	Job   row.Job
	Plan  []row.Span
	Past  []row.Span
	Parts []row.Part
	Bound string // the nodes that the job may have, as the user listed them
	Open  row.Promise
}

// CopyOf returns a pointer to a copy.
func CopyOf[T any](p *T) *T {
	if p == nil {
		return nil
	}
	n := *p
	return &n
}
