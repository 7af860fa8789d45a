package observed

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/evoslurm/evoslurm/adapter/internal/config"
	"github.com/evoslurm/evoslurm/adapter/lab/outcome"
	"github.com/evoslurm/evoslurm/adapter/lab/simulate"
	"github.com/evoslurm/evoslurm/adapter/sidecar/observed"
	"github.com/evoslurm/evoslurm/planner"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// A day that is shorter, or has fewer jobs, is not played.
const (
	shortestDay = 5 * 60
	fewestJobs  = 5
)

// mostAfter is how long after a day its jobs are played, in seconds.
const mostAfter = 7 * 86400

// day is a day as it was, to be played from its first second on.
type day struct {
	date        string
	from, until int64 // Unix seconds
	e           simulate.Experiment
	jobs        []*observed.Job // of e.Jobs
	counts      []bool          // whether a job arrived on the day and has ended
	notes       []string
}

// played is a day that was played.
type played struct {
	*day
	evolves       []bool // by job
	was, evolving *simulate.Result
}

// newDay makes the experiment of a day.
func (r *record) newDay(date string) (*day, error) {
	begin, err := time.Parse(time.DateOnly, date)
	if err != nil {
		return nil, err
	}
	d := &day{date: date, from: max(begin.Unix(), r.from), until: min(begin.AddDate(0, 0, 1).Unix(), r.until)}
	unseen := int64(0)
	for _, g := range r.gaps {
		unseen += max(min(g.Until, d.until)-max(g.From, d.from), 0)
	}
	switch whole := d.until - d.from; {
	case whole < shortestDay:
		return nil, fmt.Errorf("too short to play: %d seconds are recorded", max(whole, 0))
	case 2*unseen > whole:
		return nil, fmt.Errorf("not played: for %s of %s nothing was seen", planner.FormatDuration(unseen), planner.FormatDuration(whole))
	case unseen > 0:
		d.note("for %s nothing was seen", planner.FormatDuration(unseen))
	}
	var unknown []string
	if d.e.Cluster, unknown, err = cluster(&r.site); err != nil {
		return nil, fmt.Errorf("not played: %w", err)
	}
	if len(unknown) > 0 {
		d.note("not in the model: %s", strings.Join(unknown, ", "))
	}
	d.e.Cluster.Start = unix(d.from)
	d.e.Until = d.until - d.from + mostAfter
	d.configure(r.site.Config)
	d.outages(r)
	d.closures(r)
	d.submissions(r)
	if n := slices.Index(d.counts, true); n < 0 || len(d.jobs) < fewestJobs {
		return nil, fmt.Errorf("not played: of %d jobs that ran on the day, none came and ended in the record, or they are too few", len(d.jobs))
	}
	return d, nil
}

func (d *day) note(format string, args ...any) {
	d.notes = append(d.notes, fmt.Sprintf(format, args...))
}

// configure takes over the site's configuration, as far as the model can.
func (d *day) configure(c config.Config) {
	d.e.Config = c
	var err error
	if d.e.Strategy, err = planner.StrategyByName(c.Strategy); err != nil || c.Validate() != nil {
		d.note("strategy %q or another setting is not in the model: with the default configuration", c.Strategy)
		d.e.Config = config.Default()
		d.e.Strategy, _ = planner.StrategyByName(d.e.Config.Strategy)
	}
	d.e.Config.Drive, d.e.Config.Mode = config.Default().Drive, config.ModeAct
}

