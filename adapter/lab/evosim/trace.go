package evosim

import (
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/evoslurm/evoslurm/adapter/internal/energy"
	"github.com/evoslurm/evoslurm/adapter/lab/outcome"
	"github.com/evoslurm/evoslurm/adapter/lab/sim"
	"github.com/evoslurm/evoslurm/adapter/lab/trace"
	"github.com/evoslurm/evoslurm/planner"
)

// TraceCommand returns evosim trace, with further input formats.
func TraceCommand(more ...trace.Format) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "trace",
		Short: "Inspect, change and convert traces of jobs",
		Long: `Inspect, change and convert traces of jobs.

A trace is in the Standard Workload Format (SWF), a workload file (JSON), Batsim's workload,
ElastiSim's jobs, or the output of sacct -P; gzipped or not; "-" is standard input. The command
detects the format, and reads SWF as a stream. It rejects an invalid trace, with line and field.
--lenient skips invalid jobs with a message, and rejects a trace without valid ones. SWF jobs that
also occur in parts (status 2 to 4) count once.`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return fmt.Errorf("unknown command %q for %q", args[0], cmd.CommandPath())
			}
			return errors.New("trace: what? stat, cut, scale, convert, filter, diff, evolve, inject or extract")
		},
		RunE: func(*cobra.Command, []string) error { return nil },
	}
	cmd.AddCommand(statCommand(more), cutCommand(more), scaleCommand(more), convertCommand(more), filterCommand(more), diffCommand(append(slices.Clip(more), outcome.Results)), evolveCommand(more))
	return cmd
}

// sorted writes a trace in order of submission.
func (f *traceFlags) sorted(cmd *cobra.Command, name string) error {
	f.options.AnyOrder = true
	var jobs trace.Packed
	h, format, err := f.each(cmd, name, jobs.Add)
	if err != nil {
		return err
	}
	jobs.Sort()
	return f.write(cmd, format, h, given(jobs.All()))
}

