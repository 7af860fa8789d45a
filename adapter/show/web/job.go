package web

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/show/chart"
	"github.com/evoslurm/evoslurm/adapter/show/display"
	"github.com/evoslurm/evoslurm/adapter/show/ran"
	"github.com/evoslurm/evoslurm/planner"
)

// mostEvents bounds the events of one page, the last ones.
const mostEvents = 200

// jobPage is the data of a job's page.
type jobPage struct {
	Job    api.Job
	Now    time.Time
	Color  int
	Marks  []mark
	Lines  []line // requested, planned, actual
	Steps  []step
	Grown  []ran.Promise // its planned growths
	Events []api.Event
	Notes  string // why there are no events
	Sums   []sum
	Words  []string // where it is and why, as the recorder explains it
	Series *series
	scale  scale
	Cancel string // the form value for cancelling its holds; "" if there is nothing to cancel
}

// Canceller is a Reader that, for operators, cancels the holds for the coming steps of a job.
type Canceller interface {
	CancelHolds(ctx context.Context, id uint32) (api.Cancelled, error)
}

// line is one drawing of the three.
type line struct {
	Name string
	Bars []shape
	Said string
	Now  int
}

// step is one step in the three.
type step struct {
	Number, Nodes                  int
	Asked                          time.Duration
	PlanStart, PlanEnd, Start, End time.Time
	Has                            string // nodes that it had, or is to have
	Held                           []api.Reservation
	Late                           string
}

// sum is a number of node-seconds.
type sum struct {
	Name  string
	Value int64
}

// cancel cancels the holds of a job.
func (p *Page) cancel(ctx context.Context, v visit) (any, error) {
	if err := p.signed(v); err != nil {
		return nil, err
	}
	id, err := strconv.ParseUint(v.PostForm.Get("id"), 10, 32)
	c, ok := v.Reader.(Canceller)
	if err != nil || !ok {
		return nil, api.Errorf(api.ErrInvalid, "id=%q: want the number of a job", text(v.PostForm.Get("id")))
	}
	if _, err := c.CancelHolds(ctx, uint32(id)); err != nil {
		return nil, err
	}
	return redirect(jobLink(uint32(id))), nil
}

func (p *Page) job(ctx context.Context, v visit) (any, error) {
	id, err := strconv.ParseUint(v.URL.Query().Get("id"), 10, 32)
	if err != nil || id == 0 {
		return nil, api.Errorf(api.ErrInvalid, "id=%q: want the number of a job", text(v.URL.Query().Get("id")))
	}
	j, err := v.Job(ctx, uint32(id))
	if err != nil {
		return nil, err
	}
	page := &jobPage{Job: j, Now: v.now, Color: color(j.ID)}
	cluster, err := v.Cluster(ctx)
	if err != nil && !errors.Is(err, api.ErrUnavailable) {
		return nil, err
	}
	if page.Events, err = v.Events(ctx, api.EventQuery{Job: j.ID, Limit: api.MaxEvents}); err != nil {
		page.Notes = err.Error()
	}
	page.steps(cluster)
	page.Grown = ran.Promises(j, page.Events)
	page.draw()
	page.words(cluster)
	page.Series = jobSeries(page, cluster)
	if _, ok := v.Reader.(Canceller); ok && j.State == "running" && slices.ContainsFunc(page.Steps, func(s step) bool { return s.Number > j.Step && len(s.Held) > 0 }) {
		page.Cancel = p.forms.sign(v.Reader)
	}
	slices.Reverse(page.Events)
	page.Events = page.Events[:min(len(page.Events), mostEvents)]
	return page, nil
}

