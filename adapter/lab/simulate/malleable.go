package simulate

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/job/request"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core"
	"github.com/evoslurm/evoslurm/slurmctl"
	"github.com/evoslurm/evoslurm/slurmctl/slurmsim"
)

// Says is a malleable application's answer to an offer.
type Says struct {
	After time.Duration // time that it takes to answer
	Mute  bool          // it does not answer
	Nodes int           // largest number of nodes that it accepts; below 0 for all
}

// parseSays reads answers in order; the last one repeats: all, none (it declines), mute, or a
// number of nodes, each with an optional +DURATION that it takes.
func parseSays(text string) (all []Says, err error) {
	for one := range strings.SplitSeq(text, ",") {
		what, after, slow := strings.Cut(one, "+")
		a := Says{Nodes: -1}
		if slow {
			if a.After, err = time.ParseDuration(after); err != nil {
				return nil, err
			}
		}
		switch what {
		case "all":
		case "none":
			a.Nodes = 0
		case "mute":
			a.Mute = true
		default:
			if a.Nodes, err = strconv.Atoi(what); err != nil {
				return nil, err
			}
		}
		all = append(all, a)
	}
	return all, nil
}

// bounded reads the profile of an application, with its bounds, if it has any.
func (a *App) bounded(profile string, o map[string]string) error {
	var sp request.Request
	err := sp.Set("profile", profile)
	for _, name := range []string{"size", "grace", "speedup"} {
		if text, given := o[name]; given && err == nil {
			err = sp.Set(name, text)
		}
	}
	if err == nil {
		err = sp.Settle()
	}
	a.Profile, a.Malleable, a.Says = sp.Profile, sp.Malleable, []Says{{Nodes: -1}}
	if text, given := o["says"]; given && err == nil {
		a.Says, err = parseSays(text)
	}
	return err
}

// within reports whether an application may have so many nodes in a step.
func (a *App) within(step, nodes int) bool {
	if a.Malleable == nil {
		return nodes == a.Profile[step-1].Nodes
	}
	return nodes >= a.Profile[step-1].Nodes && nodes <= a.Malleable.Max[step-1] && a.Malleable.Sizes.Has(nodes)
}

// listen is the part of a malleable application that answers what it is offered, as long as its job
// runs.
func (s *Sidecar) listen(script *slurmsim.Process, a *App) {
	job := script.Job().ID
	running := func() bool {
		state := script.Job().State
		return state == slurmctl.Running || state == slurmctl.Suspended || state == slurmctl.Configuring
	}
	s.Cluster.Go(func(p *slurmsim.Process) {
		known, heard := int64(0), 0
		for running() {
			o, err := s.Offer(p, job, known, running)
			if err != nil {
				return
			}
			known = o.ID
			says := a.Says[min(heard, len(a.Says)-1)]
			if heard++; says.Mute {
				continue
			}
			if says.After > 0 {
				s.appoint(says.After)
				p.Sleep(says.After)
			}
			accept := o.Nodes
			if says.Nodes >= 0 {
				accept = min(accept, says.Nodes)
			}
			if o.Kind == "shrink" {
				a.work.on(o.Has - accept) // first it leaves them
			}
			answer, err := s.Answer(p, job, api.AnswerRequest{Offer: o.ID, Accept: accept}, running)
			switch {
			case err != nil:
				a.Refusals++
				a.work.on(o.Has)
			case answer.Has != nil:
				a.work.on(answer.Has.Nodes)
			}
		}
	})
}

var errOver = errors.New("the job is over")

// Offer is evosctl wait-event: it waits for an offer after a known one. While the sidecar is down it asks
// again, for as long as the job runs.
func (s *Sidecar) Offer(p *slurmsim.Process, job slurmctl.JobID, after int64, running func() bool) (api.Offer, error) {
	r, err := s.insist(p, core.Call{Job: uint32(job), Offer: &api.OfferQuery{After: after}}, running, func(r core.Reply) bool { return r.Offer != nil && r.Offer.Ready })
	if err != nil {
		return api.Offer{}, err
	}
	return *r.Offer, nil
}

// Answer is evosctl accept or decline.
func (s *Sidecar) Answer(p *slurmsim.Process, job slurmctl.JobID, req api.AnswerRequest, running func() bool) (api.Answer, error) {
	r, err := s.insist(p, core.Call{Job: uint32(job), Answer: &req}, running, func(r core.Reply) bool { return r.Answer != nil && r.Answer.Ready })
	if err != nil {
		return api.Answer{}, err
	}
	return *r.Answer, nil
}

