package observed

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/evoslurm/evoslurm/adapter/lab/outcome"
	"github.com/evoslurm/evoslurm/adapter/sidecar/observed"
)

// Report answers what the sidecar would have done to a site.
type Report struct {
	Cluster string    `json:"cluster"`
	Slurm   string    `json:"slurm"` // version
	Masked  bool      `json:"masked"`
	From    time.Time `json:"from"`
	Until   time.Time `json:"until"`
	Method  Method    `json:"method"`

	Starts      int           `json:"starts"`  // of stock jobs
	Samples     int           `json:"samples"` // predictions as they were made
	Gone        int           `json:"gone"`    // of these, jobs that ended without a start: not counted
	Predictions []Prediction  `json:"predictions"`
	Calibration []Calibration `json:"calibration"`

	Evolve string    `json:"evolve"` // which jobs evolved in the model
	Gain   []Measure `json:"gain"`   // of jobs that came and ended on the played days
	Cost   Cost      `json:"cost"`

	Days  []Day    `json:"days"`
	Notes []string `json:"notes"` // what is missing

	last *played
}

// Day is a recorded day.
type Day struct {
	Date     string   `json:"date"`
	Jobs     int      `json:"jobs"`     // that were played
	Evolving int      `json:"evolving"` // of these
	HeldIdle float64  `json:"held_idle"`
	Later    int      `json:"later"` // stock jobs
	Notes    []string `json:"notes"`
}

// Measure is a mean over jobs.
type Measure struct {
	Name     string `json:"name"` // "wait", "turnaround" (seconds), "node_hours"
	Jobs     string `json:"jobs"` // "all", "stock", "evolving"
	Of       int    `json:"of"`
	Site     Figure `json:"site"`
	Model    Figure `json:"model"`    // the same in the model
	Error    Figure `json:"error"`    // the model's own error: Model - Site
	Evolving Figure `json:"evolving"` // in the model, with evolving jobs
	Gain     Figure `json:"gain"`     // Evolving - Model; negative: less
}

// Cost holds the price of holds to stock jobs in the model, and of observing to slurmctld.
type Cost struct {
	HeldIdle *Figure            `json:"held_idle"` // node-hours a day, mean of the played days; null: none was played
	Later    []Later            `json:"later"`     // by partition; the first for all
	Share    *Figure            `json:"share"`     // of slurmctld's time, mean; null: not recorded
	Most     float64            `json:"most"`      // the largest share in a period of the record
	Calls    map[string]float64 `json:"calls"`     // commands of Slurm per hour
}

// Later counts stock jobs that start later with evolving jobs than without, in the model.
type Later struct {
	Partition  string  `json:"partition"` // "": all
	Stock      int     `json:"stock"`     // jobs that came on the played days and started in both
	Later      int     `json:"later"`
	Noticeably int     `json:"noticeably"` // by more than a minute
	Share      *Figure `json:"share"`      // of Later; null without stock jobs
	Median     float64 `json:"median"`     // of the delays, in seconds
	Worst      float64 `json:"worst"`
	Lost       int     `json:"lost"` // started only without evolving jobs
}

// Options says what is reported, and how.
type Options struct {
	Since    time.Time // zero: all
	Evolve   Evolve
	Days     int           // that are played, the latest; 0: none
	Within   time.Duration // for playing all days; 0: as long as it takes
	Progress func(steps, done int)
}

// ErrNothing means that there is no record to report on.
var ErrNothing = errors.New("nothing was recorded")

// New makes a report of a folder. Files that cannot be read, and days that cannot be played, become notes.
func New(ctx context.Context, dir string, o Options) (*Report, error) {
	rec, err := read(dir, o.Since)
	if err != nil {
		return nil, err
	}
	r := &Report{Cluster: rec.site.Cluster, Slurm: rec.site.Slurm, Masked: rec.masked, From: unix(rec.from), Until: unix(rec.until), Method: newMethod(rec.until - rec.from),
		Predictions: []Prediction{}, Calibration: []Calibration{}, Evolve: o.Evolve.name(), Gain: []Measure{}, Days: []Day{}, Notes: append([]string{}, rec.notes...), Cost: Cost{Later: []Later{}, Calls: map[string]float64{}}}
	if len(rec.days) == 0 {
		return r, fmt.Errorf("%w%s", ErrNothing, detail(rec.notes))
	}
	r.predicted(rec)
	r.loads(rec)
	return r, r.play(ctx, rec, o)
}

