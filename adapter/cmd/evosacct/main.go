package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/signal"
	"os/user"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/cmd/internal/complete"
	"github.com/evoslurm/evoslurm/adapter/internal/config"
	"github.com/evoslurm/evoslurm/adapter/internal/legible"
	"github.com/evoslurm/evoslurm/adapter/internal/version"
	"github.com/evoslurm/evoslurm/adapter/internal/when"
	"github.com/evoslurm/evoslurm/adapter/show/display"
	"github.com/evoslurm/evoslurm/adapter/show/ran"
)

var linked string // the version, set by the linker

// patience is how long the sidecar may be away.
const patience = 5 * time.Second

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	err := newCommand().ExecuteContext(ctx)
	stop()
	if err != nil {
		fmt.Fprintf(os.Stderr, "evosacct: error: %v\n", err)
		os.Exit(1)
	}
}

// options holds the command line's options.
type options struct {
	users, accounts, partitions, names, states, jobs []string
	clusters                                         []string
	all, noHeader, parsable, parsable2, jobsOnly     bool
	json, help                                       bool
	start, end, format, totals                       string

	from, to time.Time // of the window; to zero: no end
	columns  []column
	named    []api.JobName // by --jobs
}

func newCommand() *cobra.Command {
	_, cmd := build()
	return cmd
}

