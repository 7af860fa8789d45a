// Package ran finds the profile that would have fitted past jobs, from the sidecar's record of
// their steps.
package ran

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/planner"
)

// Margin is the default addition to each step, in percent.
const Margin = 5

// lastRuns is how many runs Last looks at.
const lastRuns = 5

// Source is the part of a sidecar that reports on jobs.
type Source interface {
	History(ctx context.Context, q api.HistoryQuery) (api.History, error)
	Events(ctx context.Context, q api.EventQuery) ([]api.Event, error)
}

// Last returns the profile that would have fitted a user's last runs (at most five) of the job with
// that name that went through all of their steps, and which runs those were. Runs with other steps
// than the last one do not count.
func Last(ctx context.Context, from Source, uid uint32, name string) (planner.Profile, string, error) {
	page, err := from.History(ctx, api.HistoryQuery{Users: []string{strconv.FormatUint(uint64(uid), 10)}, Names: []string{name}})
	if err != nil {
		return nil, "", err
	}
	jobs := slices.DeleteFunc(page.Jobs, func(j api.Job) bool {
		return j.UID != uid || j.Name != name || j.State != "ended" || j.EndState != "COMPLETED"
	})
	if len(jobs) == 0 {
		return nil, "", fmt.Errorf("no job of yours with the name %q has completed, as far as the sidecar remembers", name)
	}
	slices.SortFunc(jobs, func(a, b api.Job) int { return cmp.Or(b.End.Compare(a.End), cmp.Compare(b.ID, a.ID)) })
	var runs [][]Step
	var ids []string
	var skipped error
	for _, j := range jobs {
		events, err := from.Events(ctx, api.EventQuery{Job: j.ID, Limit: api.MaxEvents})
		if err != nil {
			return nil, "", err
		}
		p, err := planner.ParseProfile(j.Profile)
		steps, e := Steps(j, events)
		if err = errors.Join(err, e); err != nil || len(steps) != len(p) {
			skipped = cmp.Or(skipped, fmt.Errorf("job %d did not go through all its steps", j.ID))
			continue
		}
		if _, err := Fitting(append(slices.Clone(runs), steps), Margin); err != nil {
			continue // it had other steps then
		}
		runs, ids = append(runs, steps), append(ids, strconv.FormatUint(uint64(j.ID), 10))
		if len(runs) == lastRuns {
			break
		}
	}
	if len(runs) == 0 {
		return nil, "", skipped
	}
	p, err := Fitting(runs, Margin)
	what := "job "
	if len(ids) > 1 {
		what = "jobs "
	}
	return p, fmt.Sprintf("%s, by %s%s (evosctl profile has how long each step lasted; %d %% are added)", p, what, strings.Join(ids, ", "), Margin), err
}

// Step is a step as it was asked for and as it was, in seconds.
type Step struct {
	Nodes         int
	Asked         int64
	Lasted, Idled int64 // until the application ended it; from then on until the next had its nodes
	ByApplication bool  // the application ended the step; otherwise the job's end did
}

// Steps returns the steps of a job that have ended. Times count as whole seconds, as the database has them.
func Steps(j api.Job, events []api.Event) ([]Step, error) {
	p, err := planner.ParseProfile(j.Profile)
	if err != nil {
		return nil, fmt.Errorf("its profile: %w", err)
	}
	ends := map[int]time.Time{}
	for _, e := range events {
		var d struct {
			Step int `json:"step"`
		}
		if e.Kind == "step ended" && json.Unmarshal(e.Detail, &d) == nil {
			ends[d.Step] = e.At.Truncate(time.Second)
		}
	}
	var steps []Step
	for i := range p {
		var begin, end time.Time
		for _, span := range j.Past {
			if span.Step == i+1 {
				if begin.IsZero() {
					begin = span.Start.Truncate(time.Second)
				}
				end = span.End.Truncate(time.Second)
			}
		}
		if begin.IsZero() || end.IsZero() {
			break // it has not begun, or is still running
		}
		s := Step{Nodes: p[i].Nodes, Asked: p[i].Duration}
		ended, told := ends[i+1]
		if s.ByApplication = told && !ended.After(end) && ended.After(begin); !s.ByApplication {
			ended = end
		}
		s.Lasted = max(int64(ended.Sub(begin)/time.Second), 1)
		s.Idled = int64(end.Sub(ended) / time.Second)
		steps = append(steps, s)
	}
	if len(steps) == 0 {
		return nil, errors.New("none of its steps has ended")
	}
	return steps, nil
}

// Fitting returns the profile that all of these runs would have fitted into.
func Fitting(runs [][]Step, margin int) (planner.Profile, error) {
	fits := make(planner.Profile, len(runs[0]))
	for _, run := range runs {
		if len(run) != len(fits) {
			return nil, fmt.Errorf("the jobs have %d and %d steps that have ended: they are no runs of the same", len(fits), len(run))
		}
		for i, s := range run {
			if fits[i].Nodes = cmp.Or(fits[i].Nodes, s.Nodes); fits[i].Nodes != s.Nodes {
				return nil, fmt.Errorf("step %d has %d nodes in one job and %d in another", i+1, fits[i].Nodes, s.Nodes)
			}
			fits[i].Duration = max(fits[i].Duration, s.Lasted+(s.Lasted*int64(margin)+99)/100)
		}
	}
	return fits, nil
}
