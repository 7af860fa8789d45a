package plan

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/job/request"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/slurm"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
	"github.com/evoslurm/evoslurm/planner"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// A moldable job always has the profile of one of its alternatives: while it is queued, the one that the last
// plan chose, and from its start the one that it began with. Before Slurm may start it, the parked job gets
// the nodes and time limit of that alternative in its user's name: what an administrator sets is exempt from
// Slurm's limits.

// mayChoose reports whether the job's alternative is still open.
func mayChoose(j *state.Job) bool {
	return j.Moldable != nil && !j.Moldable.Fixed && j.State == row.Queued && len(slurm.Partitions(j)) == 1
}

// alternatives lists the alternatives, from 0, that a queued job may have at present: all except those that
// Slurm has refused.
func alternatives(c *state.Core, j *state.Job) (which []int, err error) {
	var reasons []string
	for k, p := range j.Moldable.Alternatives {
		if leftOut(j.Moldable, k) {
			continue
		}
		if refused, was := j.RefusedAs[k]; was && !c.Reached(c.Now, refused.Until) {
			reasons = append(reasons, fmt.Sprintf("%s: %s", p, refused.Why))
			continue
		}
		which = append(which, k)
	}
	if len(which) == 0 {
		return nil, errors.New("no alternative is feasible: " + strings.Join(reasons, "; "))
	}
	return which, nil
}

// leftOut reports whether an alternative was infeasible when the job was submitted.
func leftOut(m *row.Moldable, k int) bool { return len(m.Minutes) > 0 && len(m.Minutes[k]) == 0 }

// limitAs returns the time limit of the Slurm job that begins with a step, from 0, of an alternative; 0: the
// job's own limit.
func limitAs(m *row.Moldable, k, step int) time.Duration {
	if m == nil || len(m.Minutes) == 0 || len(m.Minutes[k]) == 0 {
		return 0
	}
	minutes := m.Minutes[k][min(step, len(m.Minutes[k])-1)]
	if minutes >= request.Unlimited {
		return 0
	}
	return time.Duration(minutes) * time.Minute
}

// limitOnceStarted returns the limit that a Slurm job of j will have when it starts: that of the alternative,
// unless a user or administrator has set another one.
func limitOnceStarted(j *state.Job, r *slurmctl.Job, k, step int) time.Duration {
	m := j.Moldable
	limit := limitAs(m, k, step)
	if limit == 0 || r.State != slurmctl.Pending {
		return r.TimeLimit
	}
	for other := range m.Alternatives {
		if limitAs(m, other, step) == r.TimeLimit {
			return limit
		}
	}
	return r.TimeLimit
}

// mold assigns an alternative to a queued job.
func mold(c *state.Core, j *state.Job, choice int, options []msg.PlannedOption) {
	m := j.Moldable
	j.Options = options
	if m.Choice == choice && j.ChoiceLogged {
		return
	}
	j.ChoiceLogged = true
	SetChoice(c, j, choice, m.Fixed)
	c.Event(j, "chosen", choiceWords(c, j))
	if known, ok := c.Known[j.BaseID()]; ok {
		known.Steps = len(j.Profile)
		c.Known[j.BaseID()] = known
	}
}

// SetChoice records the job's alternative.
func SetChoice(c *state.Core, j *state.Job, choice int, fixed bool) {
	changed := j.Choose(choice, fixed)
	if c.Save(j); changed {
		c.Emit(msg.SaveProfile{j.ID, j.Profile})
	}
}

// choiceWords describes the choice and what the other alternatives would give, for the event log.
func choiceWords(c *state.Core, j *state.Job) map[string]any {
	detail := map[string]any{"profile": j.Profile.String(), "by": j.Moldable.By.String(), "choice": j.Moldable.Choice + 1}
	var others []string
	for _, o := range j.Options {
		text := j.Moldable.Alternatives[o.Alternative].String()
		switch {
		case !o.Fits:
			text += " nowhere"
		default:
			text += fmt.Sprintf(" until %s (%.2f node-hours)", state.ClockText(c, time.Unix(o.End, 0)), float64(o.Held)/3600)
		}
		if o.Alternative != j.Moldable.Choice {
			others = append(others, text)
		} else if o.Fits {
			detail["gives"] = strings.TrimPrefix(text, j.Profile.String()+" ")
		}
	}
	if len(others) > 0 {
		detail["others"] = strings.Join(others, "; ")
	}
	return detail
}

// FixChoice is called when a moldable job starts: what Slurm shows decides which alternative the job has.
func FixChoice(c *state.Core, j *state.Job, r *slurmctl.Job) {
	m := j.Moldable
	if m == nil || m.Fixed {
		return
	}
	choice := m.Choice
	if len(r.NodeList) != j.Profile[0].Nodes || j.Guess > 0 {
		choice = seenAs(m, r, choice, j.Guess > 0)
	}
	SetChoice(c, j, choice, true)
	c.Event(j, "choice fixed", choiceWords(c, j))
}

// seenAs returns the alternative that a job was started with, by its nodes and its time limit. If the job was
// found running, any step may be the current one.
func seenAs(m *row.Moldable, r *slurmctl.Job, present int, inferred bool) int {
	fits := func(k int, p planner.Profile) bool {
		return !leftOut(m, k) && (p[0].Nodes == len(r.NodeList) || inferred && slices.Contains(request.Sizes(p), len(r.NodeList)))
	}
	best, score := present, -1
	for k, p := range m.Alternatives {
		if !fits(k, p) {
			continue
		}
		value := 0
		if limit := limitAs(m, k, 0); limit != 0 && limit == r.TimeLimit {
			value += 2
		}
		if k == present {
			value++
		}
		if value > score {
			best, score = k, value
		}
	}
	return best
}

