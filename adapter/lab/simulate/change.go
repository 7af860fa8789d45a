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
	"github.com/evoslurm/evoslurm/planner"
	"github.com/evoslurm/evoslurm/planner/malleable"
	"github.com/evoslurm/evoslurm/slurmctl"
	"github.com/evoslurm/evoslurm/slurmctl/slurmsim"
)

// Change is evosctl update, grow or shrink, in the process that calls it. While the sidecar
// is down it asks again, for the same change, unless the job's number has become another's.
func (s *Sidecar) Change(p *slurmsim.Process, job slurmctl.JobID, req api.ChangeRequest) (api.Change, error) {
	s.changes++
	req.ID = fmt.Sprintf("%x", s.changes)
	asked, _ := s.Cluster.Record(job)
	for {
		if now, known := s.Cluster.Record(job); known && now.Name != asked.Name {
			return api.Change{}, fmt.Errorf("job %d is another one by now", job)
		}
		r, answered := s.call(p, core.Call{Job: uint32(job), Change: &req})
		switch {
		case answered && r.Err == nil && r.Change != nil && r.Change.Ready:
			return *r.Change, nil
		case answered && r.Err != nil && !unavailable(r.Err):
			if r.Change != nil { // it was made all the same: the job was requeued, say, before it had the nodes
				return *r.Change, r.Err
			}
			return api.Change{}, r.Err
		}
		s.appoint(time.Second)
		p.Sleep(time.Second)
	}
}

// Act is what an application does after a while in a step that it ends by that.
type Act struct {
	After  time.Duration
	Change *api.ChangeRequest // nil: evosctl next
}

// parseActs reads what an application does: AFTER:WHAT,… with WHAT one of next, +N
// (grow), -N (shrink) and =PROFILE with dots for commas (update); to a growth /FOR, ?WAIT
// and !MIN may be added.
func parseActs(text string) (acts []Act, err error) {
	for one := range strings.SplitSeq(text, ",") {
		after, what, _ := strings.Cut(one, ":")
		a := Act{}
		if a.After, err = time.ParseDuration(after); err != nil {
			return nil, err
		}
		if what != "next" {
			if a.Change, err = parseChange(what); err != nil {
				return nil, err
			}
		}
		acts = append(acts, a)
	}
	return acts, nil
}

func parseChange(what string) (*api.ChangeRequest, error) {
	if what == "" {
		return nil, errors.New("what is to change?")
	}
	rest := what[1:]
	switch what[0] {
	case '=':
		u := &api.Update{Profile: strings.ReplaceAll(rest, ".", ",")}
		return &api.ChangeRequest{Update: u}, nil
	case '-':
		if n, err := strconv.Atoi(rest); err == nil {
			return &api.ChangeRequest{Shrink: &api.Shrink{Nodes: n}}, nil
		}
		list, err := slurmctl.ExpandNodes(rest)
		return &api.ChangeRequest{Shrink: &api.Shrink{List: list}}, err
	case '+':
		g := &api.Grow{}
		for rest != "" {
			end := strings.IndexAny(rest[1:], "/?!") + 1
			if end == 0 {
				end = len(rest)
			}
			word := rest[:end]
			rest = rest[end:]
			var err error
			var d int64
			switch word[0] {
			case '/':
				d, err = planner.ParseDuration(word[1:])
				g.For = d
			case '?':
				d, err = planner.ParseDuration(word[1:])
				g.Wait = d
			case '!':
				g.Min, err = strconv.Atoi(word[1:])
			default:
				g.Nodes, err = strconv.Atoi(word)
			}
			if err != nil {
				return nil, err
			}
		}
		return &api.ChangeRequest{Grow: g}, nil
	}
	return nil, fmt.Errorf("nobody knows how to %q", what)
}

// runActs is the script of an application that decides as it goes.
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
				if c.Has == nil { // refused, or an update: the step goes on
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

// answered takes over what came of a change.
func (a *App) answered(c api.Change) {
	if !c.Accepted {
		a.Refusals++
		return
	}
	if p, err := planner.ParseProfile(c.Profile); err == nil && !c.DryRun {
		a.before = append(a.before, request.Request{Profile: a.Profile, Malleable: a.Malleable})
		if c.Step < max(a.step(), 1) { // requeued: what it had is over, be it that it has not heard of that
			a.startsOver()
		}
		if c.Step == 0 {
			a.over = 0
		}
		for i := range min(a.step(), len(a.Profile), len(p)) { // a sidecar that has lost its database knows no steps that are over
			if !a.beganAnew(i + 1) {
				p[i].Nodes = a.Profile[i].Nodes
			}
		}
		a.Profile, a.Alternatives = p, nil
		a.rebound(c.Bounds)
	}
}

// beganAnew reports whether a step has begun as it is not in the profile so far: by a change whose answer
// comes after that of next.
func (a *App) beganAnew(step int) bool {
	return slices.ContainsFunc(a.Steps[a.first:], func(b Begun) bool { return b.Step == step && !a.within(step, b.Nodes) })
}

// rebound gives a malleable application the bounds that go with another profile; none: it is malleable no more.
func (a *App) rebound(bounds string) {
	if a.Malleable == nil {
		return
	}
	m := *a.Malleable
	var r request.Request
	if err := r.Set("profile", bounds); bounds != "" && err == nil && r.Malleable != nil {
		m.Max = r.Malleable.Max
	} else {
		m.Max, m.Sizes = request.Sizes(a.Profile), malleable.Any // what cannot be lent anything any more may have any size
	}
	m.Max = slices.Clone(m.Max)
	for i := range min(a.step(), len(m.Max), len(a.Malleable.Max)) { // what it has had stays as it was
		m.Max[i] = max(m.Max[i], a.Malleable.Max[i])
	}
	a.Malleable = &m
}

// change NAME WHAT [wait=] [current=] [dry]: a change from outside of the job.
func (h *history) change(words []string) error {
	if len(words) < 2 {
		return errors.New("change NAME WHAT")
	}
	req, err := parseChange(words[1])
	if err != nil {
		return err
	}
	o := options(words[2:])
	_, req.DryRun = o["dry"]
	if u := req.Update; u != nil {
		for key, to := range map[string]*int64{"current": &u.Current, "wait": &u.Wait} {
			if text, given := o[key]; given {
				if *to, err = planner.ParseDuration(text); err != nil {
					return err
				}
			}
		}
	}
	id, ok := h.jobOf(words[0])
	if !ok {
		h.say("there is no such job")
		return nil
	}
	h.s.Cluster.Go(func(p *slurmsim.Process) {
		c, err := h.s.Change(p, id, *req)
		if a := h.apps[words[0]]; a != nil && (err == nil || c.Accepted) {
			a.answered(c)
		}
	})
	return nil
}
