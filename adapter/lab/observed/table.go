package observed

import (
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/evoslurm/evoslurm/adapter/internal/legible"
	"github.com/evoslurm/evoslurm/adapter/lab/outcome"
	"github.com/evoslurm/evoslurm/adapter/lab/report"
)

// Table writes the report as text.
func (r *Report) Table(out io.Writer) error {
	for _, line := range r.summary() {
		fmt.Fprintln(out, line)
	}
	for _, s := range r.sections() {
		fmt.Fprintf(out, "\n%s\n", s.Title)
		for _, n := range s.Notes {
			fmt.Fprintln(out, "  "+n)
		}
		if len(s.Rows) == 0 {
			continue
		}
		w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
		fmt.Fprintln(w, "  "+strings.Join(s.Head, "\t"))
		for _, row := range s.Rows {
			fmt.Fprintln(w, "  "+strings.Join(row, "\t"))
		}
		if err := w.Flush(); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintln(out, "\n"+r.method())
	return err
}

// Page writes the report as one HTML page, with the last played day in charts.
func (r *Report) Page(out io.Writer, o report.Options) error {
	if o.Title == "" {
		o.Title = "Evoslurm: what it would do on " + text(r.Cluster)
	}
	o.Summary, o.Sections = append(r.summary(), r.method()), r.sections()
	var outcomes []outcome.Outcome
	if r.last != nil {
		for _, one := range r.last.outcomes() {
			if _, err := one.Layout(); err != nil {
				o.Summary = append(o.Summary, fmt.Sprintf("No charts of %s: jobs share nodes.", one.Name))
				continue
			}
			outcomes = append(outcomes, one)
		}
	}
	return report.Write(out, outcomes, o)
}

// summary says in sentences what the record is.
func (r *Report) summary() []string {
	return []string{fmt.Sprintf("Cluster %s, Slurm %s, observed from %s to %s (UTC): %d starts of stock jobs.", text(r.Cluster), text(r.Slurm),
		r.From.Format("2006-01-02 15:04"), r.Until.Format("2006-01-02 15:04"), r.Starts)}
}

// method says how intervals are made.
func (r *Report) method() string {
	return fmt.Sprintf("In parentheses: 95 %% confidence intervals by bootstrap over blocks of %s (%d resamples, seed %d); none if all falls into one block.", strings.Replace("one "+r.Method.Block, "one five", "five", 1), r.Method.Resamples, r.Method.Seed)
}

func (r *Report) sections() []report.Section {
	all := []report.Section{r.predictionTable(), r.calibrationTable(), r.gainTable(), r.laterTable(), r.costTable(), r.daysTable()}
	if len(r.Notes) > 0 {
		notes := report.Section{ID: "notes", Title: "What is missing"}
		for _, n := range r.Notes {
			notes.Notes = append(notes.Notes, text(n))
		}
		all = append(all, notes)
	}
	return all
}

func (r *Report) predictionTable() report.Section {
	s := report.Section{ID: "predictions", Title: "How well are starts predicted?", Notes: []string{"The planned against the actual start of stock jobs, by the time between the prediction and the start. The bias is the mean error: positive if jobs start later than predicted."},
		Head: []string{"Before the start", "By", "Starts", "Error, median", "Error, 95 %", "Bias"}}
	for _, p := range r.Predictions {
		if p.Ours == nil {
			s.Notes = append(s.Notes, fmt.Sprintf("No prediction %s before a start.", span(p.Lead)))
			continue
		}
		for _, row := range []struct {
			by string
			*Errors
		}{{"Evoslurm", p.Ours}, {"Evoslurm, same jobs as Slurm", p.OursSame}, {"Slurm", p.Slurm}} {
			if row.Errors == nil {
				s.Rows = append(s.Rows, []string{span(p.Lead), row.by, "0", "-", "-", "-"})
				continue
			}
			of := fmt.Sprint(row.Of)
			if row.by == "Slurm" && p.None > 0 {
				of += fmt.Sprintf(" (%d without)", p.None)
			}
			s.Rows = append(s.Rows, []string{span(p.Lead), row.by, of, row.Median.text(report.Seconds), row.P95.text(report.Seconds), row.Bias.text(report.Seconds)})
		}
	}
	return s
}

func (r *Report) calibrationTable() report.Section {
	s := report.Section{ID: "calibration", Title: "Which promises are kept?", Notes: []string{fmt.Sprintf("Of predictions as they were made, the share of starts promised within a time that came within it. %d predictions; %d more were for jobs that ended without a start.", r.Samples, r.Gone)},
		Head: []string{"Promised within", "Evoslurm, promised", "came within", "Slurm, promised", "came within"}}
	for _, c := range r.Calibration {
		row := []string{span(c.Within)}
		for _, k := range []*Kept{c.Ours, c.Slurm} {
			if k == nil {
				row = append(row, "0", "-")
			} else {
				row = append(row, fmt.Sprint(k.Promised), k.Kept.text(percent))
			}
		}
		s.Rows = append(s.Rows, row)
	}
	return s
}

func (r *Report) gainTable() report.Section {
	s := report.Section{ID: "gain", Title: "What would be gained?", Notes: []string{"Means of the jobs that came and ended on the played days: on the site, in the model as it was, and in the model with " + r.Evolve + ". The model's error is the difference to the site: do not believe a change below it. A shape keeps a job's node-hours, except with --peak; a profile of a rule may not."},
		Head: []string{"", "Jobs", "Number", "On the site", "In the model", "Model's error", "With evolving jobs", "Change"}}
	for _, m := range r.Gain {
		name, as := map[string]string{"wait": "Wait", "turnaround": "Turnaround", "node_hours": "Node-hours"}[m.Name], report.Seconds
		if m.Name == "node_hours" {
			as = rounded
		}
		s.Rows = append(s.Rows, []string{name, m.Jobs, fmt.Sprint(m.Of), as(m.Site.Value), as(m.Model.Value), m.Error.text(as), as(m.Evolving.Value), m.Gain.text(as)})
	}
	return s
}

func (r *Report) laterTable() report.Section {
	s := report.Section{ID: "later", Title: "Which stock jobs would start later?", Notes: []string{"In the model, with evolving jobs against as it was; stock jobs that came on the played days."},
		Head: []string{"Partition", "Stock jobs", "Later", "Share", "by over 60 s", "Median", "Worst", "Never started"}}
	for _, l := range r.Cost.Later {
		name, share := text(l.Partition), "-"
		if name == "" {
			name = "all"
		}
		if l.Share != nil {
			share = l.Share.text(percent)
		}
		s.Rows = append(s.Rows, []string{name, fmt.Sprint(l.Stock), fmt.Sprint(l.Later), share, fmt.Sprint(l.Noticeably), report.Seconds(l.Median), report.Seconds(l.Worst), fmt.Sprint(l.Lost)})
	}
	return s
}

func (r *Report) costTable() report.Section {
	s := report.Section{ID: "cost", Title: "What would it cost?", Head: []string{"", "Mean"}}
	if h := r.Cost.HeldIdle; h != nil {
		s.Rows = append(s.Rows, []string{"node-hours held idle, per played day", h.text(rounded)})
	}
	if share := r.Cost.Share; share != nil {
		s.Rows = append(s.Rows, []string{"share of slurmctld's time, while observing", share.text(percent)}, []string{"the largest such share", percent(r.Cost.Most)})
	}
	for _, name := range slices.Sorted(maps.Keys(r.Cost.Calls)) {
		s.Rows = append(s.Rows, []string{"calls per hour of " + text(name), report.Number(r.Cost.Calls[name])})
	}
	return s
}

func (r *Report) daysTable() report.Section {
	s := report.Section{ID: "days", Title: "Days", Head: []string{"Day (UTC)", "Jobs", "Evolving", "Held idle, node-hours", "Later", "Remarks"}}
	for _, d := range r.Days {
		s.Rows = append(s.Rows, []string{d.Date, fmt.Sprint(d.Jobs), fmt.Sprint(d.Evolving), rounded(d.HeldIdle), fmt.Sprint(d.Later), text(strings.Join(d.Notes, "; "))})
	}
	return s
}

// text returns the figure with its interval.
func (f Figure) text(as func(float64) string) string {
	if f.Low == nil {
		return as(f.Value)
	}
	return fmt.Sprintf("%s (%s … %s)", as(f.Value), as(*f.Low), as(*f.High))
}

// percent returns a share for people; small ones with two digits.
func percent(share float64) string {
	if share > 0 && share < .01 {
		return fmt.Sprintf("%.2g %%", 100*share)
	}
	return report.Number(100*share) + " %"
}

// rounded shows two decimal places at most, and no negative zero.
func rounded(x float64) string { return strconv.FormatFloat(math.Round(x*100)/100+0, 'f', -1, 64) }

func span(seconds int64) string { return report.Seconds(float64(seconds)) }

// text makes names and messages printable.
func text(of string) string { return legible.Printable(of, false) }
