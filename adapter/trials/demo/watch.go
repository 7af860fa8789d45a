package demo

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// watch looks at the jobs of a phase, tells what happens and has it drawn.
type watch struct {
	title    string
	interval time.Duration // between two looks
	lab      *lab
	slurm    *slurmctl.Client
	screen   screen
	rigid    bool

	begin  time.Time
	jobs   []*seen
	events []string
	last   frame
}

// seen is a job as it was at the last look.
type seen struct {
	*result
	state string
	nodes []string
	spans []api.Span // what it held, by Slurm's word
	view  api.Job    // for the chart
}

func newWatch(l *lab, s screen, title string, rigid bool) *watch {
	return &watch{title: title, interval: 250 * time.Millisecond, lab: l, slurm: l.cluster.Client(), screen: s, rigid: rigid, begin: time.Now()}
}

// add takes a submitted job into view.
func (w *watch) add(r *result) {
	s := &seen{result: r, state: "queued"}
	w.jobs = append(w.jobs, s)
	switch {
	case !r.Evolving:
		w.tell(r.submitted, "%s submits %s, a stock job: %s", r.owner, r.Name, count(r.Profile[0].Nodes))
	case w.rigid:
		w.tell(r.submitted, "%s submits %s, rigid: %s", r.owner, r.Name, count(r.Profile.Peak()))
	default:
		limit := ""
		if r.Limit != 0 {
			limit = fmt.Sprintf(", expand limit %s", r.Limit)
		}
		w.tell(r.submitted, "%s submits %s, evolving: %s%s", r.owner, r.Name, r.Profile, limit)
	}
}

func (w *watch) tell(at time.Time, format string, args ...any) {
	line := fmt.Sprintf("%6.1f s  ", at.Sub(w.begin).Seconds()) + fmt.Sprintf(format, args...)
	w.events = append(w.events, line)
	w.screen.event(line)
}

// lookTime bounds one look.
const lookTime = 20 * time.Second

// look looks at Slurm and at the sidecar, and reports whether all jobs have ended.
func (w *watch) look(ctx context.Context) (over bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	records, err := w.slurm.Jobs(ctx)
	if err != nil {
		return false, err
	}
	var views []api.Job
	if !w.rigid {
		if views, err = w.lab.api.Jobs(ctx, true); err != nil {
			return false, err
		}
	}
	now, over := time.Now(), true
	for _, s := range w.jobs {
		var record *slurmctl.Job
		for i := range records {
			if uint32(records[i].ID) == s.id {
				record = &records[i]
			}
		}
		if s.Evolving && !w.rigid {
			if i := slices.IndexFunc(views, func(v api.Job) bool { return v.ID == s.id }); i >= 0 {
				w.follow(s, views[i], now)
			}
		} else {
			w.followStock(s, record, now)
		}
		over = over && s.state == "ended" && record == nil
	}
	w.last = w.frame(now)
	w.screen.draw(w.last)
	return over, nil
}

// follow takes in what the sidecar says of an evolving job.
func (w *watch) follow(s *seen, v api.Job, now time.Time) {
	s.drive = v.Drive
	if len(v.Plan) == len(s.Profile) {
		w.followPlan(s, v, now)
	}
	nodes := s.nodes
	if v.State != "ended" && v.NodeList != "" {
		nodes, _ = slurmctl.ExpandNodes(v.NodeList) // what the sidecar wrote itself
	}
	switch from, to := len(s.nodes), len(nodes); {
	case v.State == "ended" && s.state != "ended":
		w.tell(now, "%s has ended: %s", s.Name, strings.ToLower(v.EndState))
	case from == 0 && to > 0:
		w.tell(now, "%s starts on %s", s.Name, list(nodes))
	case to > from:
		w.tell(now, "%s grows from %d to %s", s.Name, from, list(nodes))
	case to < from:
		w.tell(now, "%s shrinks from %d to %s", s.Name, from, list(nodes))
	}
	s.state, s.nodes, s.view = v.State, nodes, v
}

// followPlan keeps the start that was planned first and the plan that the job
// started with.
func (w *watch) followPlan(s *seen, v api.Job, now time.Time) {
	if v.Step <= 1 && (v.State == "queued" || v.State == "starting" || s.planned == nil) {
		if v.State == "queued" && s.planned == nil {
			if wait := v.Plan[0].Start.Sub(now); wait > 2*time.Second {
				w.tell(now, "%s is planned to start in %.0f s", s.Name, wait.Seconds())
			}
		}
		if s.promised.IsZero() {
			s.promised = v.Plan[0].Start
		}
		s.planned = s.planned[:0]
		for _, p := range v.Plan {
			s.planned = append(s.planned, planned{p.Start, p.End, p.Nodes})
		}
	}
}

// followStock records what Slurm says about a stock job.
func (w *watch) followStock(s *seen, record *slurmctl.Job, now time.Time) {
	switch {
	case record == nil && s.state != "ended":
		s.state = "ended"
		w.tell(now, "%s has ended", s.Name)
	case record != nil && s.state == "queued" && record.State == slurmctl.Running:
		s.state, s.nodes = "running", record.NodeList
		s.spans = []api.Span{{Step: 1, Start: now, Nodes: len(s.nodes)}} // Slurm's own times are whole seconds
		w.tell(now, "%s starts on %s", s.Name, list(s.nodes))
	}
	if n := len(s.spans); n > 0 && s.spans[n-1].End.IsZero() && (record == nil || record.State == slurmctl.Completing) {
		s.spans[n-1].End = now
	}
	v := api.Job{ID: s.id, Name: s.Name, User: s.owner, State: s.state, Past: s.spans}
	if s.state == "running" && len(s.spans) > 0 { // it takes as long as it says
		v.Plan = []api.Span{{Start: now, End: s.spans[0].Start.Add(time.Duration(s.Profile.Duration()) * time.Second), Nodes: len(s.nodes)}}
	}
	s.view = v
}

// frame returns what is visible now.
func (w *watch) frame(now time.Time) frame {
	f := frame{title: w.title, begin: w.begin, now: now, events: w.events, nodes: w.lab.cluster.Options().Nodes}
	for _, s := range w.jobs {
		if !s.Evolving {
			f.others = append(f.others, s.spans...)
		} else if s.view.ID != 0 {
			f.jobs = append(f.jobs, s.view)
		}
	}
	slices.SortFunc(f.jobs, func(a, b api.Job) int { return cmp.Compare(a.ID, b.ID) })
	return f
}

// count returns a number of nodes in words.
func count(n int) string {
	if n == 1 {
		return "1 node"
	}
	return fmt.Sprintf("%d nodes", n)
}

// list returns a number of nodes and their names.
func list(nodes []string) string { return count(len(nodes)) + ": " + slurmctl.CompressNodes(nodes) }