// Shape returns what a parked Slurm job of j needs to begin with a step (1-based) of the chosen alternative,
// and false if it needs nothing.
func Shape(c *state.Core, j *state.Job, r *slurmctl.Job, step int) (msg.Update, bool) {
	m := j.Moldable
	if m == nil || r.State != slurmctl.Pending || !j.Mode.StepsAreJobs && step != 1 || step > len(j.Profile) {
		return msg.Update{}, false
	}
	var u slurmctl.JobUpdate
	if nodes := j.Profile[step-1].Nodes; r.NumNodes != nodes {
		u.NumNodes = nodes
	}
	if limit := limitOnceStarted(j, r, m.Choice, step-1); limit != r.TimeLimit {
		u.TimeLimit = limit
	}
	if j.Marked[r.ID] != m.Choice+1 {
		u.Comment = markChoice(c, r, m.Choice)
	}
	return msg.Update{Job: r.ID, Change: u, As: j.UID}, u.NumNodes != 0 || u.TimeLimit != 0 || u.Comment != nil
}

// markChoice returns the comment of a Slurm job with the chosen alternative, or nil if it needs no other one.
func markChoice(c *state.Core, r *slurmctl.Job, choice int) *string {
	asked, ok, err := Mark(c, r)
	if !ok || err != nil || asked.Moldable == nil || asked.Profile != nil && asked.Moldable.Chosen() == choice {
		return nil
	}
	if text, fits := request.Choose(r.Comment, choice+1); fits && asked.Moldable.Choice != choice+1 {
		return &text
	}
	return nil
}

// Shaped is called when a job was given the shape, or when that failed.
func Shaped(c *state.Core, j *state.Job, p *state.Pending, o msg.Outcome) {
	do, choice := state.CommandOf[msg.Update](p), j.Moldable.Choice
	r, u := c.RecordOf(j, p, do.Job), do.Change
	switch {
	case o.Err == nil:
		state.Wrote(r, u)
		if j.Marked == nil {
			j.Marked = map[slurmctl.JobID]int{}
		}
		j.Marked[r.ID] = choice + 1 // whatever a site's plugins did to the comment
	case !state.Transient(o.Err): // choose another alternative
		if j.RefusedAs == nil {
			j.RefusedAs = map[int]state.Refusal{}
		}
		j.RefusedAs[choice] = state.Refusal{o.Err.Error(), c.Now.Add(slurm.RefusedFor)}
	}
}

// FeasibleAlternatives removes the alternatives that limits never let run. It returns the reasons if none is
// left.
func FeasibleAlternatives(sp request.Request, never func(request.Request) []string) (request.Request, []string) {
	m := *sp.Moldable
	m.Minutes = slices.Clone(m.Minutes)
	if len(m.Minutes) == 0 {
		m.Minutes = make([][]int64, len(m.Alternatives))
		for k := range m.Minutes {
			m.Minutes[k] = []int64{request.Unlimited}
		}
	}
	var reasons []string
	for k, p := range m.Alternatives {
		if len(m.Minutes[k]) == 0 {
			continue
		}
		one := sp
		one.Profile, one.Moldable = p, nil
		if why := never(one); len(why) > 0 {
			m.Minutes[k] = nil
			reasons = append(reasons, fmt.Sprintf("%s: %s", p, strings.Join(why, "; ")))
		}
	}
	if m.Submitted() < 0 {
		return sp, reasons
	}
	sp.Moldable = &m
	if m.Choice > 0 && m.LeftOut(m.Choice-1) {
		m.Choice = 0
	}
	sp.Profile = m.Alternatives[m.Chosen()]
	return sp, nil
}

// MoldableOf returns a request's alternatives as a row.
func MoldableOf(sp request.Request) *row.Moldable {
	m := sp.Moldable
	if m == nil || len(m.Alternatives) == 0 || sp.MaxNodes > 0 {
		return nil
	}
	return &row.Moldable{Alternatives: m.Alternatives, By: m.By, Minutes: m.Minutes, Choice: m.Chosen()}
}

// MoldableShown returns what evosqueue shows about the alternatives.
func MoldableShown(c *state.Core, j *state.Job) *api.Moldable {
	m := j.Moldable
	if m == nil {
		return nil
	}
	shown := &api.Moldable{By: m.By.String(), Choice: m.Choice + 1, Fixed: m.Fixed}
	for k, p := range m.Alternatives {
		a := api.Alternative{Profile: p.String(), NodeHours: float64(p.Area()) / 3600}
		i := slices.IndexFunc(j.Options, func(o msg.PlannedOption) bool { return o.Alternative == k })
		refused, was := j.RefusedAs[k]
		switch {
		case i >= 0 && j.Options[i].Fits:
			o := j.Options[i]
			a.Start, a.End = time.Unix(o.Start, 0), time.Unix(o.End, 0)
			a.Waste, a.NodeHours = float64(o.Waste)/3600, float64(o.Held)/3600
		case leftOut(m, k):
			a.Reason = "infeasible when it was submitted"
		case was && !c.Reached(c.Now, refused.Until):
			a.Reason = refused.Why
		case i >= 0:
			a.Reason = "there is no time at which its nodes are free for long enough"
		}
		shown.Alternatives = append(shown.Alternatives, a)
	}
	return shown
}