// outages are the nodes that were not usable.
func (d *day) outages(r *record) {
	second := func(at int64) int64 { return max(at-d.from, 0) }
	since := map[string]int64{}
	down := func(name string, until int64) {
		if from, is := since[name]; is {
			d.e.Outages = append(d.e.Outages, simulate.Outage{From: second(from), Until: until, Nodes: []string{name}, Announced: -1})
		}
		delete(since, name)
	}
	for _, n := range r.nodes {
		names, err := slurmctl.ExpandNodes(n.Nodes)
		if err != nil || n.At >= d.until {
			continue
		}
		for _, name := range names {
			if _, is := since[name]; n.Usable && is {
				if n.At > d.from {
					down(name, second(n.At))
				}
				delete(since, name)
			} else if !n.Usable && !is {
				since[name] = n.At
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(since)) {
		down(name, 0)
	}
}

// closures are other people's reservations.
func (d *day) closures(r *record) {
	second := func(at int64) int64 { return max(at-d.from, 0) }
	last := map[string]reservationAt{}
	for _, one := range r.reservations {
		before, again := last[one.Name]
		if one.Ended {
			one.Start, one.End = cmp.Or(one.Start, before.Start), min(one.At, cmp.Or(one.End, one.At))
		}
		if again && before.Start <= one.Start {
			one.At = before.At // when it was made
		}
		last[one.Name] = one
	}
	for _, name := range slices.Sorted(maps.Keys(last)) {
		one := last[name]
		names, err := slurmctl.ExpandNodes(one.Nodes)
		if err == nil && len(names) > 0 && one.Start < d.until && one.End > d.from {
			d.e.Outages = append(d.e.Outages, simulate.Outage{From: second(one.Start), Until: second(min(one.End, d.until+planner.MaxDuration)), Nodes: names, Announced: second(one.At)})
		}
	}
}

// submissions are the jobs that ran, waited, or came on the day.
func (d *day) submissions(r *record) {
	keys := slices.SortedFunc(maps.Keys(r.jobs), func(a, b jobKey) int { return cmp.Or(cmp.Compare(a.submit, b.submit), cmp.Compare(a.id, b.id)) })
	users := map[string]int{}
	left := map[string]int{}
	for _, key := range keys {
		j := r.jobs[key]
		comes := arrival(&j)
		if comes >= d.until || j.End > 0 && j.End <= d.from || j.Nodes < 1 {
			continue
		}
		if why := leftOut(&j); why != "" {
			left[why]++
			continue
		}
		user, known := users[j.User]
		if !known {
			user = len(users)
			users[j.User] = user
		}
		s := d.submission(&j, &r.site, user, comes, r.until)
		d.e.Jobs, d.jobs = append(d.e.Jobs, s), append(d.jobs, &j)
		d.counts = append(d.counts, comes >= d.from && j.Start > 0 && j.End >= j.Start && !j.Missed)
	}
	for _, why := range slices.Sorted(maps.Keys(left)) {
		d.note("%d %s: left out", left[why], why)
	}
}

// leftOut returns why a job is not played; "" if it is.
func leftOut(j *observed.Job) string {
	switch {
	case j.Start > 0:
		return ""
	case j.Evolving:
		return "evolving jobs were parked"
	case j.Missed:
		return "jobs came and went unseen"
	case !j.Standing || j.Eligible == 0:
		return "jobs ended or still depended on others without a start"
	}
	return ""
}

// arrival returns when a job could start at the earliest: when it was submitted, unless it had to wait for
// a time or for other jobs.
func arrival(j *observed.Job) int64 {
	if j.Begin > 0 || j.Depends != "" {
		return max(j.Submit, min(cmp.Or(j.Eligible, j.Begin), cmp.Or(j.Start, j.Eligible)))
	}
	return j.Submit
}

// submission returns a job as it was. One that ran when the day began runs on for the rest of its time.
func (d *day) submission(j *observed.Job, site *observed.Site, user int, comes, until int64) simulate.Submission {
	s := simulate.Submission{ID: strconv.FormatUint(uint64(j.ID), 10), Submit: max(comes-d.from, 0), User: user, Partition: j.Partition, Limit: j.Limit, Nice: nice(j, site, d.e.Cluster.MultifactorAge, d.e.Cluster.MaxAge)}
	lasts := j.End - j.Start
	if j.Start == 0 || j.End == 0 { // it is not known how long it runs: as long as it may
		if lasts = j.Limit; lasts <= 0 {
			lasts = max(until-cmp.Or(j.Start, until), 0) + 3600
		}
	}
	if j.Start > 0 && j.Start < d.from {
		s.First = true
		lasts -= d.from - j.Start
		if s.Limit > 0 {
			s.Limit = max(s.Limit-(d.from-j.Start), 60)
		}
	}
	lasts = min(max(lasts, 1), planner.MaxDuration)
	if s.Limit <= 0 || s.Limit > planner.MaxDuration {
		s.Limit = planner.MaxDuration
	}
	s.Limit = max(s.Limit, lasts+60)
	s.Profile = planner.Profile{{Nodes: min(j.Nodes, planner.MaxNodes), Duration: lasts}}
	if !j.Exclusive {
		s.CPUs = max((j.CPUs+j.Nodes-1)/j.Nodes, j.MinCPUs, 1)
	}
	if n := d.e.Cluster.NodeList; len(n) > 0 && s.CPUs >= n[0].CPUs {
		s.CPUs = 0
	}
	return s
}

// nice orders jobs in the model as their priorities did on the site, without the part that grows with age.
func nice(j *observed.Job, site *observed.Site, weight uint64, maxAge time.Duration) int {
	const most = 1 << 31
	if site.Settings["PriorityType"] != "priority/multifactor" || j.Priority == 0 || j.Priority > most {
		return min(max(j.Nice, -most), most)
	}
	age := 0.
	if maxAge > 0 {
		age = min(max(float64(j.Start-cmp.Or(j.Eligible, j.Submit))/maxAge.Seconds(), 0), 1)
	}
	return int(float64(weight)*age) - int(j.Priority)
}

// play plays the day as it was, and with jobs that evolve.
func (d *day) play(ctx context.Context, how Evolve, progress func(ended int)) (*played, error) {
	p := &played{day: d, evolves: make([]bool, len(d.jobs))}
	was := d.e
	was.Progress = progress
	var err error
	if p.was, err = was.Run(ctx); err != nil {
		return nil, err
	}
	e := d.e
	e.Jobs = slices.Clone(e.Jobs)
	evolver := how.evolver()
	machine := map[string]int{}
	for _, part := range e.Cluster.Partitions {
		if machine[part.Name] = len(part.Nodes); part.Nodes == nil {
			machine[part.Name] = len(e.Cluster.NodeList)
		}
		if part.MaxNodes > 0 {
			machine[part.Name] = min(machine[part.Name], part.MaxNodes)
		}
	}
	for i := range e.Jobs {
		if s := &e.Jobs[i]; d.counts[i] && s.CPUs == 0 && machine[s.Partition] > 0 {
			p.evolves[i] = evolver.apply(s, d.jobs[i], machine[s.Partition])
		}
	}
	e.Progress = func(ended int) { progress(len(d.jobs) + ended) }
	p.evolving, err = e.Run(ctx)
	return p, err
}

// outcomes returns the day in the form of reports: as it was on the site, and as it was in the model twice.
func (p *played) outcomes() (all []outcome.Outcome) {
	site := outcome.Outcome{Name: p.date + " on the site", Run: outcome.Run{Nodes: len(p.e.Cluster.NodeList)}}
	for i, j := range p.jobs {
		one := outcome.Job{ID: p.e.Jobs[i].ID, User: p.e.Jobs[i].User, Submit: p.e.Jobs[i].Submit, Start: -1, End: -1, State: j.State}
		if j.Start > 0 && j.End >= j.Start {
			one.Start, one.End = max(j.Start-p.from, 0), max(j.End-p.from, 0)
			one.Sizes, one.Area = []outcome.Size{{At: one.Start, Nodes: j.Nodes}, {At: one.End}}, int64(j.Nodes)*(one.End-one.Start)
			one.Submit = min(one.Submit, one.Start)
		}
		site.Jobs = append(site.Jobs, one)
	}
	all = append(all, site)
	for i, r := range []*simulate.Result{p.was, p.evolving} {
		o := outcome.Outcome{Name: p.date + []string{" in the model", " in the model, evolving"}[i], Run: outcome.Run{Nodes: r.Nodes, Jobs: r.Outcome(), Allocated: r.Metrics.Allocated, HeldIdle: r.Metrics.HeldIdle}}
		for k := range o.Jobs {
			o.Jobs[k].State, o.Jobs[k].Reason = r.Jobs[k].State, r.Jobs[k].Reason
			o.Jobs[k].Planned = r.Jobs[k].Planned
		}
		all = append(all, o)
	}
	return all
}
