package core

import (
	"errors"
	"fmt"
	"time"

	"github.com/evoslurm/evoslurm/adapter/job/request"
	"github.com/evoslurm/evoslurm/planner"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// asked holds the request of a Slurm job, or why the request is not known.
type asked struct {
	request         slurmctl.JobRequest
	user            *slurmctl.User
	userErr         error // why the user is not known
	err             error
	script          string        // the node of the batch script, if the job was found running; "" if not known
	suspendedBefore time.Duration // how long Slurm had suspended such a job by then
	known           bool

	tries int       // failed attempts to understand the request
	again time.Time // when the next attempt is due
}

// If a request is not understood, or its user cannot be looked up at the moment, the sidecar
// asks again. It triples the pause each time and tries for more than three minutes in all. So a
// garbled answer or an unavailable user directory does not decide about the job.
const (
	askTries = 5
	askPause = 5 * time.Second
)

// askPauseAfter returns the pause after a failed attempt that follows some earlier ones.
func askPauseAfter(tries int) time.Duration {
	pause := askPause
	for range tries {
		pause *= 3
	}
	return pause
}

// readAsked returns the request of a job, or starts reading it for a later cycle. If the job has
// a start time that can be tried, the sidecar also tries whether the site lets the job be changed.
// With a profile p, it also tries whether the job may grow accordingly.
func (c *Core) readAsked(r *slurmctl.Job, p planner.Profile) (asked, bool) {
	id := r.ID
	read := c.asked[id]
	if read == nil {
		read = &asked{}
	}
	if read.known || c.now.Before(read.again) || !c.work.room() || !c.work.roomFor(r.UID) {
		return *read, read.known
	}
	if c.ask(nil, fmt.Sprint("request ", id), KindRequest, Task{Command: c.readRequest(r, p)}, Args{Started: r.StartTime}) {
		c.asked[id] = read
	}
	return asked{}, false
}

// settleRequest takes over the request of a job.
func (c *Core) settleRequest(_ *job, p *Pending, o Outcome) {
	if transient(o.Err) {
		return // read it again a little later
	}
	id := commandOf[ReadRequest](p).Job
	read := c.asked[id]
	if read == nil {
		read = &asked{} // the job is gone
	}
	answer, _ := o.Result.(Asked)
	read.request, read.user, read.userErr, read.err = answer.Request, answer.User, answer.UserErr, o.Err
	read.script, read.suspendedBefore = answer.Script, c.suspendedFor(p.Args.Started, answer.Used)
	if read.why() == nil || read.tries+1 >= askTries || errors.Is(o.Err, ErrSiteRefuses) {
		read.known = true
		c.nextCycle = c.now
		return
	}
	read.again = c.now.Add(askPauseAfter(read.tries))
	read.tries++
	c.log.WithField("job", id).WithError(read.why()).Warn("cannot parse a job's request, reading it again")
}

// why returns why the request is not understood, or why its user is not known.
func (a *asked) why() error { return errors.Join(a.err, a.userErr) }

// understood returns the request, or nil if it is not known.
func (a *asked) understood() *slurmctl.JobRequest {
	if a.err != nil {
		return nil
	}
	return &a.request
}

// mayTry returns the start time of a parked job if the site has plugins that may refuse changes.
// The sidecar tries a change early, before anything depends on it.
func (c *Core) mayTry(r *slurmctl.Job) time.Time {
	if r.State != slurmctl.Pending || c.slurmConfig.Values["JobSubmitPlugins"] == "" || r.StartTime.Sub(c.now) < parked/2 {
		return time.Time{}
	}
	return r.StartTime
}

// readRequest returns the command that reads the request of a job, with the changes to try.
func (c *Core) readRequest(r *slurmctl.Job, p planner.Profile) ReadRequest {
	read := ReadRequest{Job: r.ID, UID: r.UID, Config: c.slurmConfig, Try: c.mayTry(r), Running: running(r)}
	if p != nil && !read.Try.IsZero() {
		read.First, read.Growth, read.Own = p[0].Nodes, request.MostAtOnce(p), !c.site.Root && r.User != c.site.User
	}
	return read
}

// running reports whether a job was found running.
func running(r *slurmctl.Job) bool {
	return r.State == slurmctl.Running || r.State == slurmctl.Suspended
}

// learn takes over the request of a job whose first step has `first` nodes.
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

// learnAll reads the requests of the jobs that an earlier process adopted, and deletes requests
// that are no longer needed.
func (c *Core) learnAll(s *snapshot) {
	for _, j := range c.active {
		if j.asked != nil || j.ending {
			continue
		}
		id := c.presentJob(j)
		if s.byID[id] == nil {
			continue // follow handles that
		}
		a, known := c.readAsked(s.byID[id], nil)
		if !known {
			continue
		}
		first := j.Profile[0].Nodes
		if j.mode.stepsAreJobs {
			first = j.Profile[c.currentLink(j)].Nodes
		}
		if err := j.learn(a, first); err != nil {
			c.logJob(j).WithError(err).Warn("cannot parse the job's request")
			j.asked = &slurmctl.JobRequest{StepMgr: c.facts.stepManagers} // the safe assumption
		}
		c.setMode(j)
	}
	for id, read := range c.asked {
		if gone := s.byID[id] == nil; gone && read.tries > 0 || read.known && (gone || c.owner(id) != nil && c.owner(id).asked != nil) {
			delete(c.asked, id)
		}
	}
}

// gid returns the group of the job's user, or 0 if it is not known.
func (a asked) gid() uint32 {
	if a.user == nil {
		return 0
	}
	return a.user.GID
}
