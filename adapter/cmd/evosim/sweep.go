package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/evoslurm/evoslurm/adapter/internal/wholefile"
	"github.com/evoslurm/evoslurm/adapter/lab/evosim"
	"github.com/evoslurm/evoslurm/adapter/lab/sweep"
	"github.com/evoslurm/evoslurm/adapter/lab/trace"
)

// sweepFlags are the flags of evosim sweep.
type sweepFlags struct {
	folder  string
	workers int
	perTask int
	cell    string
	table   bool
	dryRun  bool
	slurm   bool
	options []string
}

func sweepCommand() *cobra.Command {
	f := sweepFlags{workers: runtime.GOMAXPROCS(0)}
	cmd := &cobra.Command{
		Use:   "sweep [--output=FOLDER] [--workers=N] [--slurm [--per-task=N] [--sbatch-option=OPTION]…] FILE",
		Short: "Run a declared grid of experiments",
		Long: `Run a grid of experiments: traces × shapes × shares × strategies × seeds. FILE (YAML) declares it:

  traces:
    - file: lublin-256.swf   # beside FILE, or an absolute path
      skip: 1000             # number of jobs that ran to skip
      jobs: 500              # number of jobs to take (default: all)
      cpus_per_node: 1
  shares: [0.1, 0.3, 0.6, 1]
  strategies: [noX, 2X+c, slurm, easy]
  seeds: [1, 2, 3]

Strategies are those of the sidecar (as in evosim run), and the schedulers of evosim run --beside. Further keys:
shapes (steps, as in evosim run --evolving, the default, or the shapes of evosim trace evolve), beside (the strategy to
compare with, default slurm), config (an evoslurm.yaml), scheduler_parameters (Slurm's), watts, suspend, boot and
shutdown (as in evosim run: the table then has kWh, with watts: config by type of node too), fill (a list of durations, as in evosim run), speedup (of moldable and
malleable jobs, as in evosim trace evolve --speedup), and for a trace name and nodes.

Each outcome is a file in --output (default: FILE's name with the ending .sweep). A sweep continues after an
interruption, and runs only new experiments after a change of FILE. results.csv has a row for each trace, shape, share
and strategy, with the mean of each figure over the seeds and half of its 95 % confidence interval.

--slurm submits the experiments without an outcome as a job array, and a job after it that makes the table. A task
runs one experiment, or several in a row if the cluster's MaxArraySize or --per-task requires it. With --workers=N, at
most N tasks run at a time. All nodes must see FILE, the traces, --output and evosim, and these must not change.
--sbatch-option=--partition=short goes to sbatch. After the jobs have ended, the same command submits failed and
cancelled experiments.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd, args[0]) },
	}
	flags := cmd.Flags()
	flags.StringVarP(&f.folder, "output", "o", "", "folder of the outcomes (default: FILE's name, ending in .sweep)")
	flags.IntVar(&f.workers, "workers", f.workers, "experiments at a time; with --slurm: tasks at a time (default: as many as Slurm runs)")
	flags.IntVar(&f.perTask, "per-task", 0, "with --slurm: experiments per task (default: as few as the cluster's MaxArraySize allows)")
	flags.StringVar(&f.cell, "cell", "", "run only this experiment, or FIRST-LAST, if it has no outcome, and make no table")
	flags.BoolVar(&f.table, "table", false, "only make the table from the existing outcomes")
	flags.BoolVar(&f.dryRun, "dry-run", false, "list the experiments and their outcomes")
	flags.BoolVar(&f.slurm, "slurm", false, "submit the experiments to Slurm as a job array")
	flags.StringArrayVar(&f.options, "sbatch-option", nil, "an option for sbatch, such as --partition=short")
	cmd.MarkFlagsMutuallyExclusive("cell", "table", "dry-run", "slurm")
	return cmd
}

func (f *sweepFlags) run(cmd *cobra.Command, name string) error {
	if f.workers < 1 {
		return fmt.Errorf("--workers=%d: must be at least 1", f.workers)
	}
	if err := f.checkSlurm(cmd); err != nil {
		return err
	}
	s, err := sweep.Read(name)
	if err != nil {
		return err
	}
	if f.folder == "" {
		f.folder = strings.TrimSuffix(name, filepath.Ext(name)) + ".sweep"
	}
	folder := &sweep.Folder{Path: f.folder, More: []trace.Format{sacct}}
	left, cells := folder.Left(s), s.Cells()
	switch {
	case f.dryRun:
		waiting := map[int]bool{}
		for _, i := range left {
			waiting[i] = true
		}
		for i, c := range cells {
			state := "done"
			if waiting[i] {
				state = "to run"
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%d: %s, %s, share %g, seed %d, %s: %s\n", i+1, c.Trace, c.Shape, c.Share, c.Seed, c.Strategy, state)
		}
		return nil
	case f.slurm && len(left) > 0: // otherwise only the table remains, which needs no job
		return f.submit(cmd, name, left)
	case f.table:
		left = nil
	case f.cell != "":
		if left, err = f.chosen(left, len(cells)); err != nil {
			return err
		}
	}
	defer debug.SetGCPercent(debug.SetGCPercent(400)) // the run's garbage is many times what it keeps
	if err := withBar(cmd, len(left), func(progress func()) error {
		return folder.Run(cmd.Context(), s, left, f.workers, progress)
	}); errors.Is(err, context.Canceled) {
		return err
	} else if err != nil {
		return evosim.Failure{Err: err}
	}
	if f.cell != "" {
		return nil
	}
	missing, file := 0, filepath.Join(f.folder, "results.csv")
	if err := wholefile.Write(file, 0o666, func(w io.Writer) (err error) {
		missing, err = folder.Table(s, w)
		return err
	}); err != nil {
		return evosim.Failure{Err: err}
	}
	fmt.Fprintf(cmd.OutOrStdout(), "%s: %d of %d experiments\n", file, len(cells)-missing, len(cells))
	return nil
}

// chosen returns the experiments of --cell that are left.
func (f *sweepFlags) chosen(left []int, cells int) ([]int, error) {
	from, to, several := strings.Cut(f.cell, "-")
	if !several {
		to = from
	}
	first, err1 := strconv.Atoi(from)
	last, err2 := strconv.Atoi(to)
	if errors.Join(err1, err2) != nil || first < 1 || last < first || last > cells {
		return nil, fmt.Errorf("--cell=%s: there are 1 … %d", f.cell, cells)
	}
	return slices.DeleteFunc(left, func(i int) bool { return i+1 < first || i+1 > last }), nil
}

// withBar shows progress if stderr is a terminal.
func withBar(cmd *cobra.Command, steps int, do func(progress func()) error) error {
	progress := evosim.NewProgress(cmd.ErrOrStderr(), steps, "experiments")
	defer progress.Finish()
	return do(progress.Step)
}