// steps combines what was requested, planned, and allocated, step by step.
func (p *jobPage) steps(c api.Cluster) {
	j := p.Job
	profile, err := planner.ParseProfile(j.Profile)
	if err != nil {
		return
	}
	requested := int64(0)
	due, since := ran.Planned(p.Events) // since then the plan is as it came
	for i, asked := range profile {
		s := step{Number: i + 1, Nodes: asked.Nodes, Asked: time.Duration(asked.Duration) * time.Second}
		requested += int64(asked.Nodes) * asked.Duration
		if i < len(j.Plan) {
			s.PlanStart, s.PlanEnd, s.Has = j.Plan[i].Start, j.Plan[i].End, j.Plan[i].NodeList
		}
		longest := time.Duration(-1) // it has its last nodes, which come before the next step, for a moment only
		for _, had := range j.Past {
			if had.Step != s.Number || had.Start.Before(since) {
				continue
			}
			if s.Start.IsZero() {
				s.Start = had.Start
			}
			s.End = had.End
			if had.End.IsZero() {
				had.End = p.Now
			}
			if long := had.End.Sub(had.Start); long >= longest {
				longest, s.Has = long, had.NodeList
			}
		}
		if late := s.Start.Sub(due[s.Number]); !s.Start.IsZero() && !due[s.Number].IsZero() {
			switch {
			case late > time.Second:
				s.Late = span(late) + " late"
			case late < -time.Second:
				s.Late = span(-late) + " early"
			default:
				s.Late = "as planned"
			}
		}
		for _, v := range c.Reservations {
			if v.Hold && v.Job == j.ID && v.Step == s.Number {
				s.Held = append(s.Held, v)
			}
		}
		p.Steps = append(p.Steps, s)
	}
	planned, had := int64(0), int64(0)
	for _, s := range j.Plan {
		planned += int64(s.End.Sub(s.Start)/time.Second) * int64(s.Nodes)
	}
	for _, s := range chart.Spans(api.Job{State: "ended", Past: j.Past}, p.Now) {
		had += int64(s.End.Sub(s.Start)/time.Second) * int64(s.Nodes)
	}
	p.Sums = []sum{{"requested", requested}, {"planned", planned}, {"allocated so far", had}}
}

// words explains where the job is, as "evosim replay --why" does.
func (p *jobPage) words(c api.Cluster) {
	p.Words = display.Where(p.Job)
	for _, v := range c.Reservations {
		if v.Hold && v.Job == p.Job.ID {
			p.Words = append(p.Words, display.Hold(v.Name, v.NodeList, v.Start, v.End))
		}
	}
}

// begun returns when the job began or will begin; without a plan, when it was submitted.
func (p *jobPage) begun() time.Time {
	if p.Job.Start.IsZero() {
		return p.Job.Submit
	}
	return p.Job.Start
}

// draw draws the three over the same time.
func (p *jobPage) draw() {
	j := p.Job
	start := p.begun()
	var requested, planned, had []chart.Span
	at := start
	for _, s := range p.Steps {
		requested = append(requested, chart.Span{Span: api.Span{Step: s.Number, Start: at, End: at.Add(s.Asked), Nodes: s.Nodes}, Planned: true})
		at = at.Add(s.Asked)
	}
	for _, s := range j.Plan {
		planned = append(planned, chart.Span{Span: s, Planned: true})
	}
	had = chart.Spans(api.Job{State: "ended", Past: j.Past}, p.Now)
	every := slices.Concat(requested, planned, had)
	if len(every) == 0 {
		return
	}
	first, last := every[0].Start, every[0].End
	for _, s := range every {
		if s.Start.Before(first) {
			first = s.Start
		}
		if s.End.After(last) {
			last = s.End
		}
	}
	if j.State != "ended" {
		if p.Now.Before(first) {
			first = p.Now
		}
		if p.Now.After(last) {
			last = p.Now
		}
	}
	edge := max(last.Sub(first)/50, time.Second)
	s := scale{first.Add(-edge).In(p.Now.Location()), last.Add(edge)}
	p.scale = s
	for _, m := range s.marks() {
		p.Marks = append(p.Marks, mark{percent(s.x(m.At)), m.Text})
	}
	most := peak(every)
	for name, spans := range map[string][]chart.Span{"requested": requested, "planned": planned, "actual": had} {
		b, said := bars(spans, s, most, p.Color, p.Now)
		if said == "" {
			said = "none"
		}
		p.Lines = append(p.Lines, line{name, b, said, s.present(p.Now)})
	}
	order := []string{"requested", "planned", "actual"}
	slices.SortFunc(p.Lines, func(a, b line) int { return slices.Index(order, a.Name) - slices.Index(order, b.Name) })
}
