package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/schollz/progressbar/v3"
	"github.com/spf13/cobra"

	"github.com/evoslurm/evoslurm/adapter/display"
	"github.com/evoslurm/evoslurm/adapter/sweep"
	"github.com/evoslurm/evoslurm/planner/evosim"
	"github.com/evoslurm/evoslurm/planner/trace"
	"github.com/evoslurm/evoslurm/planner/wholefile"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// sweepFlags are the flags of evosim sweep.
type sweepFlags struct {
	folder  string
	workers int
	cell    int
	table   bool
	dryRun  bool
	slurm   bool
	options []string
}

func sweepCommand() *cobra.Command {
	f := sweepFlags{workers: runtime.GOMAXPROCS(0)}
	cmd := &cobra.Command{
		Use:   "sweep [--output=FOLDER] [--workers=N] [--slurm [--sbatch-option=OPTION]…] FILE",
		Short: "Run a declared grid of experiments",
		Long: `Run a grid of experiments: traces × shapes × shares × strategies × seeds. FILE (YAML) declares it:

  traces:
    - file: lublin-256.swf   # beside FILE, or an absolute path
      skip: 1000             # jobs that ran, before the first that is taken
      jobs: 500              # so many from there on; without: all
      cpus_per_node: 1
  shares: [0.1, 0.3, 0.6, 1]
  strategies: [noX, 2X+c, slurm, easy]
  seeds: [1, 2, 3]

Strategies are the sidecar's, run as by evosim run, and what a site would use instead (its --beside). Further:
shapes (steps, as evosim run --evolving has them, the default, or those of evosim trace evolve), beside (the one with
which the others are compared, default slurm), config (an evoslurm.yaml), scheduler_parameters (Slurm's), and of
a trace name and nodes.

Every outcome is a file in --output (default: FILE's name with .sweep for its ending). A sweep that was
interrupted goes on where it was; one that has grown runs what is new. results.csv there has a row
for every trace, shape, share and strategy: of each figure the mean over the seeds, and half of its confidence
interval of 95 %.

--slurm submits it as a job array of its own, one task an experiment, and a job behind it that makes the table;
FILE, the traces, --output and evosim must be seen by all nodes. --sbatch-option=--partition=short goes to sbatch.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd, args[0]) },
	}
	flags := cmd.Flags()
	flags.StringVarP(&f.folder, "output", "o", "", "folder of the outcomes (default: FILE's name, ending in .sweep)")
	flags.IntVar(&f.workers, "workers", f.workers, "experiments at a time")
	flags.IntVar(&f.cell, "cell", 0, "run this experiment alone, 1 …, and make no table")
	flags.BoolVar(&f.table, "table", false, "run nothing, make the table of what there is")
	flags.BoolVar(&f.dryRun, "dry-run", false, "list the experiments, and which have an outcome")
	flags.BoolVar(&f.slurm, "slurm", false, "submit it to Slurm, as a job array")
	flags.StringArrayVar(&f.options, "sbatch-option", nil, "an option for sbatch, such as --partition=short")
	cmd.MarkFlagsMutuallyExclusive("cell", "table", "dry-run", "slurm")
	return cmd
}

func (f *sweepFlags) run(cmd *cobra.Command, name string) error {
	if f.workers < 1 {
		return fmt.Errorf("--workers=%d: must be at least 1", f.workers)
	}
	if len(f.options) > 0 && !f.slurm {
		return errors.New("--sbatch-option: there is no --slurm")
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
	case f.slurm:
		return f.submit(cmd, name, left)
	case f.table:
		left = nil
	case cmd.Flags().Changed("cell"):
		if f.cell < 1 || f.cell > len(cells) {
			return fmt.Errorf("--cell=%d: there are 1 … %d", f.cell, len(cells))
		}
		left = []int{f.cell - 1}
	}
	defer debug.SetGCPercent(debug.SetGCPercent(400)) // its garbage is many times what it keeps
	if err := withBar(cmd, len(left), func(progress func()) error {
		return folder.Run(cmd.Context(), s, left, f.workers, progress)
	}); errors.Is(err, context.Canceled) {
		return err
	} else if err != nil {
		return evosim.Failure{Err: err}
	}
	if f.cell > 0 {
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

// withBar shows how far something is where stderr is a terminal.
func withBar(cmd *cobra.Command, steps int, do func(progress func()) error) error {
	file, ok := cmd.ErrOrStderr().(*os.File)
	if !ok || steps == 0 || !display.Look(file, os.Getenv).TTY {
		return do(func() {})
	}
	bar := progressbar.NewOptions(steps, progressbar.OptionSetWriter(file), progressbar.OptionSetDescription("experiments"),
		progressbar.OptionShowCount(), progressbar.OptionSetPredictTime(true), progressbar.OptionThrottle(200*time.Millisecond), progressbar.OptionClearOnFinish())
	defer func() { _ = bar.Finish() }()
	return do(func() { _ = bar.Add(1) }) // what it cannot draw is no loss
}

// mostTasks is Slurm's MaxArraySize where a site has not set it; a larger sweep is several arrays.
const mostTasks = 1000

// submit submits what is left as job arrays, and a job behind them for the table.
func (f *sweepFlags) submit(cmd *cobra.Command, name string, left []int) error {
	own, err := os.Executable()
	if err != nil {
		return evosim.Failure{Err: err}
	}
	var paths [2]string
	for i, path := range []string{name, f.folder} {
		if paths[i], err = filepath.Abs(path); err != nil {
			return evosim.Failure{Err: err}
		}
	}
	if err := os.MkdirAll(f.folder, 0o777); err != nil { //nolint:gosec // as umask has it
		return evosim.Failure{Err: err}
	}
	client := &slurmctl.Client{Env: os.Environ()}
	var ids []string
	submit := func(what string, script string, options ...string) error {
		args := append([]string{"--parsable", "--job-name=" + what, "--ntasks=1", "--output=" + filepath.Join(paths[1], "slurm-%j.out")}, options...)
		printed, err := client.Submit(cmd.Context(), nil, append(args, f.options...), strings.NewReader(script))
		if err != nil {
			return evosim.Failure{Err: err}
		}
		id, _, _ := strings.Cut(strings.TrimSpace(printed), ";") // ;CLUSTER may follow
		ids = append(ids, id)
		return nil
	}
	base := fmt.Sprintf("#!/bin/sh\nexec %s sweep --output=%s", quote(own), quote(paths[1]))
	for first := 0; first < len(left); first += mostTasks {
		some := left[first:min(first+mostTasks, len(left))]
		numbers := make([]string, len(some))
		for i, n := range some {
			numbers[i] = strconv.Itoa(n + 1)
		}
		// Tasks are numbered from 0 on: a site's MaxArraySize is about their numbers, not how many there are.
		script := fmt.Sprintf("#!/bin/sh\nset -- %s\nshift \"$SLURM_ARRAY_TASK_ID\"\n%s --cell=\"$1\" %s\n", strings.Join(numbers, " "), strings.TrimPrefix(base, "#!/bin/sh\n"), quote(paths[0]))
		if err := submit("evosim-sweep", script, fmt.Sprintf("--array=0-%d", len(some)-1)); err != nil {
			return err
		}
	}
	arrays := len(ids)
	var behind []string
	if arrays > 0 {
		behind = []string{"--dependency=afterany:" + strings.Join(ids, ":")}
	}
	if err := submit("evosim-table", base+" --table "+quote(paths[0])+"\n", behind...); err != nil {
		return err
	}
	fmt.Fprintf(cmd.OutOrStdout(), "%d experiments: job arrays %s; the table: job %s\n", len(left), strings.Join(ids[:arrays], ", "), ids[arrays])
	return nil
}

// quote quotes a word for the shell.
func quote(word string) string { return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'" }