func convertCommand(more []trace.Format) *cobra.Command {
	f := traceFlags{more: more}
	sorted, watts := false, ""
	cmd := &cobra.Command{
		Use:   "convert [--to=swf|json|batsim] [--sort] [--watts=STATE=WATTS,…] [--output=FILE] FILE",
		Short: "Write a trace in another format",
		Long: `Write a trace in another format. JSON is a workload file for evosim schedule and evosim run, and
keeps all fields of SWF: nothing is lost from SWF to JSON and back. SWF and Batsim's workload
cannot describe evolving jobs. --watts=busy=350,idle=200 gives each job that ran its energy in
joules, as field 19 of SWF, which the header names: a node draws the watts of a busy one.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if sorted && watts != "" {
				return errors.New("--sort and --watts: sort first, and convert the result")
			}
			if sorted {
				return f.sorted(cmd, args[0])
			}
			if watts == "" {
				return f.stream(cmd, args[0], nil, func(*trace.Job) (bool, error) { return true, nil })
			}
			w, err := energy.ParseWatts(watts)
			if err != nil {
				return fmt.Errorf("--watts: %w", err)
			}
			var m *trace.Meter
			return f.stream(cmd, args[0], func(h *trace.Header) { m = trace.NewMeter(h, w) }, func(j *trace.Job) (bool, error) { return true, m.Add(j) })
		},
	}
	f.writing(cmd)
	cmd.Flags().BoolVar(&sorted, "sort", false, "put jobs in order of submission")
	cmd.Flags().StringVar(&watts, "watts", "", "add the energy of jobs by these watts of a node, STATE=WATTS,…")
	return cmd
}

// ExtractCommand returns a command that writes as a trace what open returns; the caller sets its
// texts. format is called once the flags are known.
func ExtractCommand(open func(*cobra.Command) (io.Reader, error), format func() trace.Format) *cobra.Command {
	var f traceFlags
	cmd := &cobra.Command{
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			in, err := open(cmd)
			if err != nil {
				return Failure{err}
			}
			cmd.SetIn(in)
			f.more = []trace.Format{format()}
			return f.sorted(cmd, "-")
		},
	}
	f.writing(cmd)
	return cmd
}

func filterCommand(more []trace.Format) *cobra.Command {
	f := traceFlags{more: more}
	var keep trace.Filter
	cmd := &cobra.Command{
		Use:   "filter [--user=…] [--min-size=N] [--max-size=N] [--min-run=S] [--max-run=S] [--ran] FILE",
		Short: "Keep some jobs of a trace",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.stream(cmd, args[0], func(h *trace.Header) { h.Drop("MaxJobs", "MaxRecords") }, func(j *trace.Job) (bool, error) { return keep.Keeps(j), nil })
		},
	}
	f.writing(cmd)
	flags := cmd.Flags()
	flags.Int64SliceVar(&keep.Users, "user", nil, "only jobs of these users")
	flags.Int64SliceVar(&keep.Groups, "group", nil, "only jobs of these groups")
	flags.Int64SliceVar(&keep.Queues, "queue", nil, "only jobs of these queues")
	flags.Int64SliceVar(&keep.Partitions, "partition", nil, "only jobs of these partitions")
	flags.Int64SliceVar(&keep.Statuses, "status", nil, "only jobs with this status: 1 completed, 0 failed, 5 cancelled")
	flags.IntVar(&keep.MinSize, "min-size", 0, "smallest number of processors")
	flags.IntVar(&keep.MaxSize, "max-size", 0, "largest number of processors (0: any)")
	flags.Float64Var(&keep.MinRun, "min-run", 0, "shortest run time in seconds")
	flags.Float64Var(&keep.MaxRun, "max-run", 0, "longest run time in seconds (0: any)")
	flags.BoolVar(&keep.Ran, "ran", false, "only jobs that ran on a known size")
	return cmd
}

func scaleCommand(more []trace.Format) *cobra.Command {
	f := traceFlags{more: more}
	s := trace.Scale{Load: 1, Time: 1, Size: 1, CPUs: 1}
	machine := 0
	cmd := &cobra.Command{
		Use:   "scale [--load=F] [--time=F] [--machine=N] [--cpus-per-node=N] FILE",
		Short: "Scale the load, the times or the machine of a trace",
		Long: `Scale a trace. --load=1.2 submits jobs 1.2 times as fast; --time=60 makes an hour a minute.
--machine=16 scales the machine to 16 nodes, and jobs to the same part of it (at least 1, so the load
may rise). --cpus-per-node=16 counts nodes of 16 processors. Under another load, the recorded waits
would be wrong: they are left out.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case !(s.Load > 0 && s.Load <= 1e6):
				return fmt.Errorf("--load=%v: must be above 0", s.Load)
			case !(s.Time > 0 && s.Time <= 1e6):
				return fmt.Errorf("--time=%v: must be above 0", s.Time)
			case s.CPUs < 1 || s.CPUs > 1<<16:
				return fmt.Errorf("--cpus-per-node=%d: must be within 1 … 65536", s.CPUs)
			case machine < 0 || machine > planner.MaxNodes:
				return fmt.Errorf("--machine=%d: must be within 1 … %d", machine, planner.MaxNodes)
			}
			first, known := 0., false
			var missing error
			err := f.stream(cmd, args[0], func(h *trace.Header) {
				if machine > 0 {
					own := trace.Scale{CPUs: s.CPUs}
					counted := trace.Header{Nodes: h.Machine()}
					if own.Header(&counted); counted.Machine() == 0 {
						missing = fmt.Errorf("--machine: %s does not tell of its machine (MaxNodes, MaxProcs); give --nodes", args[0])
						return
					}
					s.Size = float64(machine) / float64(counted.Machine())
				}
				s.Header(h)
			}, func(j *trace.Job) (bool, error) {
				if missing != nil {
					return false, missing
				}
				if !known {
					first, known = j.Submit, true
				}
				return true, s.Job(j, first)
			})
			return err
		},
	}
	f.writing(cmd)
	flags := cmd.Flags()
	flags.Float64Var(&s.Load, "load", s.Load, "multiply the rate of submissions by this")
	flags.Float64Var(&s.Time, "time", s.Time, "divide all times by this")
	flags.IntVar(&machine, "machine", 0, "size of the machine to scale to")
	flags.IntVar(&s.CPUs, "cpus-per-node", s.CPUs, "count nodes with this number of processors")
	return cmd
}

