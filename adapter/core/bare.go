package core

import (
	"fmt"

	"github.com/evoslurm/evoslurm/adapter/request"
)

// There are sites whose job_submit plugin refuses every update of a job that lacks Account=
// (slurmctl.ErrWantsAccount). Slurm takes an account for pending jobs alone: so a job that
// runs can be given companions, and these can be ended, but it can neither be merged into, nor
// be made smaller, nor be given a longer time limit. Whether a site is such a one is found out
// by an update that changes nothing, of each parked job where there are plugins (mayTry).

const (
	bareWords  = "the site's job_submit plugin refuses updates without Account=, which Slurm takes for pending jobs only, so that a job that runs cannot be changed"
	bareRemedy = "Begin with the fewest nodes and give back as many as a growth has brought, use --drive=chain, or have the administrator let updates of running jobs pass"
)

// siteDrive is the drive mode that jobs get here, and why.
func (c *Core) siteDrive() (request.Drive, string) {
	if c.bare && c.drive == request.Merge {
		return request.Companion, bareWords
	}
	return c.drive, c.driveReason
}

// onceWords say that Slurm resizes a job only once.
func (c *Core) onceWords() string {
	return fmt.Sprintf("and Slurm %s without slurmdbd resizes a job only once", c.slurmConfig.Version)
}

// whole reports whether nodes to be given back are those of companions, each with all of
// its own.
func whole(held []Part, surplus []string) bool {
	for i, p := range held {
		if rest := Without(p.Nodes, surplus); len(rest) < len(p.Nodes) && (i == 0 || len(rest) > 0) {
			return false
		}
	}
	return true
}
