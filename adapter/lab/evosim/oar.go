package evosim

import (
	"fmt"
	"io"
	"runtime"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/evoslurm/evoslurm/adapter/lab/sim"
)

func oarCommand() *cobra.Command {
	e, format, workers := sim.DefaultOAR, format("table"), runtime.GOMAXPROCS(0)
	cmd := &cobra.Command{
		Use:   "oar-malleable [--tests=1000] [--seed=1] [--load=40] [--jobs=35] [--format=json|table]",
		Short: "Repeat the experiment with malleable jobs beside OAR (Georgiou 2010, table 5.3)",
		Long: `Run one malleable job after the other, or one moldable best-effort job after the other, on the
cores that a rigid background leaves free, for five hours on 64 cores, and print table 5.3 of
Georgiou's thesis (minimum, average and maximum) beside the published figures: the percentage of
cores in use, jobs that ended and jobs that were killed, the mean wait of the rigid jobs in seconds,
and the percentage of cores wasted on jobs that were killed, which the thesis does not give.

A malleable job keeps one core of every node (dynamic-cpuset) or one node (dynamic-mpi, which has
--grace to leave the others); a best-effort job takes all that is free when it starts, and is killed
when a rigid job needs some of it. The background is random: the log's five hours are not published.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if workers < 1 {
				return fmt.Errorf("--workers=%d: must be at least 1", workers)
			}
			if err := e.Validate(); err != nil {
				return err
			}
			progress := NewProgress(cmd.ErrOrStderr(), e.Runs(), "simulating")
			rows, err := e.Run(cmd.Context(), workers, progress.Step)
			progress.Finish()
			if err != nil {
				return Failure{err}
			}
			if format == "table" {
				return output(oarTable(cmd.OutOrStdout(), e, rows))
			}
			return output(writeJSON(cmd.OutOrStdout(), oarJSON{e.Tests, e.Seed, e.Background.Cores, e.Background.Load, rows, sim.OARPublished}))
		},
	}
	flags := cmd.Flags()
	flags.IntVar(&e.Tests, "tests", e.Tests, "number of backgrounds")
	flags.Uint64Var(&e.Seed, "seed", e.Seed, "random seed")
	flags.IntVar(&e.Background.Cores, "cores", e.Background.Cores, "cores of the cluster, 4 to a node")
	flags.IntVar(&e.Background.Load, "load", e.Background.Load, "percent of the cores that rigid jobs use")
	flags.IntVar(&e.Background.Jobs, "jobs", e.Background.Jobs, "rigid jobs")
	flags.IntVar(&e.Background.Bursts, "bursts", e.Background.Bursts, "number of bursts of rigid jobs")
	flags.Int64Var(&e.Background.Seconds, "seconds", e.Background.Seconds, "seconds of the experiment")
	flags.Int64Var(&e.Background.Quiet, "quiet", e.Background.Quiet, "seconds before the first rigid job")
	flags.Int64Var(&e.Work, "work", e.Work, "core-seconds of a malleable job")
	flags.Int64Var(&e.Reaction, "reaction", e.Reaction, "seconds to start a job")
	flags.Int64Var(&e.Grace, "grace", e.Grace, "seconds that a Dynamic MPI job takes to release nodes")
	flags.IntVar(&workers, "workers", workers, "simulations at a time")
	flags.Var(&format, "format", "output format")
	return cmd
}

type oarJSON struct {
	Tests      int                           `json:"tests"`
	Seed       uint64                        `json:"seed"`
	Cores      int                           `json:"cores"`
	Load       int                           `json:"load"`
	Strategies []sim.OARRow                  `json:"strategies"`
	Published  map[string]map[string]float64 `json:"published"`
}

func oarTable(out io.Writer, e sim.OAR, rows []sim.OARRow) error {
	b := e.Background
	fmt.Fprintf(out, "%d backgrounds of %d rigid jobs, %d %% of %d cores for %d s, seed %d (min avg max; in brackets: table 5.3)\n\n",
		e.Tests, b.Jobs, b.Load, b.Cores, b.Seconds, e.Seed)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "STRATEGY\tUTILISATION, %\tTERMINATED\tERRORS\tWAIT OF RIGID JOBS, S\tLOST, %")
	for _, row := range rows {
		fmt.Fprint(w, row.Strategy)
		for _, column := range sim.OARColumns {
			r := row.Columns[column]
			fmt.Fprintf(w, "\t%.0f %.1f %.0f", r.Min, r.Avg, r.Max)
		}
		fmt.Fprintln(w)
		for _, column := range sim.OARColumns[:4] {
			fmt.Fprintf(w, "\t[%.0f]", sim.OARPublished[row.Strategy][column])
		}
		fmt.Fprintln(w, "\t")
	}
	if err := w.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprint(out, `
Of the best-effort jobs the thesis's text has 4 terminated and 5 in error, its table 5 and 4.
`)
	return err
}
