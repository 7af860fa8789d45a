package core

import (
	"fmt"

	"github.com/evoslurm/evoslurm/adapter/request"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// asked is what a Slurm job asked for, or why that is not known.
type asked struct {
	request slurmctl.JobRequest
	user    *slurmctl.User
	userErr error // that it is not known
	err     error
	known   bool
}

// readAsked gives what a job asked for, or has it read: a later cycle
// knows it then.
func (c *Core) readAsked(id slurmctl.JobID, uid uint32) (asked, bool) {
	if read := c.asked[id]; read != nil {
		return *read, read.known
	}
	read := &asked{}
	if c.work.room() && c.ask(nil, fmt.Sprint("request ", id), Task{Command: ReadRequest{id, uid, c.slurmConfig}}, func(o Outcome) {
		if transient(o.Err) {
			delete(c.asked, id)
			return
		}
		answer, _ := o.Result.(Asked)
		read.request, read.user, read.userErr, read.err, read.known = answer.Request, answer.User, answer.UserErr, o.Err, true
		c.nextCycle = c.now
	}) {
		c.asked[id] = read
	}
	return asked{}, false
}

// learn takes over what the job asked for; the first step has so many nodes.
func (j *job) learn(a asked, first int) error {
	if a.err != nil {
		return a.err
	}
	gres, err := a.request.GRESPerNode(first)
	if err != nil {
		return err
	}
	j.asked, j.gres = &a.request, gres
	return nil
}

// learnAll has the requests read of the jobs that were adopted before this process, and
// forgets what is no longer of use.
func (c *Core) learnAll(s *snapshot) {
	for _, j := range c.active {
		if j.asked != nil || j.ending {
			continue
		}
		id := j.id()
		if j.isChain() {
			id = j.chain[c.currentLink(j)]
		}
		if s.byID[id] == nil {
			continue // follow finds out
		}
		a, known := c.readAsked(id, j.UID)
		if !known {
			continue
		}
		first := j.Profile[0].Nodes
		if j.isChain() {
			first = j.Profile[c.currentLink(j)].Nodes
		}
		if err := j.learn(a, first); err != nil {
			c.logJob(j).WithError(err).Warn("what the job asked for is not understood")
			j.asked = &slurmctl.JobRequest{}
		}
	}
	for id, read := range c.asked {
		if read.known && (s.byID[id] == nil || c.owner(id) != nil && c.owner(id).asked != nil) {
			delete(c.asked, id)
		}
	}
}

// driveOf is the drive mode that a job gets, and why: what it asked for, else the
// site's, else what works here. Merging that can never work is not tried: a job that
// asked for it is refused, in words, and where the site did companions take its place.
func (c *Core) driveOf(r *slurmctl.Job, sp request.Request) (drive request.Drive, why string, err error) {
	const inWords = "drive mode merge cannot work here: %s; submit the job without --drive"
	wanted := sp.Drive
	drive, why = c.drive, c.driveReason
	switch {
	case wanted == request.Merge && c.drive != request.Merge:
		return "", "", fmt.Errorf(inWords, c.driveReason)
	case wanted == request.Merge:
		if against := c.noMerge(r, sp.Profile); against != "" {
			return "", "", fmt.Errorf(inWords, against)
		}
		drive, why = wanted, "the job asked for it"
	case wanted == request.Companion:
		drive, why = wanted, "the job asked for it"
	case c.cfg.Drive == request.Companion: // what is no chain as submitted cannot become one
		drive, why = request.Companion, "the configuration says so"
	case c.drive == request.Merge && (c.site.Root || r.User == c.site.User):
		if against := c.noMerge(r, sp.Profile); against != "" {
			drive, why = request.Companion, against
		}
	}
	if drive == request.Companion && !c.site.Root && r.User != c.site.User {
		return "", "", fmt.Errorf("drive mode companion (%s) submits jobs in the user's name, for which the sidecar must run as root, not as %s", why, c.site.User)
	}
	return drive, why, nil
}

// gid is the group of the job's user; 0 where that is not known.
func (a asked) gid() uint32 {
	if a.user == nil {
		return 0
	}
	return a.user.GID
}
