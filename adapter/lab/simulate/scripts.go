package simulate

import (
	"fmt"
	"math"
	"time"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/internal/drivemode"
	"github.com/evoslurm/evoslurm/adapter/job/request"
	"github.com/evoslurm/evoslurm/slurmctl"
	"github.com/evoslurm/evoslurm/slurmctl/slurmsim"
)

// demands is the script of an application with a Demand.
func (s *Sidecar) demands(p *slurmsim.Process, a *App) {
	step, now, end := 1, int64(0), a.Profile[0].Duration
	a.startsOver()
	a.Steps = append(a.Steps, s.begun(p, a, step, len(p.Job().NodeList)))
	sleep := func(until int64) {
		d := time.Duration(max(until-now, 0)) * time.Second
		s.appoint(d)
		p.Sleep(d)
		now = until
	}
	for _, at := range a.Demand.At {
		sleep(at)
		c, err := s.Change(p, p.Job().ID, api.ChangeRequest{From: step, Grow: &api.Grow{Nodes: a.Demand.Nodes}})
		if err != nil || c.Has == nil {
			a.Refusals++
			continue
		}
		a.answered(c)
		step, end = c.Has.Step, at+a.Demand.Left(at)
		a.Steps = append(a.Steps, s.begun(p, a, step, c.Has.Nodes))
		break
	}
	sleep(end)
	if got, err := s.Next(p, p.Job().ID, step); err != nil {
		a.Err = err
		p.Exit(1)
	} else if !got.Done {
		p.Exit(1)
	}
}

// Submit submits an evolving job as evosbatch does.
func (s *Sidecar) Submit(a *App) (slurmctl.JobID, error) {
	sp := request.Request{Profile: a.Profile, Drive: a.Drive, ExpandLimit: a.ExpandLimit, Begin: a.Begin, MaxNodes: a.Claim, Malleable: a.Malleable}
	if len(a.Alternatives) > 0 {
		a.mold(&sp)
	}
	if a.Drive == drivemode.Chain {
		return s.submitChain(a, sp)
	}
	marker, ok := sp.Marker()
	if !ok {
		return 0, fmt.Errorf("no marker for %v", a.Profile)
	}
	limit := a.Limit
	if limit == 0 {
		limit = limitFor(a.Profile)
	}
	q := a.job(sp, marker, a.Profile[0].Nodes, limit)
	q.Begin, q.Program = s.Cluster.Now().Add(parkedFor), func(p *slurmsim.Process) { s.run(p, a) }
	return s.Cluster.Submit(q)
}

// submitChain submits one job a step.
func (s *Sidecar) submitChain(a *App, sp request.Request) (first slurmctl.JobID, err error) {
	var before slurmctl.JobID
	for i, step := range a.Profile {
		sp.Chain = &request.ChainLink{Step: i + 1, First: uint32(first)}
		marker, ok := sp.Marker()
		if !ok {
			return 0, fmt.Errorf("no marker for %v", a.Profile)
		}
		q := a.job(sp, marker, step.Nodes, time.Duration(step.Duration/60+2)*time.Minute)
		q.Begin, q.Program = s.Cluster.Now().Add(parkedFor), func(p *slurmsim.Process) {
			if i == 0 {
				a.began(len(p.Job().NodeList), 0)
			}
			a.Steps = append(a.Steps, s.begun(p, a, i+1, len(p.Job().NodeList)))
			p.Sleep(a.lasts(i + 1))
		}
		if i > 0 {
			q.After, q.KillOnInvalidDep = []slurmsim.Dependency{{Kind: "afterok", Job: before}}, true
		}
		if before, err = s.Cluster.Submit(q); err != nil {
			return first, err
		}
		if i == 0 {
			first = before
		}
	}
	return first, nil
}

// run is the application's script.
func (s *Sidecar) run(p *slurmsim.Process, a *App) {
	if a.Malleable != nil {
		s.listen(p, a)
	}
	switch {
	case a.Acts != nil:
		s.runActs(p, a)
		return
	case a.Demand != nil:
		s.demands(p, a)
		return
	}
	nodes := len(p.Job().NodeList)
	a.began(nodes, p.Job().TimeLimit)
	for step := 1; ; {
		a.Steps = append(a.Steps, s.begun(p, a, step, nodes))
		if a.work != nil {
			s.work(p, a.work, nodes)
		} else {
			s.appoint(a.lasts(step))
			p.Sleep(a.lasts(step))
		}
		switch {
		case a.Deaf:
			p.Sleep(1000 * time.Hour) // until it is ended
			return
		case a.Abrupt == step:
			return
		}
		got, err := s.Next(p, p.Job().ID, step)
		if err != nil {
			a.Err = err
			p.Exit(1)
			return
		}
		if got.Done {
			return
		}
		step, nodes = got.Step, got.Nodes // which others may have changed
	}
}

// begun returns a step that begins now.
func (s *Sidecar) begun(script *slurmsim.Process, a *App, step, nodes int) Begun {
	if nodes := s.Cluster.Revoked(script.Job().ID); len(nodes) > 0 {
		a.wrong = append(a.wrong, fmt.Sprintf("%s began step %d, and Slurm starts nothing of it on %v, which it had given back in the same second", a.Name, step, nodes))
	}
	return Begun{step, nodes, s.Cluster.Elapsed(), script.Job().BatchHost != script.Host(), a.failed, a.regained}
}

// runActs is the script of an application that decides as it runs.
func (s *Sidecar) runActs(p *slurmsim.Process, a *App) {
	step, nodes := 1, len(p.Job().NodeList)
	a.startsOver()
	a.Steps = append(a.Steps, s.begun(p, a, step, nodes))
	for _, act := range a.Acts {
		s.appoint(act.After)
		p.Sleep(act.After)
		var got api.Allocation
		var err error
		if act.Change == nil {
			got, err = s.Next(p, p.Job().ID, step)
		} else {
			req := *act.Change
			req.From = step
			var c api.Change
			if c, err = s.Change(p, p.Job().ID, req); err == nil {
				a.answered(c)
				if c.Has == nil { // refused, or an update: the step continues
					continue
				}
				got = *c.Has
			}
		}
		if err != nil && act.Change != nil {
			a.Refusals++
			continue
		}
		if err != nil {
			a.Err = err
			p.Exit(1)
			return
		}
		if got.Done {
			return
		}
		step = got.Step
		a.Steps = append(a.Steps, s.begun(p, a, step, got.Nodes))
	}
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

// work goes on until all is done.
func (s *Sidecar) work(p *slurmsim.Process, w *work, nodes int) {
	w.nodes = nodes
	for left := w.total; left > 0; {
		speed, since := w.speedup.At(w.nodes), s.Cluster.Elapsed()
		lasts := time.Duration(math.Ceil(left / speed * 1e9))
		s.appoint(lasts)
		p.Await(func(wake func()) {
			w.changed = wake
			s.Cluster.After(lasts, wake)
		})
		left -= (s.Cluster.Elapsed() - since).Seconds() * speed
	}
	w.changed = nil
}
