package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"

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
	budget time.Duration // grow_delay
}

// espRows returns what evosim esp runs. Published are tables 3.5 and 3.6 of the thesis.
func espRows() []espRow {
	full := func(cores int) simulate.ESP { return simulate.ESP{Cores: cores, Full: true} }
	dynamic := simulate.ESP{Cores: 120, Dynamic: true}
	ask, whole := dynamic, dynamic
	ask.Ask, whole.Ask, whole.Whole = true, true, true
	return []espRow{
		{Cores: 64, Jobs: "with full configuration", Published: 83.9, esp: full(64)},
		{Cores: 512, Jobs: "with full configuration", Published: 82.7, esp: full(512)},
		{Cores: 64, Jobs: "throughput", esp: simulate.ESP{Cores: 64}},
		{Cores: 512, Jobs: "throughput", esp: simulate.ESP{Cores: 512}},
		{Cores: 120, Jobs: "throughput, none evolves", esp: simulate.ESP{Cores: 120}},
		{Cores: 120, Jobs: "dynamic, rigid at peak", esp: dynamic, atPeak: true},
		{Cores: 120, Jobs: "dynamic, 69 jobs evolve", esp: dynamic},
		{Cores: 120, Jobs: "dynamic, 69 jobs ask", esp: ask},
		{Cores: 120, Jobs: "dynamic, 69 jobs ask, shorter as a whole", esp: whole},
	}
}

// topologyRows returns what evosim esp --topology runs: 512 cores on three islands, as in section 3.4.3 of the thesis. It
// published what its Slurm and its OAR did (table 3.8).
func topologyRows() []espRow {
	esp := simulate.ESP{Cores: 512, Full: true, Islands: []int{168, 168, 176}}
	tree := esp
	tree.Tree = true
	planned := tree
	planned.Planned = true
	near := planned
	near.Aim = planner.AimNear
	return []espRow{
		{Cores: 512, Jobs: "Slurm, topology/none", esp: esp},
		{Cores: 512, Jobs: "Slurm, topology/tree", Published: 82.5, esp: tree},
		{Cores: 512, Jobs: "all with evosbatch, topology/tree", esp: planned},
		{Cores: 512, Jobs: "all with evosbatch --prefer-near", esp: near},
	}
}

// growDelayRows returns what evosim esp --grow-delay runs: jobs that ask may make waiting jobs later, by a budget.
func growDelayRows() (rows []espRow) {
	for _, whole := range []bool{false, true} {
		for _, budget := range []time.Duration{0, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute, 20 * time.Minute, 30 * time.Minute} {
			name := fmt.Sprintf("69 jobs ask, grow_delay %v", budget)
			if whole {
				name += ", shorter as a whole"
			}
			rows = append(rows, espRow{Cores: 120, Jobs: name, budget: budget, esp: simulate.ESP{Cores: 120, Dynamic: true, Ask: true, Whole: whole}})
		}
	}
	return rows
}

// publishedIslands holds the figures that the thesis measured (table 3.8).
var publishedIslands = []espRow{
	{Cores: 512, Jobs: "thesis: Slurm, topology/tree", ESPResult: simulate.ESPResult{Elapsed: 13050, Printed: 82.5, Wait: 2987, On: []float64{168, 45, 17}}},
	{Cores: 512, Jobs: "thesis: OAR, moldable jobs", ESPResult: simulate.ESPResult{Elapsed: 13877, Printed: 77.6, Wait: 3411, On: []float64{182, 35, 13}}},
}

// espTables returns what is run, and what writes its table. All jobs are submitted in one of two ways, see [simulate.ESP].
func espTables(topology, delays, burst bool) (rows []espRow, write func(io.Writer, []espRow) error) {
	switch {
	case topology:
		rows, write = topologyRows(), islandsTable
	case delays:
		rows, write = growDelayRows(), growDelayTable
	default:
		rows, write = espRows(), espTable
	}
	for i := range rows {
		rows[i].esp.Burst = burst
	}
	return rows, write
}

const espHelp = `Run the Effective System Performance benchmark on the model of Slurm, in virtual time, as Georgiou's thesis (2010)
runs it on the real one: 230 jobs of 14 types, with or without (throughput) the two jobs that request the whole
system. Efficiency is the shortest possible time divided by the actual time: with the 10,773 s that are
printed with the jobs, and with the 11,003 s to which their work adds up.

With --submission=burst, 50 jobs come at once, then one every 30 s, as the benchmark's scripts have it. With normal,
all come within the 2,400 s before the first job of the whole system, normally distributed: one reading of the thesis,
which speaks of a "gaussian model of submission".

In Dynamic ESP (Prabhakaran and others 2014), 69 jobs of the types F to J want four more cores after 16 % of their
time. Either they declare this, and the sidecar plans it; or they ask at 16 % and again at 25 %, and refused jobs take
longer. More cores shorten the rest of their time, or "as a whole", all of it, as if they had had the cores from the
start. The output also has the same jobs rigid at their largest size, and the plain benchmark, in which these jobs take
longer on fewer cores.

With --topology, it runs the benchmark on 512 cores in three islands of 168, 168, and 176, and counts on how many islands
jobs begin (tables 3.7 and 3.8 of the thesis): by Slurm that does not know the islands, by Slurm with topology/tree, and
with all jobs submitted with evosbatch, with and without --prefer-near.

With --grow-delay, the 69 jobs ask where growths may make waiting jobs start later (grow_delay in evoslurm.yaml), by none
to 30 minutes in all.`

