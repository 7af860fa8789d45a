package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/evoslurm/evoslurm/adapter/internal/config"
	"github.com/evoslurm/evoslurm/adapter/lab/evosim"
	"github.com/evoslurm/evoslurm/adapter/lab/simulate"
	"github.com/evoslurm/evoslurm/planner"
	"github.com/evoslurm/evoslurm/slurmctl/slurmsim"
)

// espRow is a benchmark, with means over its runs.
type espRow struct {
	Cores     int     `json:"cores"`
	Jobs      string  `json:"jobs"`
	Published float64 `json:"published,omitempty"` // efficiency in percent, by the time that is printed
	Runs      int     `json:"runs"`
	simulate.ESPResult

	esp    simulate.ESP
	atPeak bool
}

// espRows returns what evosim esp runs. Published are tables 3.5 and 3.6 of the thesis.
func espRows() []espRow {
	full := func(cores int) simulate.ESP { return simulate.ESP{Cores: cores, Full: true, Burst: true} }
	dynamic := simulate.ESP{Cores: 120, Dynamic: true, Burst: true}
	ask, whole := dynamic, dynamic
	ask.Ask, whole.Ask, whole.Whole = true, true, true
	return []espRow{
		{Cores: 64, Jobs: "with full configuration", Published: 83.9, esp: full(64)},
		{Cores: 512, Jobs: "with full configuration", Published: 82.7, esp: full(512)},
		{Cores: 64, Jobs: "throughput", esp: simulate.ESP{Cores: 64, Burst: true}},
		{Cores: 512, Jobs: "throughput", esp: simulate.ESP{Cores: 512, Burst: true}},
		{Cores: 120, Jobs: "throughput, none evolves", esp: simulate.ESP{Cores: 120, Burst: true}},
		{Cores: 120, Jobs: "dynamic, rigid at peak", esp: dynamic, atPeak: true},
		{Cores: 120, Jobs: "dynamic, 69 jobs evolve", esp: dynamic},
		{Cores: 120, Jobs: "dynamic, 69 jobs ask", esp: ask},
		{Cores: 120, Jobs: "dynamic, 69 jobs ask, shorter as a whole", esp: whole},
	}
}

func espCommand() *cobra.Command {
	strategy, format, seeds := "noX", "table", 3
	cmd := &cobra.Command{
		Use:   "esp [--seeds=3] [--strategy=noX] [--format=json|table]",
		Short: "Run the benchmark ESP on a model of Slurm",
		Long: `Run the Effective System Performance benchmark on the model of Slurm, in virtual time, as Georgiou's thesis (2010)
runs it on the real one: 230 jobs of 14 types, with or without (throughput) the two jobs that request the whole
system. Efficiency is the shortest possible time divided by the actual time: with the 10,773 s that are
printed with the jobs, and with the 11,003 s to which their work adds up. 50 jobs come at once, then one every 30 s.

In Dynamic ESP (Prabhakaran and others 2014), 69 jobs of the types F to J want four more cores after 16 % of their
time. Either they declare this, and the sidecar plans it; or they ask at 16 % and again at 25 %, and refused jobs take
longer. More cores shorten the rest of their time, or "as a whole", all of it, as if they had had the cores from the
start. The output also has the same jobs rigid at their largest size, and the plain benchmark, in which these jobs take
longer on fewer cores.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if format != "json" && format != "table" {
				return fmt.Errorf(`--format=%s: must be "json" or "table"`, format)
			}
			if seeds < 1 || seeds > 1000 {
				return fmt.Errorf("--seeds=%d: must be within 1 … 1000", seeds)
			}
			e := simulate.Experiment{Config: config.Default(), Cluster: slurmsim.Options{CPUs: 1, Accounting: true, PermitJobExpansion: true}}
			var err error
			if e.Strategy, err = planner.StrategyByName(strategy); err != nil {
				return err
			}
			e.Config.Strategy = strategy
			rows := espRows()
			err = withBar(cmd, len(rows)*seeds, func(progress func()) error {
				for i := range rows {
					if err := rows[i].run(cmd.Context(), e, seeds, progress); err != nil {
						return err
					}
				}
				return nil
			})
			if errors.Is(err, context.Canceled) {
				return err
			} else if err != nil {
				return evosim.Failure{Err: err}
			}
			if format == "json" {
				err = json.NewEncoder(cmd.OutOrStdout()).Encode(rows)
			} else {
				w := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
				fmt.Fprint(w, "CORES\tJOBS\tELAPSED\tEFFICIENCY, PRINTED\tPUBLISHED\tAS IT ADDS UP\tJOBS A MINUTE\n")
				for _, r := range rows {
					published := "-"
					if r.Published > 0 {
						published = fmt.Sprintf("%.1f %%", r.Published)
					}
					fmt.Fprintf(w, "%d\t%s\t%d s\t%.1f %%\t%s\t%.1f %%\t%.3f\n", r.Cores, r.Jobs, r.Elapsed, r.Printed, published, r.Efficiency, r.Throughput)
				}
				err = w.Flush()
			}
			if err != nil {
				return evosim.Failure{Err: err}
			}
			return nil
		},
	}
	cmd.Flags().IntVar(&seeds, "seeds", seeds, "number of runs with different job orders to average")
	cmd.Flags().StringVar(&strategy, "strategy", strategy, "planning strategy")
	cmd.Flags().StringVar(&format, "format", format, "output format, json or table")
	return cmd
}

// run runs it with that many seeds.
func (r *espRow) run(ctx context.Context, e simulate.Experiment, seeds int, progress func()) error {
	elapsed := 0.
	for seed := range uint64(seeds) {
		r.esp.Seed, e.Cluster.Seed = seed, seed
		one, err := r.esp.Run(ctx, e, r.atPeak)
		if err != nil {
			return fmt.Errorf("%d cores, %s, seed %d: %w", r.Cores, r.Jobs, seed, err)
		}
		elapsed += float64(one.Elapsed)
		r.Printed += one.Printed / float64(seeds)
		r.Efficiency += one.Efficiency / float64(seeds)
		r.Throughput += one.Throughput / float64(seeds)
		progress()
	}
	r.Runs, r.Elapsed = seeds, int64(elapsed/float64(seeds))
	return nil
}
