package core

import (
	"errors"
	"fmt"
	"time"

	"github.com/evoslurm/evoslurm/adapter/job/request"
	"github.com/evoslurm/evoslurm/planner"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// asked is what a Slurm job asked for, or why that is not known.
type asked struct {
	request         slurmctl.JobRequest
	user            *slurmctl.User
	userErr         error // that it is not known
	err             error
	script          string        // the node of its batch script, of a job that was found running; "": not known
	suspendedBefore time.Duration // for how long Slurm had such a job suspended by then
	known           bool

	tries int       // that were not understood
	again time.Time // when it is asked for again
}

// What is not understood of a job, or whose user is not known at the moment, is asked for
// again, so often and each time after thrice as long, in all for more than three minutes: an
// answer that was garbled, or a directory of users that was away, is not to decide about the job.
const (
	askTries = 5
	askPause = 5 * time.Second
)

// askPauseAfter is the pause after so many tries and one.
func askPauseAfter(tries int) time.Duration {
	pause := askPause
	for range tries {
		pause *= 3
	}
	return pause
}

// readAsked gives what a job asked for, or has it read: a later cycle knows it then.
// Where the job has a start time to try, it is also tried whether the site lets it be changed
// and, by the profile (nil: not), grow.
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

// settleRequest takes over what a job asked for.
func (c *Core) settleRequest(_ *job, p *Pending, o Outcome) {
	if transient(o.Err) {
		return // again, a little later
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
	c.log.WithField("job", id).WithError(read.why()).Warn("what a job asked for is not understood; it is asked for again")
}

// why says why the request is not understood, or whose it is not known.
func (a *asked) why() error { return errors.Join(a.err, a.userErr) }

// understood is the request, nil where it is not known.
func (a *asked) understood() *slurmctl.JobRequest {
	if a.err != nil {
		return nil
	}
	return &a.request
}

// mayTry is the start time of a parked job where the site has plugins that may refuse its
// changes, so that this is known before anything depends on it.
func (c *Core) mayTry(r *slurmctl.Job) time.Time {
	if r.State != slurmctl.Pending || c.slurmConfig.Values["JobSubmitPlugins"] == "" || r.StartTime.Sub(c.now) < parked/2 {
		return time.Time{}
	}
	return r.StartTime
}

// readRequest is the question what a job asked for, with what is tried.
func (c *Core) readRequest(r *slurmctl.Job, p planner.Profile) ReadRequest {
	read := ReadRequest{Job: r.ID, UID: r.UID, Config: c.slurmConfig, Try: c.mayTry(r), Running: running(r)}
	if p != nil && !read.Try.IsZero() {
		read.First, read.Growth, read.Own = p[0].Nodes, request.MostAtOnce(p), !c.site.Root && r.User != c.site.User
	}
	return read
}

// running reports whether a job is found running.
func running(r *slurmctl.Job) bool {
	return r.State == slurmctl.Running || r.State == slurmctl.Suspended
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
		id := c.presentJob(j)
		if s.byID[id] == nil {
			continue // follow finds out
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
			c.logJob(j).WithError(err).Warn("what the job asked for is not understood")
			j.asked = &slurmctl.JobRequest{StepMgr: c.facts.stepManagers} // to be on the safe side
		}
		c.setMode(j)
	}
	for id, read := range c.asked {
		if gone := s.byID[id] == nil; gone && read.tries > 0 || read.known && (gone || c.owner(id) != nil && c.owner(id).asked != nil) {
			delete(c.asked, id)
		}
	}
}

// gid is the group of the job's user; 0 where that is not known.
func (a asked) gid() uint32 {
	if a.user == nil {
		return 0
	}
	return a.user.GID
}
