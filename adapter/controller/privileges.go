package controller

import (
	"context"
	"os/user"
	"strconv"
	"sync"
	"time"

	"github.com/evoslurm/evoslurm/slurmctl"
)

// privileges are those that slurmdbd gives users, as they were last read: only when somebody
// asks for whom it matters.
type privileges struct {
	mu    sync.Mutex
	known slurmctl.Privileges
	read  time.Time
}

// privilegesFor is for how long they are believed, and for how long slurmdbd is not asked again
// where it has not answered.
const privilegesFor = 2 * time.Minute

// of are those of now.
func (p *privileges) of(ctx context.Context, read func(context.Context) (slurmctl.Privileges, error)) (slurmctl.Privileges, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.read.IsZero() && time.Since(p.read) < privilegesFor {
		return p.known, nil
	}
	known, err := read(ctx)
	p.known, p.read = known, time.Now()
	return known, err
}

// Sees gives what reports whether a user reads the jobs of an account, or of all (""), for being
// more than a user in Slurm: where the rule who may read is Slurm's own.
func (c *Controller) Sees(ctx context.Context, uid uint32) func(account string) bool {
	nothing := func(string) bool { return false }
	if !c.view.Load().AsSlurm {
		return nothing
	}
	who, err := user.LookupId(strconv.FormatUint(uint64(uid), 10))
	if err != nil {
		return nothing
	}
	known, err := c.privileges.of(ctx, c.slurm.Privileges)
	if err != nil {
		c.log.WithError(err).Warn("operators and coordinators of accounts are not known: they read their own jobs alone")
	}
	return func(account string) bool { return known.See(who.Username, account) }
}