func detail(notes []string) (text string) {
	for _, n := range notes {
		text += "; " + n
	}
	return text
}

// predicted fills in how well starts were predicted.
func (r *Report) predicted(rec *record) {
	r.Starts = len(rec.starts)
	leads := rec.leads()
	for _, lead := range observed.Leads {
		r.Predictions = append(r.Predictions, r.Method.predictions(time.Duration(lead)*time.Second, leads[lead]))
	}
	var promises []promise
	promises, r.Gone = rec.promises()
	r.Samples = len(promises)
	r.Calibration = r.Method.calibrations(promises)
}

// loads fills in what the sidecar cost slurmctld.
func (r *Report) loads(rec *record) {
	var shares []observation
	hours := 0.
	calls := map[string]int{}
	for _, l := range rec.loads {
		shares = append(shares, observation{l.Share, r.Method.block(unix(l.At))})
		r.Cost.Most = max(r.Cost.Most, l.Share)
		hours += float64(max(l.At-l.From, 0)) / 3600
		for name, n := range l.Calls {
			calls[name] += n
		}
	}
	if len(shares) == 0 {
		r.Notes = append(r.Notes, "no load on slurmctld was recorded")
		return
	}
	share := r.Method.mean(shares)
	r.Cost.Share = &share
	for name, n := range calls {
		if hours > 0 {
			r.Cost.Calls[name] = float64(n) / hours
		}
	}
}

// play plays the latest days.
func (r *Report) play(ctx context.Context, rec *record, o Options) error {
	var days []*day
	for _, date := range rec.days[max(len(rec.days)-o.Days, 0):] {
		d, err := rec.newDay(date)
		if err != nil {
			r.Days = append(r.Days, Day{Date: date, Notes: []string{err.Error()}})
			continue
		}
		days = append(days, d)
	}
	if n := len(rec.days) - o.Days; n > 0 {
		r.Notes = append(r.Notes, fmt.Sprintf("%d earlier days are not played", n))
	}
	steps, done := 0, 0
	for _, d := range days {
		steps += 2 * len(d.jobs)
	}
	t := tally{method: r.Method, measures: map[[2]string][]pair{}, later: map[string]*delays{}}
	within, cancel := ctx, context.CancelFunc(func() {})
	if o.Within > 0 {
		within, cancel = context.WithTimeout(ctx, o.Within)
	}
	defer cancel()
	for _, d := range days {
		p, err := d.play(within, o.Evolve, func(ended int) {
			if o.Progress != nil {
				o.Progress(steps, done+ended)
			}
		})
		if ctx.Err() != nil {
			return ctx.Err()
		} else if errors.Is(err, context.DeadlineExceeded) {
			r.Days = append(r.Days, Day{Date: d.date, Notes: append(d.notes, fmt.Sprintf("not played: it takes longer than %v; take a smaller --share", o.Within))})
			continue
		} else if err != nil {
			r.Days = append(r.Days, Day{Date: d.date, Notes: append(d.notes, "not played: "+err.Error())})
			continue
		}
		done += 2 * len(d.jobs)
		r.Days = append(r.Days, t.add(p))
		r.last = p
	}
	slices.SortFunc(r.Days, func(a, b Day) int { return strings.Compare(a.Date, b.Date) })
	t.report(r)
	return nil
}

// pair holds a figure of a job on the site, in the model, and in the model with evolving jobs.
type pair struct {
	site, model, evolving float64
	block                 int64
}

// delays holds the delays of stock jobs in a partition.
type delays struct {
	later []observation // 1 or 0
	by    []float64
	lost  int
}

// tally adds up played days.
type tally struct {
	method   Method
	measures map[[2]string][]pair
	held     []observation
	later    map[string]*delays
}

