package main

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/cmd/internal/complete"
	"github.com/evoslurm/evoslurm/adapter/internal/legible"
	"github.com/evoslurm/evoslurm/adapter/internal/when"
)

const accountHelp = `Sum up what evolving jobs had in a period, and what their promises cost: node-hours requested,
planned, allocated, wasted (allocated, and neither requested nor lent), lent to malleable jobs, and
held idle (idle nodes that a hold kept from waiting jobs); promises of growths that
were kept, late by ten seconds or more, or broken, and why; and stock jobs that started later
because of holds. Operators see all jobs, other users those that evosacct shows them.`

// accountFormats lists the forms of a report.
var accountFormats = []string{"table", "json", "csv"}

func newReport() *cobra.Command {
	var start, end, by, format string
	cmd := &cobra.Command{
		Use:   "report",
		Short: "Sum up what evolving jobs had, and what their promises cost",
		Long:  accountHelp,
		Example: `  evosctl report                              since midnight
  evosctl report -S now-7days --by=day        each day of a week
  evosctl report -S 2026-11-01 -E 2026-12-01 --by=account --format=csv`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			q, err := reportQuery(start, end, by, time.Now())
			if err != nil {
				return err
			}
			if !slices.Contains(accountFormats, format) {
				return fmt.Errorf("--format=%s: want %s", format, strings.Join(accountFormats, ", "))
			}
			client, err := connect(cmd)
			if err != nil {
				return err
			}
			r, err := atOnce(cmd.Context(), client, func(ctx context.Context) (api.Report, error) { return client.Report(ctx, q) })
			if err != nil {
				return err
			}
			return writeReport(os.Stdout, r, format)
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVarP(&start, "start", "S", "midnight", "start of the period: HH:MM[:SS], YYYY-MM-DD[THH:MM[:SS]], MMDD[YY], today, yesterday, now-7days")
	f.StringVarP(&end, "end", "E", "now", "end of the period, in the same forms")
	f.StringVar(&by, "by", "", "a row for each user, account, partition, qos, or day")
	f.StringVar(&format, "format", "table", "output format: table, json, or csv")
	complete.Flags(cmd, map[string]func(context.Context) []string{"by": complete.Fixed(api.ReportsBy...), "format": complete.Fixed(accountFormats...)})
	complete.None(cmd, "start", "end")
	return withObserve(cmd)
}

// reportQuery checks the options of a report.
func reportQuery(start, end, by string, now time.Time) (q api.ReportQuery, err error) {
	if q.Start, err = when.Parse(start, now); err != nil {
		return q, fmt.Errorf("--start: %w", err)
	}
	if q.End, err = when.Parse(end, now); err != nil {
		return q, fmt.Errorf("--end: %w", err)
	}
	if q.By = by; by != "" && !slices.Contains(api.ReportsBy, by) {
		return q, fmt.Errorf("--by=%s: want %s", by, strings.Join(api.ReportsBy, ", "))
	}
	if q.Start, q.End = q.Start.Truncate(time.Second), q.End.Truncate(time.Second); !q.End.After(q.Start) {
		return q, errors.New("the end of the period is not after its start")
	}
	return q, nil
}

// figure is a column of a report.
type figure struct {
	table, csv string
	of         func(r api.ReportRow) float64
	digits     int
}

var figures = []figure{
	{"JOBS", "jobs", func(r api.ReportRow) float64 { return float64(r.Jobs) }, 0},
	{"REQUESTED", "requested_node_hours", func(r api.ReportRow) float64 { return r.Requested }, 1},
	{"PLANNED", "planned_node_hours", func(r api.ReportRow) float64 { return r.Planned }, 1},
	{"ALLOCATED", "allocated_node_hours", func(r api.ReportRow) float64 { return r.Allocated }, 1},
	{"WASTED", "wasted_node_hours", func(r api.ReportRow) float64 { return r.Wasted }, 1},
	{"LENT", "lent_node_hours", func(r api.ReportRow) float64 { return r.Lent }, 1},
	{"HELDIDLE", "held_idle_node_hours", func(r api.ReportRow) float64 { return r.HeldIdle }, 1},
	{"PROMISES", "promises", func(r api.ReportRow) float64 { return float64(r.Promises.Made) }, 0},
	{"KEPT", "promises_kept", func(r api.ReportRow) float64 { return float64(r.Promises.Kept) }, 0},
	{"LATE", "promises_late", func(r api.ReportRow) float64 { return float64(r.Promises.Late) }, 0},
	{"BROKEN", "promises_broken", func(r api.ReportRow) float64 { return float64(r.Promises.Broken) }, 0},
	{"", "promises_not_reached", func(r api.ReportRow) float64 { return float64(r.Promises.NotReached) }, 0},
	{"", "late_seconds_average", func(r api.ReportRow) float64 { return r.Promises.Average }, 1},
	{"", "late_seconds_most", func(r api.ReportRow) float64 { return r.Promises.Latest }, 1},
	{"DELAYED", "stock_jobs_delayed", func(r api.ReportRow) float64 { return float64(r.Delayed.Jobs) }, 0},
	{"", "stock_jobs_delayed_seconds", func(r api.ReportRow) float64 { return float64(r.Delayed.Seconds) }, 0},
	{"", "stock_jobs_delayed_seconds_most", func(r api.ReportRow) float64 { return float64(r.Delayed.Most) }, 0},
	{"", "held_idle_kwh", func(r api.ReportRow) float64 { return r.HeldIdleKWh }, 1},
}

// writeReport writes a report in a format.
func writeReport(w io.Writer, r api.Report, format string) error {
	switch format {
	case "json":
		enc := json.NewEncoder(w)
		enc.SetIndent("", "  ")
		return enc.Encode(r)
	case "csv":
		return writeCSV(w, r)
	}
	const layout = "2006-01-02T15:04:05"
	period := fmt.Sprintf("from %s to %s", r.Start.Local().Format(layout), r.End.Local().Format(layout))
	if r.Empty() {
		_, err := fmt.Fprintf(w, "Nothing is recorded %s.\n", period)
		return err
	}
	fmt.Fprintf(w, "Evolving jobs %s, in node-hours:\n", period)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	width := len(r.By)
	for _, row := range r.Rows {
		width = max(width, legible.Columns(legible.Printable(row.Name, false)))
	}
	line := func(name string, cell func(f figure) string) {
		name = legible.Printable(name, false)
		fmt.Fprint(t, name, strings.Repeat(" ", max(width-legible.Columns(name), 0)), "\t") // aligned left
		for _, f := range figures {
			if f.table != "" {
				fmt.Fprint(t, cell(f), "\t")
			}
		}
		fmt.Fprintln(t)
	}
	line(strings.ToUpper(r.By), func(f figure) string { return f.table })
	for _, row := range append(slices.Clone(r.Rows), r.Total) {
		name := row.Name
		if name == "" && row == r.Total {
			name = "total"
		}
		line(name, func(f figure) string { return strconv.FormatFloat(f.of(row), 'f', f.digits, 64) })
	}
	if err := t.Flush(); err != nil {
		return err
	}
	_, err := io.WriteString(w, remarks(r))
	return err
}

// remarks returns what the table does not show.
func remarks(r api.Report) string {
	var b strings.Builder
	if r.More > 0 {
		fmt.Fprintf(&b, "%d more rows are only in the total.\n", r.More)
	}
	if r.Idle != nil {
		fmt.Fprintf(&b, "Idle nodes: %.1f node-hours", r.Idle.NodeHours)
		if r.Idle.KWh > 0 {
			fmt.Fprintf(&b, ", %.2f kWh; held ones drew %.2f kWh", r.Idle.KWh, r.Total.HeldIdleKWh)
		}
		b.WriteString(".\n")
	}
	p, d := r.Total.Promises, r.Total.Delayed
	if p.NotReached > 0 {
		fmt.Fprintf(&b, "not reached, since the job ended before: %d\n", p.NotReached)
	}
	if p.Late > 0 {
		fmt.Fprintf(&b, "Late promises came %.0f s late on average, at most %.0f s.\n", p.Average, p.Latest)
	}
	for _, c := range r.Causes {
		fmt.Fprintf(&b, "%s because of %q: %d\n", c.Outcome, c.Cause, c.Promises)
	}
	if d.Jobs > 0 {
		fmt.Fprintf(&b, "Stock jobs started %v later on average because of holds, at most %v.\n", (time.Duration(d.Seconds/int64(d.Jobs)) * time.Second), time.Duration(d.Most)*time.Second)
	}
	return b.String()
}

// writeCSV writes the rows of a report, or its total if it has none.
func writeCSV(w io.Writer, r api.Report) error {
	out := csv.NewWriter(w)
	head := []string{r.By}
	rows := r.Rows
	if r.By == "" {
		r.Total.Name = "total"
		head, rows = []string{"name"}, []api.ReportRow{r.Total}
	}
	for _, f := range figures {
		head = append(head, f.csv)
	}
	err := out.Write(head)
	for _, row := range rows {
		cells := []string{legible.Printable(row.Name, false)}
		for _, f := range figures {
			cells = append(cells, strconv.FormatFloat(f.of(row), 'f', 3*f.digits, 64))
		}
		err = errors.Join(err, out.Write(cells))
	}
	out.Flush()
	return errors.Join(err, out.Error())
}