func cutCommand(more []trace.Format) *cobra.Command {
	f := traceFlags{more: more}
	var from, to, length, before time.Duration
	utilisation, load := -1., -1.
	cmd := &cobra.Command{
		Use:   "cut [--from=T] [--until=T] | --length=T --utilisation=PERCENT|--load=PERCENT [--before=T] FILE",
		Short: "Cut a period out of a trace",
		Long: `Cut out the jobs submitted in a period: --from one time --until another, after the first
submission; or the period of a --length with the utilisation or load nearest to the wanted one, in
percent of the machine. Utilisation counts all that ran in the period, load the work submitted in it.
--before=1h also takes the jobs of the hour before, so that the machine is not empty when the
period begins. Times are written as 90s, 12h or 720h.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			drop := func(h *trace.Header) { h.Drop("MaxJobs", "MaxRecords") }
			wanted := utilisation >= 0 || load >= 0
			switch {
			case utilisation >= 0 && load >= 0:
				return errors.New("--utilisation, --load: one of them")
			case wanted != (length > 0):
				return errors.New("--length goes with --utilisation or --load")
			case wanted && (from != 0 || to != 0):
				return errors.New("--from, --until: the period is that of --utilisation or --load")
			case from < 0 || to < 0 || before < 0 || to > 0 && to <= from:
				return fmt.Errorf("--from=%s --until=%s: not a period", from, to)
			}
			if !wanted {
				first, known := 0., false
				return f.stream(cmd, args[0], drop, func(j *trace.Job) (bool, error) {
					if !known {
						first, known = j.Submit, true
					}
					at := j.Submit - first
					return at >= (from-before).Seconds() && (to == 0 || at < to.Seconds()), nil
				})
			}
			var jobs trace.Packed
			h, format, err := f.each(cmd, args[0], jobs.Add)
			if err != nil {
				return err
			}
			w, err := trace.FindWindow(jobs.All(), h.Machine(), length.Seconds(), max(utilisation, load), load >= 0)
			if err != nil {
				return err
			}
			fmt.Fprintf(cmd.ErrOrStderr(), "evosim: %.1f %% from second %.0f to %.0f\n", w.Share, w.From, w.To)
			drop(&h)
			return f.write(cmd, format, h, given(jobs.Between(w.From-before.Seconds(), w.To)))
		},
	}
	f.writing(cmd)
	flags := cmd.Flags()
	flags.DurationVar(&from, "from", 0, "start of the period, after the first submission")
	flags.DurationVar(&to, "until", 0, "end of the period, after the first submission (0: the end of the trace)")
	flags.DurationVar(&length, "length", 0, "length of the period to find")
	flags.DurationVar(&before, "before", 0, "also take jobs submitted this long before the period")
	flags.Float64Var(&utilisation, "utilisation", utilisation, "wanted utilisation, in percent of the machine")
	flags.Float64Var(&load, "load", load, "wanted load, in percent of the machine")
	return cmd
}

func diffCommand(more []trace.Format) *cobra.Command {
	f := traceFlags{more: more}
	format, list := format("table"), 10
	cmd := &cobra.Command{
		Use:   "diff [--list=10] [--format=json|table] FILE FILE",
		Short: "Compare two outcomes of the same jobs, job by job",
		Long: `Compare two outcomes of the same jobs, by job number: how many start later in the second one than
in the first, how much later, and which. Times count from the first submission of each. An outcome
is a trace with start times, or the output of evosim run --format=json.`,
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			f.options.AnyOrder = true
			var outcomes [2]trace.Starts
			for i, name := range args {
				if _, _, err := f.each(cmd, name, outcomes[i].Add); err != nil {
					return err
				}
			}
			d, err := trace.Diff(&outcomes[0], &outcomes[1])
			if err != nil {
				return err
			}
			if list >= 0 && len(d.Jobs) > list {
				d.Jobs = d.Jobs[:list]
			}
			if format == "json" {
				return output(writeJSON(cmd.OutOrStdout(), d))
			}
			w := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
			fmt.Fprintf(w, "%d jobs in both, %d in the first alone, %d in the second alone\n", d.Both, d.OnlyA, d.OnlyB)
			fmt.Fprintf(w, "%d start at the same time, %d earlier, %d later; %+.1f s on average\n", d.Same, d.Earlier, d.Later, d.Mean)
			if d.Later > 0 {
				fmt.Fprintf(w, "later by %.0f s (median), %.0f s (95 %%), %.0f s (worst)\n", d.Delay.Median, d.Delay.P95, d.Delay.Max)
			}
			fmt.Fprintf(w, "makespan %.0f s, %.0f s\n", d.Makespan[0], d.Makespan[1])
			if len(d.Jobs) > 0 {
				fmt.Fprintln(w, "\nJOB\tFIRST START\tSECOND START\tLATER, S\tFIRST END\tSECOND END")
			}
			for _, j := range d.Jobs {
				fmt.Fprintf(w, "%d\t%.0f\t%.0f\t%+.0f\t%.0f\t%.0f\n", j.Number, j.A, j.B, j.B-j.A, j.EndA, j.EndB)
			}
			return output(w.Flush())
		},
	}
	f.reading(cmd)
	cmd.Flags().Var(&format, "format", "output format")
	cmd.Flags().IntVar(&list, "list", list, "number of jobs to list, the most delayed first (-1: all)")
	return cmd
}

func statCommand(more []trace.Format) *cobra.Command {
	f := traceFlags{more: more}
	format, by := format("table"), ""
	cmd := &cobra.Command{
		Use:   "stat [--by=hour|weekday|day|user|size] [--format=json|table] FILE",
		Short: "Show statistics of a trace",
		Long: `Show arrivals, sizes, run times, waits, limits against run times, load and utilisation. Load is
the work of all jobs divided by the machine's capacity up to the last submission. Utilisation counts
up to the last end, and needs a trace with start times. Hours and days are in the trace's time zone,
if it has one.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if by != "" && !slices.Contains(trace.Groupings, by) {
				return fmt.Errorf("--by=%s: must be %s", by, strings.Join(trace.Groupings, ", "))
			}
			r, done, err := f.open(cmd, args[0])
			if err != nil {
				return err
			}
			defer done()
			c := trace.NewCounter(&r.Header, by)
			for n := 0; ; n++ {
				if n%4096 == 0 && cmd.Context().Err() != nil {
					return cmd.Context().Err()
				}
				j, err := r.Next()
				if errors.Is(err, io.EOF) {
					break
				}
				if err != nil {
					return fmt.Errorf("%s: %w", args[0], err)
				}
				c.Add(j)
			}
			if format == "json" {
				return output(writeJSON(cmd.OutOrStdout(), c.Stat()))
			}
			return output(statTable(cmd.OutOrStdout(), c.Stat()))
		},
	}
	f.reading(cmd)
	cmd.Flags().Var(&format, "format", "output format")
	cmd.Flags().StringVar(&by, "by", by, "group jobs by "+strings.Join(trace.Groupings, ", "))
	return cmd
}

