package simulate

import (
	"fmt"
	"math"
	"time"

	"github.com/evoslurm/evoslurm/adapter/api"
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
		s.nap(p, d)
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
	sp := request.Request{Profile: a.Profile, Drive: a.Drive, ExpandLimit: a.ExpandLimit, Begin: a.Begin, MaxNodes: a.Claim, Prefer: a.Prefer, Aim: a.Aim, Malleable: a.Malleable, Components: a.Components, Frequencies: a.Frequencies}
	if len(a.Alternatives) > 0 {
		a.mold(&sp)
	}
	if a.Drive.Means().StepsAreJobs {
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
	q.Begin, q.Program = s.Cluster.Now().Add(parkedFor), script{s, a, 0}
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
		q.Begin, q.Program = s.Cluster.Now().Add(parkedFor), script{s, a, i + 1}
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

// script is the script of a job of an application.
type script struct {
	S    *Sidecar
	A    *App
	Link int // of a chain, from 1 on; else 0
}

// Run implements slurmsim.Program.
func (r script) Run(p *slurmsim.Process) {
	s, a := r.S, r.A
	if j := p.Job(); len(a.Tasks) > 0 {
		n, _ := j.Task()
		a = a.Tasks[n-1]
	}
	switch {
	case r.Link > 0:
		s.runLink(p, a, r.Link)
		return
	case a.Malleable != nil && !p.Resumed():
		s.Cluster.Start(&listener{S: s, A: a, Job: p.Job().ID})
	}
	switch {
	case a.Acts != nil:
		s.runActs(p, a)
	case a.Demand != nil:
		s.demands(p, a)
	default:
		s.run(p, a)
	}
}

// runLink is the script of a link of a chain.
func (s *Sidecar) runLink(p *slurmsim.Process, a *App, link int) {
	if !p.Resumed() {
		if link == 1 {
			a.began(len(p.Job().NodeList), 0)
		}
		a.Steps = append(a.Steps, s.begun(p, a, link, len(p.Job().NodeList)))
	}
	p.Sleep(a.lasts(link))
}

// run is the script of an application that follows its profile.
func (s *Sidecar) run(p *slurmsim.Process, a *App) {
	step, nodes := a.step(), len(p.Job().NodeList)
	if !p.Resumed() {
		step = 1
		a.began(nodes, p.Job().TimeLimit)
	}
	for {
		if !p.Resumed() {
			a.Steps, a.Asking = append(a.Steps, s.begun(p, a, step, nodes)), false
		}
		switch {
		case a.Asking: // it has continued from a checkpoint
		case a.Work != nil:
			s.work(p, a.Work, nodes)
		default:
			s.nap(p, a.lasts(step))
		}
		a.Asking = true
		switch {
		case a.Deaf:
			p.Sleep(1000 * time.Hour) // until it is ended
			return
		case a.Abrupt == step:
			return
		case a.Fails == step:
			p.Exit(1)
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
		a.Wrong = append(a.Wrong, fmt.Sprintf("%s began step %d, and Slurm starts nothing of it on %v, which it had given back in the same second", a.Name, step, nodes))
	}
	return Begun{step, nodes, s.Cluster.Elapsed(), script.Job().BatchHost != script.Host(), a.Failed, a.Regained}
}

// runActs is the script of an application that decides as it runs.
func (s *Sidecar) runActs(p *slurmsim.Process, a *App) {
	step, nodes := 1, len(p.Job().NodeList)
	a.startsOver()
	a.Steps = append(a.Steps, s.begun(p, a, step, nodes))
	for _, act := range a.Acts {
		s.nap(p, act.After)
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

// listener is the part of a malleable application that answers what it is offered, as long as its
// job runs.
type listener struct {
	S     *Sidecar
	A     *App
	Job   slurmctl.JobID
	Known int64      // the last offer's ID
	Heard int        // offers so far
	Offer *api.Offer // to be answered; nil while it waits for one
	Until time.Time  // by when it promises to give the nodes back
}

func (l *listener) running() bool {
	r, _ := l.S.Cluster.Record(l.Job)
	return r.State == slurmctl.Running || r.State == slurmctl.Suspended || r.State == slurmctl.Configuring
}

// Run implements slurmsim.Program.
func (l *listener) Run(p *slurmsim.Process) {
	s, a := l.S, l.A
	for p.Resumed() || l.running() {
		if l.Offer == nil {
			o, err := s.Offer(p, l.Job, l.Known, l.running)
			if err != nil {
				return
			}
			l.Known = o.ID
			says := a.Says[min(l.Heard, len(a.Says)-1)]
			if l.Heard++; says.Mute {
				continue
			}
			if says.After > 0 {
				s.nap(p, says.After)
			}
			if o.Accepted = o.Nodes; says.Nodes >= 0 {
				o.Accepted = min(o.Nodes, says.Nodes)
			}
			if o.Kind == "shrink" {
				a.Work.on(s.Cluster, o.Has-o.Accepted) // first it leaves them
			}
			switch l.Until = (time.Time{}); {
			case o.Kind != "grow":
			case says.Bound:
				l.Until = o.Until
			case says.Until > 0:
				l.Until = s.Cluster.Now().Add(says.Until)
			}
			l.Offer = &o
		}
		o := l.Offer
		answer, err := s.Answer(p, l.Job, api.AnswerRequest{Offer: o.ID, Accept: o.Accepted, Until: l.Until}, l.running)
		l.Offer = nil
		switch {
		case err != nil:
			a.Refusals++
			a.Work.on(s.Cluster, o.Has)
		case answer.Has != nil:
			a.Work.on(s.Cluster, answer.Has.Nodes)
		}
	}
}

// work goes on until all is done.
func (s *Sidecar) work(p *slurmsim.Process, w *work, nodes int) {
	if !p.Resumed() {
		w.Nodes, w.Left = nodes, w.Total
	}
	for w.Left > 0 {
		p.Await(func(func()) {
			w.Speed, w.Since, w.Changed = w.Speedup.At(w.Nodes), s.Cluster.Elapsed(), p.Wake()
			lasts := time.Duration(math.Ceil(w.Left / w.Speed * 1e9))
			s.appoint(lasts)
			s.Cluster.Later(lasts, w.Changed)
		})
		w.Left -= (s.Cluster.Elapsed() - w.Since).Seconds() * w.Speed
	}
	w.Changed = slurmsim.Wake{}
}
