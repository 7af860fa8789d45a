package talk

import (
	"maps"
	"slices"
	"time"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/adopt"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/change"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/plan"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/refit"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// A user who can choose among clusters asks each for a place before the job is submitted (evosbatch -M). The core plans such a
// job behind all that wait, and keeps the place from evolving jobs that come later, until the job is adopted, the user gives the
// place back, or PlaceBinds (package plan) is over. Nothing is held in Slurm, so stock jobs do not notice. A user has few places at a time: each
// other job is planned later than it could be by no more than that because of them.
const (
	placesOf  = 4  // of a user
	allPlaces = 64 // of all users
)

// place answers a question for a place once a plan has one, and reports whether it did.
func place(c *state.Core, k *state.OpenCall) bool {
	i := slices.IndexFunc(c.Prospects, func(p *state.Prospect) bool { return p.UID == k.UID && p.Key == k.Place.ID })
	switch {
	case k.Place.Withdraw:
		if i >= 0 {
			c.Prospects = slices.Delete(c.Prospects, i, i+1)
			planSoon(c)
		}
		c.Emit(msg.Reply{ID: k.ID, Place: &api.Placement{Ready: true, Cluster: c.SlurmConfig.ClusterName}})
		return true
	case i >= 0 && !c.Prospects[i].Made:
		return false
	case i >= 0:
		a := offered(c, c.Prospects[i])
		if a.Unfit != "" {
			c.Prospects = slices.Delete(c.Prospects, i, i+1)
		}
		c.Emit(msg.Reply{ID: k.ID, Place: a})
		return true
	}
	if err := mayAsk(c, k); err != nil {
		c.Emit(msg.Reply{ID: k.ID, Err: err})
		return true
	}
	r, asked, err := recordOf(c, k)
	var j *state.Job
	if err == nil {
		j, err = adopt.Supposed(c, c.Snapshot, r, asked)
	}
	if err != nil { // it can never run here
		c.Emit(msg.Reply{ID: k.ID, Place: &api.Placement{Ready: true, Cluster: c.SlurmConfig.ClusterName, Partition: r.Partition, Unfit: err.Error()}})
		return true
	}
	c.Prospects = append(c.Prospects, &state.Prospect{Job: j, Key: k.Place.ID, After: lastOf(c.Snapshot), Until: c.Now.Add(plan.PlaceBinds)})
	planSoon(c)
	return false
}

// lastOf returns the last job that came. Times of submission are whole seconds of another clock, so the numbers of jobs tell.
func lastOf(s *state.Snapshot) (last slurmctl.JobID) {
	for i := range s.Jobs {
		last = max(last, s.Jobs[i].ID)
	}
	return last
}

// planSoon has the next cycle come soon. A user who asks again and again has Slurm polled twice as often at most.
func planSoon(c *state.Core) {
	if soon := msg.Later(c.Now, c.Pace.Begun.Add(c.Config.PollInterval/2)); soon.Before(c.NextCycle) {
		c.NextCycle = soon
	}
}

// mayAsk returns why a user may not have a place now, or nil.
func mayAsk(c *state.Core, k *state.OpenCall) error {
	own := 0
	for _, p := range c.Prospects {
		if p.UID == k.UID {
			own++
		}
	}
	switch {
	case c.Snapshot == nil:
		return api.Errorf(api.ErrUnavailable, "Slurm has not been observed yet")
	case c.Drained():
		return api.Errorf(api.ErrUnavailable, "%s", c.DrainWords())
	case k.Place.ID == "":
		return api.Errorf(api.ErrInvalid, "the question has no id")
	case own >= placesOf:
		return api.Errorf(api.ErrUnavailable, "%d places are kept for jobs of yours: try again", own)
	case len(c.Prospects) >= allPlaces:
		return api.Errorf(api.ErrUnavailable, "%d places are kept for jobs: try again", len(c.Prospects))
	}
	return nil
}

// recordOf returns the record that Slurm would have of the job.
func recordOf(c *state.Core, k *state.OpenCall) (slurmctl.Job, slurmctl.JobRequest, error) {
	q, id := k.Place, plan.FirstProspect
	for _, p := range c.Prospects {
		id = max(id, p.BaseID()+1)
	}
	r := slurmctl.Job{ID: id, Name: q.Name, UID: k.UID, User: k.User, Account: q.Account, QOS: q.QOS, Partition: q.Partition, Features: q.Constraint, Reservation: q.Reservation,
		State: slurmctl.Pending, MinCPUs: q.CPUs, MinMemory: q.Memory, Licenses: q.Licenses, Comment: q.Request, SubmitTime: c.Snapshot.Taken, TimeLimit: slurmctl.Unlimited}
	if q.Minutes > 0 {
		r.TimeLimit = time.Duration(min(q.Minutes, mostMinutes)) * time.Minute
	}
	if q.Partition == "" {
		for _, name := range state.SortedKeys(c.Snapshot.Partitions) {
			if c.Snapshot.Partitions[name].Default {
				r.Partition = name
			}
		}
	}
	n, err := slurmctl.CountNodes(q.Exclude)
	if err == nil && n > len(c.Snapshot.Nodes) {
		err = api.Errorf(api.ErrInvalid, "--exclude names more nodes than there are")
	}
	if err == nil && n > 0 {
		r.ExcNodes, err = slurmctl.ExpandNodes(q.Exclude)
	}
	asked := slurmctl.JobRequest{UID: k.UID, Account: q.Account, QOS: q.QOS, Partition: r.Partition, Features: q.Constraint, Licenses: q.Licenses, TRESPerNode: q.GRES, TimeLimit: r.TimeLimit, Comment: q.Request}
	return r, asked, err
}

// mostMinutes is a century.
const mostMinutes = 100 * 366 * 24 * 60

// offered returns a place as the caller sees it. A user may ask many times a second: the answer is worked out once for each plan
// and poll.
func offered(c *state.Core, p *state.Prospect) *api.Placement {
	if p.Offer == nil || !p.Offered.Equal(c.Snapshot.Taken) {
		p.Offer, p.Offered = offer(c, p), c.Snapshot.Taken
	}
	a := *p.Offer
	return &a
}

// offer works out an answer.
func offer(c *state.Core, p *state.Prospect) *api.Placement {
	s := c.Snapshot
	now := s.Taken.Unix()
	a := &api.Placement{Ready: true, Cluster: c.SlurmConfig.ClusterName, Partition: p.Partition, Most: p.Profile.Peak(), Unfit: p.Unfit, Now: wall(c, now), Until: c.Wall(p.Until)}
	if p.Unfit != "" || len(p.Plan) == 0 {
		return a
	}
	first, last := p.Plan[0], p.Plan[len(p.Plan)-1]
	a.Start, a.End = wall(c, first.Start), wall(c, last.End-int64(plan.PlaceBinds/time.Second))
	o := refit.Occupied(c, s, now, nil)
	a.Nodes, a.Free = plan.Roomy(c, s, o, p.Job)
	if !c.ReachedSecond(now+1, first.Start) {
		a.Waits = change.InTheWay(c, s, p.Job, o, now)
	}
	return a
}

func wall(c *state.Core, second int64) time.Time { return c.Wall(time.Unix(second, 0)) }

// ForgetPlaces drops the places that are over, and those of jobs that have come. Such a job keeps its turn while it waits.
func ForgetPlaces(c *state.Core) {
	c.Prospects = slices.DeleteFunc(c.Prospects, func(p *state.Prospect) bool {
		i := slices.IndexFunc(c.Active, func(j *state.Job) bool {
			return j.UID == p.UID && j.Record.Comment == p.Record.Comment && j.BaseID() > p.After && j.State == row.Queued && c.Turns[j.BaseID()] == nil
		})
		if i >= 0 && p.Unfit == "" {
			c.Turns[c.Active[i].BaseID()] = p
		}
		return i >= 0 || c.Reached(c.Now, p.Until)
	})
	maps.DeleteFunc(c.Turns, func(id slurmctl.JobID, _ *state.Prospect) bool {
		return c.ByID[id] == nil || c.ByID[id].State != row.Queued
	})
}