// add adds a day.
func (t *tally) add(p *played) Day {
	one := Day{Date: p.date, Jobs: len(p.jobs), HeldIdle: p.evolving.Metrics.HeldIdle / 3600, Notes: append([]string{}, p.notes...)}
	was, evolving := p.was.Outcome(), p.evolving.Outcome()
	unended := 0
	for i, j := range p.jobs {
		if p.evolves[i] {
			one.Evolving++
		}
		if !p.counts[i] {
			continue
		}
		a, b := &was[i], &evolving[i]
		block := t.method.block(unix(arrival(j)))
		if !p.evolves[i] && t.delay(p.e.Jobs[i].Partition, a, b, block) {
			one.Later++
		}
		if a.End < 0 || b.End < 0 {
			unended++
			continue
		}
		of := "stock"
		if p.evolves[i] {
			of = "evolving"
		}
		comes := float64(arrival(j) - p.from)
		for name, values := range map[string]pair{
			"wait":       {float64(j.Start-p.from) - comes, float64(a.Start) - comes, float64(b.Start) - comes, block},
			"turnaround": {float64(j.End-p.from) - comes, float64(a.End) - comes, float64(b.End) - comes, block},
			"node_hours": {nodeSeconds(j) / 3600, had(a) / 3600, had(b) / 3600, block},
		} {
			t.measures[[2]string{name, "all"}] = append(t.measures[[2]string{name, "all"}], values)
			t.measures[[2]string{name, of}] = append(t.measures[[2]string{name, of}], values)
		}
	}
	if unended > 0 {
		one.Notes = append(one.Notes, fmt.Sprintf("%d jobs did not end in the model", unended))
	}
	t.held = append(t.held, observation{one.HeldIdle, t.method.block(unix(p.from))})
	return one
}

// delay counts a stock job, and reports whether it starts later with evolving jobs.
func (t *tally) delay(partition string, was, evolving *outcome.Job, block int64) bool {
	by := float64(evolving.Start - was.Start)
	for _, name := range []string{"", partition} {
		d := t.later[name]
		if d == nil {
			d = &delays{}
			t.later[name] = d
		}
		switch {
		case was.Start < 0:
		case evolving.Start < 0:
			d.lost++
		case by > 0:
			d.later, d.by = append(d.later, observation{1, block}), append(d.by, by)
		default:
			d.later = append(d.later, observation{0, block})
		}
	}
	return was.Start >= 0 && evolving.Start > was.Start
}

// nodeSeconds returns what a job had on the site.
func nodeSeconds(j *observed.Job) (sum float64) {
	nodes, since := j.Nodes, j.Start
	if len(j.Sizes) > 0 { // Nodes is the last size, and the first one is not known: it counts as that
		nodes = j.Sizes[0].Nodes
	}
	for _, s := range j.Sizes {
		sum += float64(nodes) * float64(max(s.At-since, 0))
		nodes, since = s.Nodes, s.At
	}
	return sum + float64(nodes)*float64(max(j.End-since, 0))
}

// had returns the node-seconds that a job had in the model.
func had(j *outcome.Job) float64 {
	one := outcome.Run{Nodes: 1, Jobs: []outcome.Job{*j}}
	return one.Measure().Allocated
}

// report fills in the figures of all days.
func (t *tally) report(r *Report) {
	for _, name := range []string{"wait", "turnaround", "node_hours"} {
		for _, jobs := range []string{"all", "stock", "evolving"} {
			if all := t.measures[[2]string{name, jobs}]; len(all) > 0 {
				r.Gain = append(r.Gain, t.measure(name, jobs, all))
			}
		}
	}
	if len(t.held) > 0 {
		held := t.method.mean(t.held)
		r.Cost.HeldIdle = &held
	}
	for _, name := range slices.Sorted(maps.Keys(t.later)) {
		d := t.later[name]
		l := Later{Partition: name, Stock: len(d.later), Later: len(d.by), Lost: d.lost}
		slices.Sort(d.by)
		for _, by := range d.by {
			if by > outcome.Noticeable {
				l.Noticeably++
			}
		}
		if n := len(d.by); n > 0 {
			l.Median, l.Worst = d.by[(n+1)/2-1], d.by[n-1]
		}
		if len(d.later) > 0 {
			share := t.method.mean(d.later)
			l.Share = &share
		}
		r.Cost.Later = append(r.Cost.Later, l)
	}
}

func (t *tally) measure(name, jobs string, all []pair) Measure {
	of := func(value func(pair) float64) Figure {
		x := make([]observation, len(all))
		for i, p := range all {
			x[i] = observation{value(p), p.block}
		}
		return t.method.mean(x)
	}
	return Measure{name, jobs, len(all), of(func(p pair) float64 { return p.site }), of(func(p pair) float64 { return p.model }),
		of(func(p pair) float64 { return p.model - p.site }), of(func(p pair) float64 { return p.evolving }), of(func(p pair) float64 { return p.evolving - p.model })}
}
