package simulate

import (
	"time"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/slurmctl/slurmsim"
)

// Demand makes a job with one step ask for more nodes as it runs (evosctl grow), at these seconds
// in turn, until it gets them or is refused for the last time. Left returns how many seconds it
// continues if it gets them at such a second, instead of the rest of its step.
type Demand struct {
	Nodes int
	At    []int64
	Left  func(at int64) int64
}

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
