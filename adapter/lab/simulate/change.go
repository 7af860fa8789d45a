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

// Change is evosctl update, grow, or shrink, in the calling process. While the sidecar is down, it
// repeats the same request, unless the job's number now belongs to another job.
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
			if r.Change != nil { // it was made anyway: e.g. the job was requeued before it had the nodes
				return *r.Change, r.Err
			}
			return api.Change{}, r.Err
		}
		s.appoint(time.Second)
		p.Sleep(time.Second)
	}
}

// Act is an application's action some time into a step, which ends the step.
type Act struct {
	After  time.Duration
	Change *api.ChangeRequest // nil for evosctl next
}

// parseActs reads an application's actions: AFTER:WHAT,… where WHAT is next, +N (grow), -N
// (shrink), or =PROFILE with dots for commas (update). A growth may add /FOR, ?WAIT, and !MIN.
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
		return nil, errors.New("nothing to change")
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
	return nil, fmt.Errorf("unknown command %q", what)
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

// answered applies the answer to a change.
func (a *App) answered(c api.Change) {
	if !c.Accepted {
		a.Refusals++
		return
	}
	if p, err := planner.ParseProfile(c.Profile); err == nil && !c.DryRun {
		a.before = append(a.before, request.Request{Profile: a.Profile, Malleable: a.Malleable})
		if c.Step < max(a.step(), 1) { // requeued: its old nodes are gone, even if it has not heard of that
			a.startsOver()
		}
		if c.Step == 0 {
			a.over = 0
		}
		for i := range min(a.step(), len(a.Profile), len(p)) { // a sidecar that lost its database knows no past steps
			if !a.beganAnew(i + 1) {
				p[i].Nodes = a.Profile[i].Nodes
			}
		}
		a.Profile, a.Alternatives = p, nil
		a.rebound(c.Bounds)
	}
}

// beganAnew reports whether a step has begun that the known profile does not have: by a change
// whose answer comes after that of next.
func (a *App) beganAnew(step int) bool {
	return slices.ContainsFunc(a.Steps[a.first:], func(b Begun) bool { return b.Step == step && !a.within(step, b.Nodes) })
}

// rebound gives a malleable application the bounds for another profile; without bounds, it is no
// longer malleable.
func (a *App) rebound(bounds string) {
	if a.Malleable == nil {
		return
	}
	m := *a.Malleable
	var r request.Request
	if err := r.Set("profile", bounds); bounds != "" && err == nil && r.Malleable != nil {
		m.Max = r.Malleable.Max
	} else {
		m.Max, m.Sizes = request.Sizes(a.Profile), malleable.Any // past steps may have any size, because they cannot be lent anything
	}
	m.Max = slices.Clone(m.Max)
	for i := range min(a.step(), len(m.Max), len(a.Malleable.Max)) { // past steps stay as they were
		m.Max[i] = max(m.Max[i], a.Malleable.Max[i])
	}
	a.Malleable = &m
}

// change NAME WHAT [wait=] [current=] [dry]: a change from outside the job.
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
