package plan

import (
	"time"

	"github.com/evoslurm/evoslurm/slurmctl"
)

// If an expander does not begin within ExpanderBegins, the sidecar asks for it again. It lasts for
// at least a minute. So for BringSeconds its nodes must not be reserved for others.
const (
	ExpanderBegins = 5 * time.Second
	BringSeconds   = int64((slurmctl.ShortestLimit + ExpanderBegins) / time.Second)
)

const (
	// MirrorAge excludes jobs that start at once.
	MirrorAge = 5 * time.Second
	// MirrorDelay is how much later than planned Slurm itself would start a job.
	MirrorDelay = 10 * time.Second
)
