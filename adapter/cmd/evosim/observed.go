package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/evoslurm/evoslurm/adapter/internal/wholefile"
	"github.com/evoslurm/evoslurm/adapter/lab/evosim"
	"github.com/evoslurm/evoslurm/adapter/lab/observed"
	"github.com/evoslurm/evoslurm/adapter/lab/report"
	"github.com/evoslurm/evoslurm/adapter/lab/trace"
)

// observedFlags are the flags of evosim observed.
type observedFlags struct {
	observed.Options
	since, rules string
	format       string
	html, pages  string
	keep         int
}

func observedCommand() *cobra.Command {
	f := observedFlags{format: "table", keep: 30}
	f.Evolve, f.Days = observed.Evolve{Share: .3, Shape: "uniform", Seed: 1, Shortest: 60}, 7
	cmd := &cobra.Command{
		Use:   "observed [--since=TIME] [--share=0.3] [--shape=uniform] [--evolve=FILE] [--days=7] [--format=table|json] [--html=FILE] [--pages=DIR] DIR",
		Short: "Report on the days that a sidecar in mode observe has recorded",
		Long: `Report on the days that a sidecar in mode observe has recorded in a folder (evosctl report --observe takes the
folder of the configuration):

  How well are starts predicted? The planned against the actual start of every stock job, by the time between the prediction and the
  start, and what share of the starts promised within a time came within it; Slurm's own
  estimates beside them.

  What would be gained? The latest --days are played in a model of Slurm twice: as they were, and with jobs that
  evolve. The model's own error against the site stands beside each figure.

  What would it cost? Node-hours held idle, stock jobs that start later in the model, and the share of slurmctld's
  time that observing took.

All figures have 95 % confidence intervals: whole days (of a record
below three days, hours, and below three hours, five minutes) are drawn with replacement.

--share of the jobs evolve, drawn by --seed, in a --shape that keeps their node-seconds (see evosim trace evolve). With
--peak, a job's size was that of its largest step, so that it needs less.
--evolve=FILE says instead which jobs evolve: a YAML list of rules. The first rule that matches counts.

  - {name: "amr-*", profile: "25%@40%,100%@20%,50%@40%"}   # of the job's nodes, of its run time
  - {user: anna, account: physics, shape: amr}
  - {name: lbm, profile: "2@10m,8@1h"}

Only jobs with whole nodes evolve. Names in a masked record are masked: rules match the masked names.

Files and days that cannot be read or played are named, and the rest is reported. --html=FILE writes one HTML page.
--pages=DIR writes it into a folder, named by the last day (observed-2026-11-25.html), and removes all but the newest
--keep pages there.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd, args) },
	}
	flags := cmd.Flags()
	flags.StringVar(&f.since, "since", "", "first day to report on: 2026-11-25, or a time in RFC 3339 (default: all)")
	flags.Float64Var(&f.Evolve.Share, "share", f.Evolve.Share, "share of the jobs that evolve, 0 to 1")
	flags.StringVar(&f.Evolve.Shape, "shape", f.Evolve.Shape, strings.Join(trace.Shapes, ", "))
	flags.BoolVar(&f.Evolve.Peak, "peak", false, "scale shapes so that a job's largest step has the size that the job had")
	flags.StringVar(&f.rules, "evolve", "", "file of rules that say which jobs evolve, in place of --share and --shape")
	flags.Uint64Var(&f.Evolve.Seed, "seed", f.Evolve.Seed, "random seed")
	flags.Int64Var(&f.Evolve.Shortest, "shortest", f.Evolve.Shortest, "shortest run time of a job that evolves, in seconds")
	flags.IntVar(&f.Days, "days", f.Days, "number of latest days to play; 0: none")
	flags.DurationVar(&f.Within, "within", 0, "longest time for playing days, after which the report goes on without the rest; 0: any")
	flags.StringVar(&f.format, "format", f.format, "output format, json or table")
	flags.StringVar(&f.html, "html", "", "HTML page to write")
	flags.StringVar(&f.pages, "pages", "", "folder to write the HTML page to, named by its last day")
	flags.IntVar(&f.keep, "keep", f.keep, "number of newest pages to keep there")
	return cmd
}

func (f *observedFlags) run(cmd *cobra.Command, args []string) error {
	if err := f.check(); err != nil {
		return err
	}
	if info, err := os.Stat(args[0]); err != nil {
		return err
	} else if !info.IsDir() {
		return fmt.Errorf("%s: not a folder", args[0])
	}
	progress := evosim.NewProgress(cmd.ErrOrStderr(), 1, "playing")
	defer progress.Finish()
	f.Progress = progress.Of
	r, err := observed.New(cmd.Context(), args[0], f.Options)
	progress.Finish()
	if err != nil && !errors.Is(err, observed.ErrNothing) {
		return evosim.Failure{Err: err}
	} else if err != nil { // which is no error of the caller's: a new record is empty
		fmt.Fprintf(cmd.ErrOrStderr(), "evosim: %s: %v\n", args[0], err)
	}
	if err == nil {
		if err := f.write(r, report.Options{Command: evosim.Made(cmd, args, "").Command, Version: strings.TrimPrefix(cmd.Root().Version, "evoslurm ")}); err != nil {
			return evosim.Failure{Err: err}
		}
	}
	out := bufio.NewWriter(cmd.OutOrStdout())
	switch {
	case f.format == "json":
		err = json.NewEncoder(out).Encode(r)
	case err == nil:
		err = r.Table(out)
	default:
		err = nil
	}
	if err = errors.Join(err, out.Flush()); err != nil {
		return evosim.Failure{Err: err}
	}
	return nil
}

// check completes the options, or returns what is wrong with the flags.
func (f *observedFlags) check() (err error) {
	switch {
	case f.format != "json" && f.format != "table":
		return fmt.Errorf(`--format=%s: must be "json" or "table"`, f.format)
	case f.Days < 0:
		return fmt.Errorf("--days=%d: must be at least 0", f.Days)
	case f.Within < 0:
		return fmt.Errorf("--within=%v: must be at least 0", f.Within)
	case f.keep < 1:
		return fmt.Errorf("--keep=%d: must be at least 1", f.keep)
	}
	if f.since != "" {
		if f.Since, err = time.Parse(time.DateOnly, f.since); err != nil {
			if f.Since, err = time.Parse(time.RFC3339, f.since); err != nil {
				return fmt.Errorf("--since=%s: must be a day (2026-11-25) or a time in RFC 3339", f.since)
			}
		}
	}
	if f.rules != "" {
		in, err := os.Open(f.rules)
		if err != nil {
			return err
		}
		defer in.Close()
		if f.Evolve.Rules, err = observed.ReadRules(in); err != nil {
			return fmt.Errorf("%s: %w", f.rules, err)
		}
	}
	return f.Evolve.Check()
}

// write writes the page to a file, and to the folder of pages.
func (f *observedFlags) write(r *observed.Report, o report.Options) error {
	files := []string{f.html}
	if f.pages != "" {
		files = append(files, filepath.Join(f.pages, "observed-"+r.Until.Format(time.DateOnly)+".html"))
	}
	for _, file := range files {
		if file == "" {
			continue
		}
		if err := wholefile.Write(file, 0o644, func(out io.Writer) error { return r.Page(out, o) }); err != nil {
			return err
		}
	}
	if f.pages == "" {
		return nil
	}
	entries, err := os.ReadDir(f.pages) // by name, so by day
	if err != nil {
		return err
	}
	entries = slices.DeleteFunc(entries, func(e os.DirEntry) bool {
		_, err := time.Parse("observed-"+time.DateOnly+".html", e.Name())
		return err != nil
	})
	for _, old := range entries[:max(len(entries)-f.keep, 0)] {
		err = errors.Join(err, os.Remove(filepath.Join(f.pages, old.Name())))
	}
	return err
}