func espCommand() *cobra.Command {
	strategy, format, submission, seeds, topology, delays := "noX", "table", "burst", 3, false, false
	cmd := &cobra.Command{
		Use:   "esp [--seeds=3] [--strategy=noX] [--submission=burst|normal] [--topology | --grow-delay] [--format=json|table]",
		Short: "Run the benchmark ESP on a model of Slurm",
		Long:  espHelp,
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if format != "json" && format != "table" {
				return fmt.Errorf(`--format=%s: must be "json" or "table"`, format)
			}
			if submission != "burst" && submission != "normal" {
				return fmt.Errorf(`--submission=%s: must be "burst" or "normal"`, submission)
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
			rows, write := espTables(topology, delays, submission == "burst")
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
				err = write(cmd.OutOrStdout(), rows)
			}
			if err != nil {
				return evosim.Failure{Err: err}
			}
			return nil
		},
	}
	cmd.Flags().IntVar(&seeds, "seeds", seeds, "number of runs with different job orders to average")
	cmd.Flags().BoolVar(&topology, "topology", topology, "count the islands on which jobs begin")
	cmd.Flags().BoolVar(&delays, "grow-delay", delays, "let growths make waiting jobs start later")
	cmd.MarkFlagsMutuallyExclusive("topology", "grow-delay")
	cmd.Flags().StringVar(&submission, "submission", submission, "when jobs come, burst or normal")
	cmd.Flags().StringVar(&strategy, "strategy", strategy, "planning strategy")
	cmd.Flags().StringVar(&format, "format", format, "output format, json or table")
	return cmd
}

// espTable writes the rows for people.
func espTable(out io.Writer, rows []espRow) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprint(w, "CORES\tJOBS\tELAPSED\tEFFICIENCY, PRINTED\tPUBLISHED\tAS IT ADDS UP\tJOBS A MINUTE\n")
	for _, r := range rows {
		published := "-"
		if r.Published > 0 {
			published = fmt.Sprintf("%.1f %%", r.Published)
		}
		fmt.Fprintf(w, "%d\t%s\t%d s\t%.1f %%\t%s\t%.1f %%\t%.3f\n", r.Cores, r.Jobs, r.Elapsed, r.Printed, published, r.Efficiency, r.Throughput)
	}
	return w.Flush()
}

// islandsTable writes the rows for people, beside the thesis's.
func islandsTable(out io.Writer, rows []espRow) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprint(w, "CORES\tJOBS\tELAPSED\tEFFICIENCY, PRINTED\tAVERAGE WAIT\t1 ISLAND\t2 ISLANDS\t3 ISLANDS\n")
	least := rows[0].esp.Least()
	fmt.Fprintf(w, "512\tat best\t%d s\t100.0 %%\t-\t%d\t%d\t%d\n", simulate.ESPPrinted, least[0], least[1], least[2])
	for _, r := range slices.Concat(rows, publishedIslands) {
		fmt.Fprintf(w, "%d\t%s\t%d s\t%.1f %%\t%.0f s\t%.0f\t%.0f\t%.0f\n", r.Cores, r.Jobs, r.Elapsed, r.Printed, r.Wait, r.On[0], r.On[1], r.On[2])
	}
	return w.Flush()
}

// growDelayTable writes the rows for people.
func growDelayTable(out io.Writer, rows []espRow) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprint(w, "CORES\tJOBS\tELAPSED\tJOBS A MINUTE\tGOT MORE\tMOVED\tLATER BY, AVERAGE\tAT MOST\tAVERAGE WAIT\n")
	for _, r := range rows {
		fmt.Fprintf(w, "%d\t%s\t%d s\t%.3f\t%.0f\t%.0f\t%.0f s\t%.0f s\t%.0f s\n", r.Cores, r.Jobs, r.Elapsed, r.Throughput, r.Got, r.Moved, r.Later, r.Latest, r.Wait)
	}
	return w.Flush()
}

// run runs it with that many seeds.
func (r *espRow) run(ctx context.Context, e simulate.Experiment, seeds int, progress func()) error {
	elapsed := 0.
	e.Config.GrowDelay = r.budget
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
		r.Wait += one.Wait / float64(seeds)
		r.Got += one.Got / float64(seeds)
		r.Moved += one.Moved / float64(seeds)
		r.Later += one.Later / float64(seeds)
		r.Latest = max(r.Latest, one.Latest)
		for i, jobs := range one.On {
			if len(r.On) <= i {
				r.On = append(r.On, 0)
			}
			r.On[i] += jobs / float64(seeds)
		}
		progress()
	}
	r.Runs, r.Elapsed = seeds, int64(elapsed/float64(seeds))
	return nil
}
