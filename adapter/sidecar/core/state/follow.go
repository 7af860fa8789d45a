package state

import (
	"fmt"
	"time"

	"github.com/evoslurm/evoslurm/slurmctl"
)

// More nodes do not help against a limit. If an account, QOS, or partition allows no more at present, the job
// waits with the nodes that it has, and holds no nodes that other jobs could use. The sidecar tries again when
// the limit may have room, and replans the job then.

// KeptBack describes a start or growth that Slurm does not allow at present.
type KeptBack struct {
	Limit  string // squeue's reason, or the words of a refusal
	Text   string // what evosqueue says
	To     int    // number of nodes to grow to; 0: it is a start
	Again  time.Time
	Look   bool      // read the limit's figures before the next attempt
	Fresh  time.Time // the figures must be read at this time or later
	Looked time.Time // when they were last read
	// GivenUp reports that the cause is not a limit: only a request of the script starts another attempt.
	GivenUp bool
	Usage   Usage // highest usage since then of the jobs that the limit may count
}

// Say sets what evosqueue says.
func (k *KeptBack) Say(limit string) {
	k.Text = "Slurm did not start it: " + limit
	if k.To > 0 {
		k.Text = fmt.Sprintf("the growth to %d nodes waits for %s", k.To, limit)
	}
}

// Usage holds what some jobs use in Slurm.
type Usage struct{ Jobs, Nodes, CPUs int }

func (u Usage) Less(than Usage) bool {
	return u.Jobs < than.Jobs || u.Nodes < than.Nodes || u.CPUs < than.CPUs
}

func (u Usage) Most(other Usage) Usage {
	return Usage{max(u.Jobs, other.Jobs), max(u.Nodes, other.Nodes), max(u.CPUs, other.CPUs)}
}

// StartedPart is one of a job's Slurm jobs and when it started.
type StartedPart struct {
	Job     slurmctl.JobID
	Started time.Time
}
