package simulate

import (
	"errors"
	"fmt"
	"time"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/slurmctl"
	"github.com/evoslurm/evoslurm/slurmctl/slurmsim"
)

// Change is evosctl update, grow, or shrink, in the calling process. While the sidecar is down, it
// repeats the same request, unless the job's number now belongs to another job.
func (s *Sidecar) Change(p *slurmsim.Process, job slurmctl.JobID, req api.ChangeRequest) (api.Change, error) {
	s.Changes++
	req.ID = fmt.Sprintf("%x", s.Changes)
	asked, _ := s.Cluster.Record(job)
	for {
		if now, known := s.Cluster.Record(job); known && now.Name != asked.Name {
			return api.Change{}, fmt.Errorf("job %d is another one by now", job)
		}
		r, answered := s.ask(p, msg.Call{Job: uint32(job), Change: &req})
		switch {
		case answered && r.Err == nil && r.Change != nil && r.Change.Ready:
			return *r.Change, nil
		case answered && r.Err != nil && !unavailable(r.Err):
			if r.Change != nil { // it was made anyway: e.g. the job was requeued before it had the nodes
				return *r.Change, r.Err
			}
			return api.Change{}, r.Err
		}
		s.nap(p, time.Second)
	}
}

// unanswered is after how long a call to an absent sidecar fails.
const unanswered = 100 * time.Millisecond

// Next is evosctl next: it ends a step of a job and waits for the nodes of the next, in the
// process that calls it. While the sidecar is down, or knows nothing of the job yet, it asks
// again.
func (s *Sidecar) Next(p *slurmsim.Process, job slurmctl.JobID, from int) (api.Allocation, error) {
	for {
		r, answered := s.ask(p, msg.Call{Job: uint32(job), Next: &api.NextRequest{From: from}})
		switch {
		case answered && r.Err == nil && (r.Allocation.Ready || r.Allocation.Done):
			return r.Allocation, nil
		case answered && r.Err != nil && !unavailable(r.Err):
			return r.Allocation, r.Err
		}
		s.nap(p, time.Second)
	}
}

// caller is a script that calls the core, with what it hears.
type caller struct {
	Wake     slurmsim.Wake
	Over     bool
	Answered bool
	Reply    msg.Reply
}

// end ends the wait.
func (c *caller) end(cluster *slurmsim.Cluster) {
	c.Over = true
	c.Wake.Act(cluster)
}

// call sends the core a call; it returns false if no answer comes within a minute, or if the process has continued
// from a checkpoint in the pause after a call.
func (s *Sidecar) call(p *slurmsim.Process, in msg.Call) (msg.Reply, bool) {
	if s.front != nil {
		s = s.front()
	}
	c, _ := p.Keeps.(*caller)
	switch {
	case p.Resumed() && p.Resting():
		return msg.Reply{}, false
	case p.Resumed():
	case s.core == nil:
		p.Sleep(unanswered)
		return msg.Reply{}, false
	default:
		s.LastCall++
		in.ID = s.LastCall
		c = &caller{Wake: p.Wake()}
		p.Keeps = c
	}
	p.Await(func(func()) {
		s.Waiting[in.ID] = c
		s.Cluster.Later(0, calls{s, s.Life, in})
		s.appoint(time.Minute)
		s.Cluster.Later(time.Minute, withdraws{s, s.Life, in.ID, c})
	})
	p.Keeps = nil
	return c.Reply, c.Answered
}

// calls gives a call to the core.
type calls struct {
	S    *Sidecar
	Life int
	Call msg.Call
}

// Act implements slurmsim.Action.
func (a calls) Act(*slurmsim.Cluster) {
	if a.S.Life == a.Life {
		a.S.give(a.Call)
	}
}

// withdraws ends a call that was not answered.
type withdraws struct {
	S    *Sidecar
	Life int
	ID   uint64
	Call *caller
}

// Act implements slurmsim.Action.
func (w withdraws) Act(c *slurmsim.Cluster) {
	if w.Call.Over {
		return
	}
	if w.S.Life == w.Life {
		w.S.give(msg.Withdrawal{ID: w.ID})
	}
	w.Call.Wake.Act(c)
}

// poke calls the core, as a poll or a call would, so that it learns the time.
func (s *Sidecar) poke() {
	life := s.Life
	s.Cluster.After(0, func() {
		if s.Life == life {
			s.give(msg.Tick{})
		}
	})
}

func unavailable(err error) bool { return errors.Is(err, api.ErrUnavailable) }

// Offer is evosctl wait-event: it waits for an offer after a known one. While the sidecar is down it asks
// again, for as long as the job runs.
func (s *Sidecar) Offer(p *slurmsim.Process, job slurmctl.JobID, after int64, running func() bool) (api.Offer, error) {
	r, err := s.insist(p, msg.Call{Job: uint32(job), Offer: &api.OfferQuery{After: after}}, running, func(r msg.Reply) bool { return r.Offer != nil && r.Offer.Ready })
	if err != nil {
		return api.Offer{}, err
	}
	return *r.Offer, nil
}

// Answer is evosctl accept or decline.
func (s *Sidecar) Answer(p *slurmsim.Process, job slurmctl.JobID, req api.AnswerRequest, running func() bool) (api.Answer, error) {
	r, err := s.insist(p, msg.Call{Job: uint32(job), Answer: &req}, running, func(r msg.Reply) bool { return r.Answer != nil && r.Answer.Ready })
	if err != nil {
		return api.Answer{}, err
	}
	return *r.Answer, nil
}

// Progress is evosctl progress.
func (s *Sidecar) Progress(p *slurmsim.Process, job slurmctl.JobID, fraction float64, running func() bool) (api.Progress, error) {
	r, err := s.insist(p, msg.Call{Job: uint32(job), Progress: &api.ProgressReport{Fraction: fraction}}, running, func(r msg.Reply) bool { return r.Progress != nil && r.Progress.Ready })
	if err != nil {
		return api.Progress{}, err
	}
	return *r.Progress, nil
}

// insist calls until there is an answer.
func (s *Sidecar) insist(p *slurmsim.Process, in msg.Call, running func() bool, ready func(msg.Reply) bool) (msg.Reply, error) {
	for p.Resumed() || running() {
		r, answered := s.ask(p, in)
		switch {
		case answered && r.Err == nil && ready(r):
			return r, nil
		case answered && r.Err != nil && !unavailable(r.Err):
			return r, r.Err
		}
		s.nap(p, time.Second)
	}
	return msg.Reply{}, errOver
}

var errOver = errors.New("the job is over")