// Progress is evosctl progress.
func (s *Sidecar) Progress(p *slurmsim.Process, job slurmctl.JobID, fraction float64, running func() bool) (api.Progress, error) {
	r, err := s.insist(p, core.Call{Job: uint32(job), Progress: &api.ProgressReport{Fraction: fraction}}, running, func(r core.Reply) bool { return r.Progress != nil && r.Progress.Ready })
	if err != nil {
		return api.Progress{}, err
	}
	return *r.Progress, nil
}

// progress NAME FRACTION: an application reports how far it is.
func (h *history) progress(words []string) error {
	if len(words) != 2 {
		return errors.New("progress NAME FRACTION")
	}
	fraction, err := strconv.ParseFloat(words[1], 64)
	if err != nil {
		return err
	}
	id, ok := h.jobOf(words[0])
	if !ok {
		h.say("there is no such job")
		return nil
	}
	h.s.Cluster.Go(func(p *slurmsim.Process) {
		_, _ = h.s.Progress(p, id, fraction, func() bool { return true }) // the reply is part of the history
	})
	return nil
}

// cancelHolds NAME: an operator cancels the holds of a job.
func (h *history) cancelHolds(words []string) error {
	if len(words) != 1 {
		return errors.New("cancelholds NAME")
	}
	id, ok := h.jobOf(words[0])
	if !ok {
		h.say("there is no such job")
		return nil
	}
	h.s.Cluster.Go(func(p *slurmsim.Process) {
		h.s.call(p, core.Call{Job: uint32(id), Cancel: &api.CancelHolds{By: "root"}}) // the reply is part of the history
	})
	return nil
}

// insist calls until there is an answer.
func (s *Sidecar) insist(p *slurmsim.Process, in core.Call, running func() bool, ready func(core.Reply) bool) (core.Reply, error) {
	for running() {
		r, answered := s.call(p, in)
		switch {
		case answered && r.Err == nil && ready(r):
			return r, nil
		case answered && r.Err != nil && !unavailable(r.Err):
			return r, r.Err
		}
		s.appoint(time.Second)
		p.Sleep(time.Second)
	}
	return core.Reply{}, errOver
}

// checkBounds checks that no malleable application has more nodes than its current and next step
// allow, nor fewer than the smaller minimum of these, unless nodes are lost.
func (h *history) checkBounds() {
	var queue []slurmctl.Job
	for _, name := range h.order {
		a := h.apps[name]
		step := a.step()
		if a.Malleable == nil || step == 0 || step > len(a.Profile) {
			continue
		}
		next := min(step+1, len(a.Profile))
		most, least := max(a.Malleable.Max[step-1], a.Malleable.Max[next-1]), min(a.Profile[step-1].Nodes, a.Profile[next-1].Nodes)
		nodes, id, runs := 0, h.jobs[name], false
		if queue == nil {
			queue = h.s.Cluster.Queue()
		}
		own := fmt.Sprintf("evo_%d_", id)
		for i := range queue {
			r := &queue[i]
			if r.State == slurmctl.Running && (r.ID == id || strings.HasPrefix(r.Name, own) && !h.tricks(*r)) {
				nodes += len(r.NodeList)
			}
			runs = runs || r.ID == id && r.State == slurmctl.Running
		}
		switch {
		case !runs || h.excused(id):
		case nodes > most && !h.unseen(id, nodes):
			h.blame(fmt.Errorf("%s has %d nodes in step %d, and may have %d", name, nodes, step, most))
		case nodes < least && !h.lossy:
			h.blame(fmt.Errorf("%s has %d nodes in step %d, and was promised %d", name, nodes, step, least))
		}
	}
}

// unseen reports whether slurmctld has forgotten in a crash that a job gave nodes back, and the
// sidecar has not seen it yet: the job has more than the sidecar knows.
func (h *history) unseen(id slurmctl.JobID, nodes int) bool {
	j, known := h.s.Job(id)
	return h.crashed && known && j.Nodes < nodes
}

// checkThreshold checks that no offer would let malleable jobs exceed the site's threshold.
func (h *history) checkThreshold(effects []core.Effect) {
	threshold := h.s.Config.Malleable.Threshold
	if threshold == 0 || !slices.ContainsFunc(effects, func(e core.Effect) bool { a, ok := e.(core.AddEvent); return ok && a.Kind == "offered" }) {
		return
	}
	sum := 0
	for _, j := range h.s.View().Jobs {
		if j.Bounds == "" {
			continue
		}
		sum += j.Nodes
		for _, o := range j.Offers {
			if o.Kind == "grow" && (o.State == "open" || o.State == "accepted") {
				sum += max(o.Nodes, o.Accepted) + o.Has - j.Nodes
			}
		}
	}
	if sum > threshold {
		h.blame(fmt.Errorf("malleable jobs are offered nodes to have %d together, above the threshold of %d", sum, threshold))
	}
}
