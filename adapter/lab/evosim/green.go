package evosim

import (
	"fmt"
	"io"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/evoslurm/evoslurm/adapter/lab/report"
	"github.com/evoslurm/evoslurm/adapter/lab/sim"
)

func greenCommand() *cobra.Command {
	e, format, drawing, workers := sim.DefaultGreen, format("table"), "", runtime.GOMAXPROCS(0)
	cmd := &cobra.Command{
		Use:   "green [--tests=20] [--seed=1] [--picture=FILE.svg|.html] [--format=json|table]",
		Short: "Repeat the experiment with idle nodes switched off by OAR (Georgiou 2010, table 6.2)",
		Long: `Run the workloads of table 6.2 of Georgiou's thesis on 32 nodes whose idle ones are switched off, and print kWh
(average, minimum, and maximum), mean wait, and boots beside the published figures:

  normal             no node is ever switched off
  OAR green          a node goes off after --idle-time without a job, if no job is planned on it within --sleep-time
  Slurm              a node goes off after SuspendTime (--suspend); a job takes nodes that are off, and waits for them
  plan               a node goes off if its next planned use is further away than shutdown, boot, and break-even, and
                     boots ahead of it; --reserves keeps nodes awake for jobs that are not submitted yet
  …, after break-even  the same, after the node was idle for that long
  …, declared        the plan knows --declared percent of the jobs --notice seconds ahead
  clairvoyant        knows all jobs and how long they run: the least energy without a wait

Watts are in percent of an idle node's, which follow from the published energy of the normal mode. The hours of the log are
not published, so the workloads are random.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			kind := strings.TrimPrefix(filepath.Ext(drawing), ".")
			switch err := e.Validate(); {
			case workers < 1:
				return fmt.Errorf("--workers=%d: must be at least 1", workers)
			case drawing != "" && !slices.Contains(report.Formats(), kind):
				return fmt.Errorf("--picture=%s: must end in .%s", drawing, strings.Join(report.Formats(), " or ."))
			case err != nil:
				return err
			}
			progress := NewProgress(cmd.ErrOrStderr(), e.Runs(), "simulating")
			tables, err := e.Run(cmd.Context(), workers, progress.Step)
			progress.Finish()
			if err != nil {
				return Failure{err}
			}
			if drawing != "" {
				if err := create(drawing, func(w io.Writer) error { return report.Green(w, tables, kind) }); err != nil {
					return Failure{err}
				}
			}
			if format == "table" {
				return output(greenTables(cmd.OutOrStdout(), e, tables))
			}
			return output(writeJSON(cmd.OutOrStdout(), greenJSON{e.Tests, e.Seed, e.Busy, e.Booting, e.Off, e.Boot, e.Shutdown, tables}))
		},
	}
	flags := cmd.Flags()
	flags.IntVar(&e.Tests, "tests", e.Tests, "number of random workloads for each load")
	flags.Uint64Var(&e.Seed, "seed", e.Seed, "random seed")
	flags.Float64Var(&e.Busy, "busy", e.Busy, "watts of a node with a job, in percent of an idle one's")
	flags.Float64Var(&e.Booting, "booting", e.Booting, "watts of a node that boots, in percent of an idle one's")
	flags.Float64Var(&e.Off, "off", e.Off, "watts of a node that is off, in percent of an idle one's")
	flags.Int64Var(&e.Boot, "boot", e.Boot, "seconds of a boot")
	flags.Int64Var(&e.Shutdown, "shutdown", e.Shutdown, "seconds of a shutdown")
	flags.Int64Var(&e.IdleTime, "idle-time", e.IdleTime, "OAR's idle time in seconds")
	flags.Int64Var(&e.SleepTime, "sleep-time", e.SleepTime, "OAR's sleep time in seconds")
	flags.Int64SliceVar(&e.Suspend, "suspend", e.Suspend, "values of Slurm's SuspendTime in seconds")
	flags.IntSliceVar(&e.Reserves, "reserves", e.Reserves, "numbers of nodes that the plan keeps awake")
	flags.IntSliceVar(&e.Declared, "declared", e.Declared, "percentages of jobs that the plan knows ahead")
	flags.Int64Var(&e.Notice, "notice", e.Notice, "seconds ahead at which the plan knows them")
	flags.StringVar(&drawing, "picture", drawing, "file for a picture of kWh against wait: .svg or .html")
	flags.IntVar(&workers, "workers", workers, "simulations at a time")
	flags.Var(&format, "format", "output format")
	return cmd
}

type greenJSON struct {
	Tests    int              `json:"tests"`
	Seed     uint64           `json:"seed"`
	Busy     float64          `json:"busy"`
	Booting  float64          `json:"booting"`
	Off      float64          `json:"off"`
	Boot     int64            `json:"boot"`
	Shutdown int64            `json:"shutdown"`
	Loads    []sim.GreenTable `json:"loads"`
}

func greenTables(out io.Writer, e sim.Green, tables []sim.GreenTable) error {
	fmt.Fprintf(out, "%d workloads for each load, seed %d (avg min max; in brackets: table 6.2); boot %d s, shutdown %d s\n", e.Tests, e.Seed, e.Boot, e.Shutdown)
	for _, t := range tables {
		fmt.Fprintf(out, "\nLoad %.2f %%, %d jobs; watts: idle %.0f, busy %.0f, boot %.0f, off %.0f\n\n", t.Load, t.Jobs, t.Idle, t.Idle*e.Busy/100, t.Idle*e.Booting/100, t.Idle*e.Off/100)
		w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
		fmt.Fprintln(w, "MODE\tKWH\tSAVED, %\tMEAN WAIT, S\tBOOTS")
		for _, r := range t.Rows {
			fmt.Fprintf(w, "%s\t%.1f %.1f %.1f\t%.1f\t%.0f %.0f %.0f\t%.0f\n", r.Mode, r.KWh.Avg, r.KWh.Min, r.KWh.Max, r.Saved.Avg, r.Wait.Avg, r.Wait.Min, r.Wait.Max, r.Boots.Avg)
			if p, ok := t.Published[r.Mode]; ok {
				fmt.Fprintf(w, "\t[%.1f]\t[%.1f]\t[%.0f]\t\n", p.KWh, 100*(1-p.KWh/t.Published[t.Rows[0].Mode].KWh), p.Wait)
			}
		}
		if err := w.Flush(); err != nil {
			return err
		}
		best := "none"
		if t.Best != "" {
			best = t.Best
		}
		fmt.Fprintf(out, "\nIf nodes were off whenever they have no job, and booted at once: %.1f kWh.\nThe plan with the least energy among those that add a tenth of the thesis's wait (%.0f s) or less: %s.\n", t.Least.Avg, t.Tenth, best)
	}
	return nil
}
