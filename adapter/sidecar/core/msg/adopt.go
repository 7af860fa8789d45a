package msg

import (
	"time"

	"github.com/evoslurm/evoslurm/adapter/job/request"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// Aside describes a job that is set aside.
type Aside struct {
	Job       slurmctl.JobID
	Submitted time.Time // whole seconds; Slurm may reuse the number
	User      string
	Why       string
}

// Mark holds what the marker in a job's comment says.
type Mark struct {
	Job     slurmctl.JobID
	Comment string
	Request request.Request
	Asked   bool // there is a marker
	Err     error
}
