package msg

import (
	"time"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/internal/config"
)

// View holds what the sidecar shows about itself. A step makes it, and it never changes.
type View struct {
	Status    api.Status // without the strategy's name and note
	Jobs      []api.Job  // not ended
	Ended     []api.Job
	Owners    map[uint32]uint32 // Slurm id → uid
	Coming    map[uint32]bool   // Slurm ids of jobs that will be adopted
	Operators config.Operators
	SlurmUser uint32
	Reading   api.Reading
	AsSlurm   bool // users with more rights in Slurm may read more
	Private   Private
	Base      map[uint32]uint32 // Slurm id of a companion or link → base job

	Seen      int           // jobs of all kinds in Slurm, by the last poll
	Holds     int           // number in Slurm
	HeldNodes int           // nodes in these holds
	Skew      time.Duration // lead of Slurm's clock over the core's
	IdleNodes int           // nodes of these that are idle and kept from waiting jobs
	Idle      Idle
}

// Idle holds the nodes that are awake without a job.
type Idle struct {
	Nodes int
	Watts float64 // that they draw, by the configuration
	Mean  float64 // watts of an idle node, averaged over all nodes of the site
}

// Private holds what Slurm's PrivateData hides from users who are not operators, besides jobs.
type Private struct{ Nodes, Partitions, Reservations bool }