func statTable(out io.Writer, s trace.Stat) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "%d jobs, %d never ran", s.Jobs, s.NeverRan)
	for _, kind := range []string{"moldable", "malleable", "evolving"} {
		if n := s.Kinds[kind]; n > 0 {
			fmt.Fprintf(w, ", %d %s", n, kind)
		}
	}
	if s.Users == nil {
		fmt.Fprintln(w, "; users not told")
	} else {
		fmt.Fprintf(w, "; %d users\n", *s.Users)
	}
	if s.Machine != nil {
		fmt.Fprintf(w, "machine of %d", *s.Machine)
		if s.Load != nil {
			fmt.Fprintf(w, ", load %.1f %%", *s.Load)
		}
		if s.Utilisation != nil {
			fmt.Fprintf(w, ", utilisation %.1f %%, makespan %.0f s", *s.Utilisation, *s.Makespan)
		}
		fmt.Fprintln(w)
	}
	if s.Utilisation != nil && *s.Utilisation > 100 {
		fmt.Fprintln(w, "by its waits more runs at once than the machine has: these, or its size, are not true")
	}
	fmt.Fprintf(w, "submitted over %.1f days, %.0f %s-hours\n", s.Span/86400, math.Round(s.Area/3600), s.Unit)
	if s.KWh != nil {
		fmt.Fprintf(w, "energy of jobs %.2f kWh\n", *s.KWh)
	}
	fmt.Fprintln(w, "\n\tJOBS\tMEAN\tMEDIAN\t95 %\tMAX")
	for _, row := range []struct {
		name string
		s    trace.Spread
	}{{"between submissions, s", s.Interarrival}, {"size", s.Size}, {"run time, s", s.Run}, {"wait, s", s.Wait}, {"turnaround, s", s.Turnaround},
		{"bounded slowdown", s.Slowdown}, {"limit, s", s.Limit}, {"run time of the limit, %", s.Accuracy}} {
		if row.s.Of > 0 {
			fmt.Fprintf(w, "%s\t%d\t%.1f\t%.1f\t%.1f\t%.1f\n", row.name, row.s.Of, row.s.Mean, row.s.Median, row.s.P95, row.s.Max)
		}
	}
	if s.OverLimit > 0 {
		fmt.Fprintf(w, "%d jobs ran longer than their limit\n", s.OverLimit)
	}
	if len(s.Groups) > 0 {
		fmt.Fprintf(w, "\n\tJOBS\t%s-HOURS\tMEAN WAIT, S\n", strings.ToUpper(s.Unit))
		for _, g := range s.Groups {
			name, wait := g.Name, "not told"
			if name == "-1" { // a user
				name = "not told"
			}
			if g.Wait != nil {
				wait = fmt.Sprintf("%.0f", *g.Wait)
			}
			fmt.Fprintf(w, "%s\t%d\t%.0f\t%s\n", name, g.Jobs, g.Area/3600, wait)
		}
	}
	return w.Flush()
}

