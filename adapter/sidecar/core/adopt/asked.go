package adopt

import (
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/evoslurm/evoslurm/adapter/job/request"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
	"github.com/evoslurm/evoslurm/planner"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// If a request is not understood, or its user cannot be looked up at the moment, the sidecar
// asks again. It triples the pause each time and tries for more than three minutes in all. So a
// garbled answer or an unavailable user directory does not decide about the job.
const (
	AskTries = 5
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

// ReadAsked returns the request of a job, or starts reading it for a later cycle. If the job has
// a start time that can be tried, the sidecar also tries whether the site lets the job be changed.
// With a profile p, it also tries whether the job may grow accordingly.
func ReadAsked(c *state.Core, r *slurmctl.Job, p planner.Profile) (state.RequestRead, bool) {
	id := r.ID
	read := c.Asked[id]
	if read == nil {
		read = &state.RequestRead{}
	}
	if read.Known || !c.Reached(c.Now, read.Again) || !c.RoomToRead(r.UID) || !c.Work.RoomFor(r.UID) {
		return *read, read.Known
	}
	if c.Ask(nil, readKey(id), state.KindRequest, msg.Task{Command: readRequest(c, r, p)}, state.Args{Begun: c.Now, Started: r.StartTime, Of: id, UID: r.UID}) {
		c.Asked[id] = read
	}
	return state.RequestRead{}, false
}

// readKey is the key of the task that reads a job's request, and tries a change.
func readKey(id slurmctl.JobID) string { return fmt.Sprint("request ", id) }

// inTurns returns the jobs of a snapshot. If users take turns, they begin after the job that was read last, so
// that a user with many jobs comes after all others.
func inTurns(c *state.Core, s *state.Snapshot) iter.Seq[*slurmctl.Job] {
	w, first := &c.Work, 0
	if w.InTurns, w.PutOff = w.PutOff || c.ReadsSlowly(), false; w.InTurns {
		after := func(r slurmctl.Job) bool { return r.ID > w.Latest }
		first = max(slices.IndexFunc(s.Jobs, after), 0)
	}
	return func(yield func(*slurmctl.Job) bool) {
		for i := range s.Jobs {
			if !yield(&s.Jobs[(first+i)%len(s.Jobs)]) {
				return
			}
		}
	}
}

// SettleRequest takes over the request of a job.
func SettleRequest(c *state.Core, _ *state.Job, p *state.Pending, o msg.Outcome) {
	if state.Transient(o.Err) {
		return // read it again a little later
	}
	id := state.CommandOf[msg.ReadRequest](p).Job
	read := c.Asked[id]
	if read == nil {
		read = &state.RequestRead{} // the job is gone
	}
	answer, _ := o.Result.(msg.Asked)
	read.Request, read.User, read.Groups, read.UserErr, read.Err = answer.Request, answer.User, answer.Groups, answer.UserErr, o.Err
	read.Script, read.SuspendedBefore = answer.Script, suspendedFor(p.Args.Begun, p.Args.Started, answer.Used)
	if read.Why() == nil || read.Tries+1 >= AskTries || errors.Is(o.Err, msg.ErrSiteRefuses) {
		read.Known = true
		c.NextCycle = c.Now
		return
	}
	read.Again = c.Now.Add(askPauseAfter(read.Tries))
	read.Tries++
	if c.MayTell(p.Args.UID) {
		c.Log.WithField("job", id).WithError(read.Why()).Warn("cannot parse a job's request, reading it again")
	}
}

// mayTry returns the start time of a parked job if the site has plugins that may refuse changes.
// The sidecar tries a change early, before anything depends on it, and not while it lets all jobs go.
func mayTry(c *state.Core, r *slurmctl.Job) time.Time {
	if c.Releases() || r.State != slurmctl.Pending || c.SlurmConfig.Values["JobSubmitPlugins"] == "" || c.Passed(c.Now, r.StartTime.Add(-Parked/2)) {
		return time.Time{}
	}
	return r.StartTime
}

// readRequest returns the command that reads the request of a job, with the changes to try.
func readRequest(c *state.Core, r *slurmctl.Job, p planner.Profile) msg.ReadRequest {
	read := msg.ReadRequest{Job: r.ID, UID: r.UID, Config: c.SlurmConfig, Try: mayTry(c, r), Running: running(r), Groups: c.Config.AccessGroups()}
	own := !c.Site.Root && r.User != c.Site.User
	if p != nil && !read.Try.IsZero() && (!own || c.Drive.Means().MergesGrowths) { // what only the job's process submits cannot be tried
		read.First, read.Growth, read.Own = p[0].Nodes, request.MostAtOnce(p), own
	}
	return read
}

// running reports whether a job was found running.
func running(r *slurmctl.Job) bool {
	return r.State == slurmctl.Running || r.State == slurmctl.Suspended
}

// learn takes over the request of a job whose first step has `first` nodes.
func learn(j *state.Job, a state.RequestRead, first int) error {
	if a.Err != nil {
		return a.Err
	}
	gres, err := a.Request.GRESPerNode(first)
	if err != nil {
		return err
	}
	j.Asked, j.GRES, j.Groups, j.Admitted = &a.Request, gres, groupsOf(a), state.Place{}
	return nil
}

// LearnAll reads the requests of the jobs that an earlier process adopted, and deletes requests
// that are no longer needed.
func LearnAll(c *state.Core, s *state.Snapshot) {
	for _, j := range c.Active {
		if j.Asked != nil || j.Ending {
			continue
		}
		id := PresentJob(c, j)
		if s.ByID[id] == nil {
			continue // follow handles that
		}
		a, known := ReadAsked(c, s.ByID[id], nil)
		if !known {
			continue
		}
		first := j.Profile[0].Nodes
		if j.Mode.StepsAreJobs {
			first = j.Profile[CurrentLink(c, j)].Nodes
		}
		if err := learn(j, a, first); err != nil {
			c.LogJob(j).WithError(err).Warn("cannot parse the job's request")
			j.Asked = &slurmctl.JobRequest{StepMgr: c.Facts.StepManagers} // the safe assumption
		}
		state.SetMode(c, j)
	}
	for id, read := range c.Asked {
		if gone := s.ByID[id] == nil; gone && read.Tries > 0 || read.Known && (gone || c.Owner(id) != nil && c.Owner(id).Asked != nil) {
			delete(c.Asked, id)
		}
	}
}

// understood returns the request that was read, or nil if it is not known.
func understood(a state.RequestRead) *slurmctl.JobRequest {
	if a.Err != nil {
		return nil
	}
	return &a.Request
}

// gid returns the group of the job's user, or 0 if it is not known.
func gid(a state.RequestRead) uint32 {
	if a.User == nil {
		return 0
	}
	return a.User.GID
}
