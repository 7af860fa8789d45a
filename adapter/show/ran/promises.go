package ran

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/planner"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// Broken is how late the nodes of a promise are that was not kept: as the alert rules have it.
const Broken = 10 * time.Second

// Promise is a growth that was planned for a job: when it was to have the nodes, and when it had them.
type Promise struct {
	Step     int
	From, To int       // nodes
	At       time.Time // promised time; zero if not planned or unknown
	Planned  time.Time // for a future growth, its currently planned time; zero if not planned
	Ended    time.Time // when the application ended the step before
	Came     time.Time // when the nodes were there; zero: they are not
	Got      int       // nodes after the growth, including those that it had
	Lapsed   bool      // the step before lasted so long that nothing was held any more
	Causes   []string  // why it came later than promised, as it was recorded

	over bool // the job has ended
}

// hinders lists the kinds of events that keep a growth from its nodes.
var hinders = []string{"delayed", "lapsed", "kept back", "nodes did not come up", "failed", "given up", "resumed", "drive changed", "nodes left alone"}

// mostCauses bounds the causes of a promise: a long-waiting growth may have very many.
const mostCauses = 3

// Promises returns the planned growths of a job, from its events, oldest first. What the events no
// longer hold is unknown.
func Promises(j api.Job, events []api.Event) []Promise {
	profile, err := planner.ParseProfile(j.Profile)
	if err != nil {
		return nil
	}
	var all []Promise
	of := map[int]*Promise{}
	for i := 1; i < len(profile); i++ {
		if from, to := profile[i-1].Nodes, profile[i].Nodes; to > from {
			all = append(all, Promise{Step: i + 1, From: from, To: to, over: j.State == "ended"})
		}
	}
	for i := range all {
		of[all[i].Step] = &all[i]
	}
	next := 0 // the step that the present one is followed by
	for _, e := range events {
		d := detailOf(e)
		p := of[next]
		switch {
		case e.Kind == "requeued": // it starts over
			for i := range all {
				all[i] = Promise{Step: all[i].Step, From: all[i].From, To: all[i].To, over: all[i].over}
			}
			next = 0
		case e.Kind == "started":
			next = max(d.Step, 1) + 1
		case e.Kind == "step begun":
			if p = of[d.Step]; p != nil {
				p.came(e.At, d)
			}
			next = d.Step + 1
		case p == nil:
		case e.Kind == "step ended":
			p.Ended = e.At
		case slices.Contains(hinders, e.Kind):
			p.hindered(e, d)
		}
	}
	for i := range all {
		p := &all[i]
		if p.Step <= len(j.Plan) && p.Came.IsZero() && !p.over {
			if p.Planned = j.Plan[p.Step-1].Start; p.At.IsZero() {
				p.At = p.Planned
			}
		}
		if own := p.Ended.Sub(p.At); !p.Ended.IsZero() && !p.At.IsZero() && own > time.Second {
			p.Causes = append([]string{fmt.Sprintf("its own step %d ended %s later than that", p.Step-1, own.Round(time.Second))}, p.Causes...)
		}
	}
	return all
}

// Planned returns when each step of a job that has begun was to begin, as it was planned then, and when the job was
// requeued last: it starts over then.
func Planned(events []api.Event) (due map[int]time.Time, since time.Time) {
	due = map[int]time.Time{}
	for _, e := range events {
		switch d := detailOf(e); e.Kind {
		case "requeued":
			clear(due)
			since = e.At
		case "started":
			due[max(d.Step, 1)] = d.Planned
		case "step begun":
			due[d.Step] = d.Planned
		}
	}
	return due, since
}

// detail holds the parts of an event that promises are built from.
type detail struct {
	Step         int
	Planned, Was time.Time
	Why, Nodes   string
}

func detailOf(e api.Event) (d detail) {
	values := map[string]any{}
	if json.Unmarshal(e.Detail, &values) != nil {
		return d
	}
	second := func(key string) time.Time {
		if s, ok := values[key].(float64); ok && s > 0 {
			return time.Unix(int64(s), 0)
		}
		return time.Time{}
	}
	step, _ := values["step"].(float64)
	d.Step, d.Planned, d.Was = int(step), second("planned"), second("was")
	d.Why, _ = values["why"].(string)
	d.Nodes, _ = values["nodes"].(string)
	return d
}

// came notes that the nodes are there.
func (p *Promise) came(at time.Time, d detail) {
	p.Came = at
	if p.At.IsZero() {
		p.At = d.Planned
	}
	if names, err := slurmctl.ExpandNodes(d.Nodes); err == nil {
		p.Got = len(names)
	}
}

// hindered records what has delayed the growth. What was promised before a delay is the promise.
func (p *Promise) hindered(e api.Event, d detail) {
	why := e.Text
	switch e.Kind {
	case "delayed":
		if d.Step != p.Step {
			return
		}
		if p.At.IsZero() {
			p.At = d.Was
		}
		why = d.Why
	case "lapsed":
		p.Lapsed = true
	}
	if why != "" && len(p.Causes) < mostCauses && !slices.Contains(p.Causes, why) {
		p.Causes = append(p.Causes, why)
	}
}

// Late returns how much later than promised and requested the nodes came, or will come as far as
// known.
func (p Promise) Late(now time.Time) time.Duration {
	due := p.At
	if p.Ended.After(due) {
		due = p.Ended
	}
	came := p.Came
	switch {
	case p.At.IsZero():
		return 0
	case came.IsZero() && p.over:
		return 0
	case came.IsZero():
		if came = p.Planned; !p.Ended.IsZero() && now.After(came) {
			came = now // it waits
		}
	}
	return max(came.Sub(due), 0)
}

// Outcome returns the outcome in a word or two.
func (p Promise) Outcome(now time.Time) string {
	late := p.Late(now) >= Broken
	switch {
	case p.Came.IsZero() && p.over:
		return "not reached"
	case p.Lapsed:
		return "lapsed"
	case !p.Came.IsZero() && p.Got > 0 && p.Got < p.To:
		return fmt.Sprintf("%d of %d nodes", p.Got, p.To)
	case !p.Came.IsZero() && !late:
		return "kept"
	case late:
		return "late"
	case p.At.IsZero():
		return "not planned"
	}
	return "to come"
}

// Moved reports whether a future growth is planned for another time than promised.
func (p Promise) Moved() bool { return !p.Planned.IsZero() && !p.Planned.Equal(p.At) }

// Kept reports whether the nodes have come as promised.
func (p Promise) Kept() bool { return p.Outcome(p.Came) == "kept" }

// Cause returns why it came later than promised; "" if it did not, or the cause is not recorded.
func (p Promise) Cause() string { return strings.Join(p.Causes, "; ") }