func build() (*options, *cobra.Command) {
	o := &options{}
	cmd := &cobra.Command{
		Use:   "evosacct",
		Short: "Show what evolving jobs had, step by step",
		Long: `Show evolving jobs that queued, ran or ended in a period, with the nodes, times and
node-seconds of each step. The options are those of sacct.`,
		Example: `  evosacct                          my jobs since midnight
  evosacct -S now-7days -a -X       all users' jobs of a week, one line each
  evosacct -j 4711 -P -o jobid,step,nnodes,nodeseconds
  evosacct -a --totals=user         whose holds kept nodes idle while other jobs waited for them?
  evosacct -o jobid,start,promised,late,promise,cause%-60   did growths come as promised?`,
		Args:          cobra.NoArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.help {
				_, err := fmt.Fprintln(cmd.OutOrStdout(), strings.Join(columnNames(), "\n"))
				return err
			}
			if err := o.exist(); err != nil {
				return err
			}
			if err := o.prepare(time.Now(), currentUser); err != nil {
				return err
			}
			site, _, err := config.Load(cmd.Flags())
			if err != nil {
				return err
			}
			return o.show(cmd.Context(), site, os.Stdout, cmd.ErrOrStderr())
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVarP(&o.start, "starttime", "S", "", "jobs that existed at this time or later: HH:MM[:SS], YYYY-MM-DD[THH:MM[:SS]], MMDD[YY], today, now, now-2hours (default midnight; with --jobs ever)")
	f.StringVarP(&o.end, "endtime", "E", "", "jobs that existed before this time (default now)")
	f.StringSliceVarP(&o.users, "user", "u", nil, "jobs of these users, by name or number (default: your own; for root, all)")
	f.StringSliceVar(&o.users, "uid", nil, "same as --user")
	f.BoolVarP(&o.all, "allusers", "a", false, "jobs of all users whose jobs you may read")
	f.StringSliceVarP(&o.jobs, "jobs", "j", nil, "jobs, arrays, or tasks (ARRAY_TASK) to show")
	f.StringSliceVarP(&o.accounts, "accounts", "A", nil, "jobs in these accounts")
	f.StringSliceVarP(&o.partitions, "partition", "r", nil, "jobs in these partitions")
	f.StringSliceVar(&o.names, "name", nil, "jobs with these names")
	f.StringSliceVarP(&o.states, "state", "s", nil, "jobs in these states, e.g. RUNNING, COMPLETED, TIMEOUT")
	f.BoolVarP(&o.jobsOnly, "allocations", "X", false, "show jobs without their steps")
	f.StringVarP(&o.format, "format", "o", "", "columns to print, each NAME or NAME%WIDTH (left-aligned if WIDTH is negative); SACCT_FORMAT is ignored")
	f.StringVar(&o.totals, "totals", "", "print totals by user, account, or partition instead of jobs: number of jobs, node-seconds, node-seconds that holds kept idle, and kWh")
	f.BoolVarP(&o.help, "helpformat", "e", false, "list the columns")
	f.BoolVarP(&o.parsable2, "parsable2", "P", false, "separate columns with |, without truncation")
	f.BoolVarP(&o.parsable, "parsable", "p", false, "same as --parsable2, with | at the end of each line")
	f.BoolVarP(&o.noHeader, "noheader", "n", false, "omit the headings")
	f.StringSliceVarP(&o.clusters, "clusters", "M", nil, "jobs of these clusters of the site, each asked of its own sidecar, or of all")
	f.BoolVar(&o.json, "json", false, "print JSON in the form of evosqueue --json=evoslurm")
	config.AddFlag(f)
	version.Flag(cmd, linked)
	version.Arguments(cmd)
	cmd.MarkFlagsMutuallyExclusive("parsable", "parsable2", "json")
	cmd.MarkFlagsMutuallyExclusive("totals", "json")
	cmd.MarkFlagsMutuallyExclusive("totals", "format")
	var columns []string
	for _, c := range all {
		columns = append(columns, c.name)
	}
	complete.Flags(cmd, map[string]func(context.Context) []string{"partition": complete.Partitions, "accounts": complete.Accounts,
		"state": complete.Fixed(slices.Sorted(maps.Keys(short))...), "format": complete.Fixed(columns...), "totals": complete.Fixed(slices.Sorted(maps.Keys(owners))...)})
	complete.None(cmd, "starttime", "endtime", "user", "uid", "jobs", "name", "clusters")
	return o, cmd
}

func currentUser() (string, error) {
	u, err := user.Current()
	if err != nil {
		return "", err
	}
	return u.Uid, nil
}

// noEnds are states that sacct takes and that no evolving job is shown in.
var noEnds = []string{"COMPLETING", "CG", "CONFIGURING", "CF", "REQUEUED", "RQ", "RESIZING", "RS", "REVOKED", "RV", "SPECIAL_EXIT", "SE", "STOPPED", "ST"}

// exist refuses users that the machine does not know, and states that there are not, as sacct does.
func (o *options) exist() error {
	for _, name := range o.users {
		if _, err := user.Lookup(name); err == nil || name == "" {
			continue
		}
		if _, err := user.LookupId(name); err != nil {
			return fmt.Errorf("Invalid user id: %s", name) //nolint:staticcheck // sacct's words
		}
	}
	for _, name := range o.states {
		upper := strings.ToUpper(name)
		if _, known := short[upper]; !known && !slices.Contains(slices.Collect(maps.Values(short)), upper) && !slices.Contains(noEnds, upper) {
			return fmt.Errorf("unrecognized job state value '%s'", name)
		}
	}
	return nil
}

// prepare checks and completes the options.
func (o *options) prepare(now time.Time, me func() (string, error)) (err error) {
	for _, word := range o.jobs {
		name, err := api.ParseJobName(word)
		if err != nil {
			return err
		}
		o.named = append(o.named, name)
	}
	if o.start == "" && len(o.jobs) == 0 {
		o.start = "midnight"
	}
	if o.start != "" {
		if o.from, err = when.Parse(o.start, now); err != nil {
			return fmt.Errorf("--starttime: %w", err)
		}
	}
	if o.end != "" {
		if o.to, err = when.Parse(o.end, now); err != nil {
			return fmt.Errorf("--endtime: %w", err)
		}
		if o.to.Before(o.from) {
			return errors.New("the end of the window is before its start")
		}
	}
	if len(o.users) == 0 && len(o.jobs) == 0 && !o.all {
		uid, err := me()
		if err != nil {
			return err
		}
		if uid != "0" {
			o.users = []string{uid}
		}
	}
	if o.totals != "" {
		if owners[o.totals] == nil {
			return fmt.Errorf("--totals: %q; there are totals by %s", o.totals, strings.Join(slices.Sorted(maps.Keys(owners)), ", "))
		}
		o.columns = totalColumns(o.totals)
		return nil
	}
	format := o.format
	if format == "" {
		format = defaultFormat
	}
	o.columns, err = parseColumns(format)
	return err
}

// shows reports whether the job was requested.
func (o *options) shows(j api.Job) bool {
	in := func(list []string, values ...string) bool {
		return len(list) == 0 || slices.ContainsFunc(values, func(v string) bool {
			return slices.ContainsFunc(list, func(w string) bool { return w == v })
		})
	}
	states := slices.Clone(o.states)
	for i, s := range states {
		states[i] = strings.ToUpper(s)
	}
	if !in(o.users, j.User, strconv.FormatUint(uint64(j.UID), 10)) || !in(o.accounts, j.Account) || !in(o.partitions, j.Partition) ||
		!in(o.names, j.Name) || !in(states, state(j), short[state(j)]) ||
		len(o.named) > 0 && !slices.ContainsFunc(o.named, func(n api.JobName) bool { return n.Is(&j) }) {
		return false
	}
	began := j.Submit
	return (j.State != "ended" || !j.End.Before(o.from)) && (o.to.IsZero() || began.Before(o.to))
}

// chosen returns a copy of the jobs that were requested.
func (o *options) chosen(jobs []api.Job) []api.Job {
	return slices.DeleteFunc(slices.Clone(jobs), func(j api.Job) bool { return !o.shows(j) })
}

// wantsEnergy reports whether energy is printed.
func (o *options) wantsEnergy() bool {
	return o.json || slices.ContainsFunc(o.columns, func(c column) bool { return c.name == "Energy" })
}

// heading adds the headings of the columns, if they are wanted.
func (o *options) heading(b *strings.Builder) {
	if o.noHeader {
		return
	}
	o.line(b, "", func(c column) string { return c.name })
	if !o.parsable && !o.parsable2 {
		o.line(b, "", func(c column) string { return strings.Repeat("-", c.columns()) })
	}
}

// line adds a line of the table; cells that were cut end in the mark.
func (o *options) line(b *strings.Builder, mark string, cell func(c column) string) {
	var cells []string
	for _, c := range o.columns {
		text := legible.Printable(cell(c), false)
		if !o.parsable && !o.parsable2 {
			text = c.fit(text, mark)
		}
		cells = append(cells, text)
	}
	switch {
	case o.parsable2:
		b.WriteString(strings.Join(cells, "|") + "\n")
	case o.parsable:
		b.WriteString(strings.Join(cells, "|") + "|\n")
	default:
		b.WriteString(strings.TrimRight(strings.Join(cells, " "), " ") + "\n")
	}
}

// write writes the jobs and their steps, or totals; it queries events if a column needs them.
func (o *options) write(w io.Writer, jobs []api.Job, now time.Time, m *meter, events func(id uint32) ([]api.Event, error)) error {
	jobs = o.chosen(jobs)
	slices.SortStableFunc(jobs, api.CompareJobs)
	if o.json {
		for i := range jobs {
			jobs[i].Energy = m.shown(jobs[i], now)
		}
		text, err := json.MarshalIndent(jobs, "", "  ")
		if err == nil {
			_, err = fmt.Fprintf(w, "%s\n", text)
		}
		return err
	}
	var b strings.Builder
	o.heading(&b)
	if o.totals != "" {
		for _, r := range totals(o.totals, jobs, m, now) {
			o.line(&b, "+", func(c column) string { return c.text(r) })
		}
		_, err := io.WriteString(w, b.String())
		return err
	}
	byEvents := slices.ContainsFunc(o.columns, func(c column) bool { return slices.Contains(told, c.name) })
	for _, l := range display.Fold(jobs, false) {
		var grown []ran.Promise
		if byEvents {
			recorded, err := events(l.ID)
			if err != nil {
				return err
			}
			grown = ran.Promises(l.Job, recorded)
		}
		rows := m.steps(l.Job, grown, now)
		job := whole(l.Job, rows, grown, now)
		job.label, job.cluster = l.Label(), m.cluster
		o.line(&b, "+", func(c column) string { return c.text(job) })
		for _, r := range rows {
			if !o.jobsOnly {
				o.line(&b, "+", func(c column) string { return c.text(r) })
			}
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}