// BaselineCommand returns evosim baseline, with further input formats.
func BaselineCommand(more ...trace.Format) *cobra.Command {
	f := traceFlags{more: more}
	scheduler, cpus, format, page := "easy", 1, format("table"), ""
	cmd := &cobra.Command{
		Use:   "baseline [--scheduler=fcfs|easy|conservative] [--cpus-per-node=N] [--format=json|table] [--output=OUTCOME] [--report=FILE.html] FILE",
		Short: "Run a trace with rigid jobs, by FCFS, EASY or conservative backfilling",
		Long: `Run the jobs of a trace again, each at its largest size, by FCFS, EASY or conservative
backfilling, and show the outcome. --output writes it as a trace for evosim trace stat,
evosim trace diff and evosim report; --report writes it as an HTML page. Backfilling uses
requested times. For a job without one, or one that ran longer, it uses the run time. Jobs
that never ran are left out.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if !slices.Contains(sim.Baselines, scheduler) {
				return fmt.Errorf("--scheduler=%s: must be %s", scheduler, strings.Join(sim.Baselines, ", "))
			}
			if cpus < 1 || cpus > 1<<16 {
				return fmt.Errorf("--cpus-per-node=%d: must be within 1 … 65536", cpus)
			}
			f.options.AnyOrder = true
			t, _, err := f.all(cmd, args[0])
			if err != nil {
				return err
			}
			machine := (t.Header.Machine() + cpus - 1) / cpus
			if machine < 1 {
				return fmt.Errorf("%s does not tell of its machine (MaxNodes, MaxProcs); give --nodes", args[0])
			}
			out, err := sim.Baseline(cmd.Context(), t, scheduler, machine, cpus)
			if err != nil {
				return err
			}
			made := Made(cmd, args, "")
			out.Header.Set("Scheduler", scheduler)
			out.Header.Set("Command", made.Command)
			out.Header.Set("MadeBy", made.Version)
			if page != "" {
				o, err := outcome.FromTrace(out, scheduler)
				if err != nil {
					return err
				}
				if err := WriteReport(cmd, page, "", "", []outcome.Outcome{o}); err != nil {
					return err
				}
			}
			if f.out != "" {
				if err := f.write(cmd, "swf", out.Header, given(slices.Values(out.Jobs))); err != nil {
					return err
				}
			}
			c := trace.NewCounter(&out.Header, "")
			for _, j := range out.Jobs {
				c.Add(j)
			}
			if format == "json" {
				return output(writeJSON(cmd.OutOrStdout(), c.Stat()))
			}
			return output(statTable(cmd.OutOrStdout(), c.Stat()))
		},
	}
	f.writing(cmd)
	cmd.Flags().StringVar(&scheduler, "scheduler", scheduler, strings.Join(sim.Baselines, ", "))
	cmd.Flags().IntVar(&cpus, "cpus-per-node", cpus, "processors per node; jobs do not share nodes")
	cmd.Flags().Var(&format, "format", "output format on standard output")
	cmd.Flags().StringVar(&page, "report", "", "HTML report to write about the outcome (see evosim report)")
	return cmd
}
