package evosim

import (
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/evoslurm/evoslurm/adapter/lab/sim"
	"github.com/evoslurm/evoslurm/adapter/lab/workload"
)

func pecs23Command() *cobra.Command {
	e, format, workers := sim.DefaultPECS23, format("table"), runtime.GOMAXPROCS(0)
	cmd := &cobra.Command{
		Use:   "pecs23 [--seeds=10] [--days=30] [--nodes=128] [--shares=0,10,…] [--phases=5] [--format=json|table]",
		Short: "Repeat the experiment of Posner et al. (PECS 2023) with malleable, and with evolving jobs",
		Long: `Run the workloads of Posner, Hupfeld and Finnerty (PECS 2023) on a simulated cluster, with
0 … 100 % of the jobs malleable, and print wait, turnaround and utilisation beside the published
averages (in brackets). The seeds are theirs, and so are the workloads.

Schedulers: the publication's rigid_easy_backfill (in effect first come, first served),
rigid_backfill (whatever fits) and pref_agreement; fcfs, easy and first-fit; and any of these three
with a malleability policy, as first-fit+gain: fpsma, egs, equipartition, folding or gain, under
which running malleable jobs give way to waiting ones.

Then the same for applications that evolve, each of up to --phases phases that scale differently.
Their users submit them as rigid, moldable or malleable jobs with the nodes that the largest phase
needs, as evolving jobs that declare the nodes of every phase, or as both: with bounds for every
phase. The planner's own fit plans them; declared growths are promises, and "late" is the
largest delay of one, in seconds.

Equal seeds give equal output. The command uses all cores; --workers=1 uses one.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if workers < 1 {
				return fmt.Errorf("--workers=%d: must be at least 1", workers)
			}
			if err := e.Validate(); err != nil {
				return err
			}
			progress := NewProgress(cmd.ErrOrStderr(), e.Runs(), "simulating")
			result, err := e.Run(cmd.Context(), workers, progress.Step)
			progress.Finish()
			if err != nil {
				return Failure{err}
			}
			if format == "table" {
				return output(pecs23Tables(cmd.OutOrStdout(), result))
			}
			return output(writeJSON(cmd.OutOrStdout(), pecs23JSON(result)))
		},
	}
	flags := cmd.Flags()
	flags.IntVar(&e.Seeds, "seeds", e.Seeds, "number of workloads: those of the seeds S0, S1, …")
	flags.IntVar(&e.Model.Days, "days", e.Model.Days, "days of a workload")
	flags.IntVar(&e.Model.Nodes, "nodes", e.Model.Nodes, "nodes of the cluster")
	flags.IntSliceVar(&e.Shares, "shares", e.Shares, "percentages of jobs that are malleable, or submitted as their own kind")
	flags.StringSliceVar(&e.Schedulers, "schedulers", e.Schedulers, "schedulers to compare")
	flags.IntVar(&e.Phases, "phases", e.Phases, "largest number of phases of an evolving application (0: none)")
	flags.StringVar(&e.Policy, "policy", e.Policy, "malleability policy for evolving applications")
	flags.IntVar(&e.Ahead, "ahead", e.Ahead, "waiting evolving applications with a reserved place; others start only if they can start at once")
	flags.IntVar(&workers, "workers", workers, "simulations at a time")
	flags.Var(&format, "format", "output format")
	return cmd
}

// pecs23Metrics lists the printed metrics with their names in JSON.
var pecs23Metrics = []struct {
	name, title, number string
	of                  func(sim.PECS23Figures) float64
}{
	{"wait", "mean wait, seconds", "%.0f", func(f sim.PECS23Figures) float64 { return f.Wait }},
	{"turnaround", "mean turnaround, seconds", "%.0f", func(f sim.PECS23Figures) float64 { return f.Turnaround }},
	{"utilisation", "utilisation, %", "%.1f", func(f sim.PECS23Figures) float64 { return f.Utilisation }},
}

// published returns a scheduler's published averages, if the result is comparable with them.
func published(r sim.PECS23Result, scheduler, metric string) []float64 {
	if r.Nodes != workload.DefaultPECS23.Nodes || r.Days != workload.DefaultPECS23.Days {
		return nil
	}
	all := sim.PublishedPECS23[scheduler][metric]
	var some []float64
	for _, share := range r.Shares {
		if all == nil || share%10 != 0 {
			return nil
		}
		some = append(some, all[share/10])
	}
	return some
}

func pecs23Tables(out io.Writer, r sim.PECS23Result) error {
	fmt.Fprintf(out, "%d nodes, %d days, %d seeds: averages, by percent of malleable jobs (in brackets: as published)\n", r.Nodes, r.Days, r.Seeds)
	for _, m := range pecs23Metrics {
		if len(r.Rows) == 0 {
			break
		}
		w := pecs23Head(out, m.title, "scheduler", r.Shares)
		for _, row := range r.Rows {
			fmt.Fprint(w, row.Name)
			for _, f := range row.Figures {
				fmt.Fprintf(w, "\t"+m.number, m.of(f))
			}
			fmt.Fprintln(w)
			if values := published(r, row.Name, m.name); values != nil {
				for _, v := range values {
					fmt.Fprintf(w, "\t["+m.number+"]", v)
				}
				fmt.Fprintln(w)
			}
		}
		if err := w.Flush(); err != nil {
			return err
		}
	}
	if r.Phases > 0 {
		fmt.Fprintf(out, "\nApplications of up to %d phases, by percent submitted as what stands in front; the others are rigid;\npolicy %s, %d of those that wait keep their place\n", r.Phases, r.Policy, r.Ahead)
		for _, m := range slices.Concat(pecs23Metrics, pecs23Evolving) {
			w := pecs23Head(out, m.title, "submitted as", r.Shares)
			for _, row := range r.Evolving {
				fmt.Fprint(w, row.Name)
				for _, f := range row.Figures {
					fmt.Fprintf(w, "\t"+m.number, m.of(f))
				}
				fmt.Fprintln(w)
			}
			if err := w.Flush(); err != nil {
				return err
			}
		}
	}
	return nil
}

// pecs23Evolving lists the metrics printed in addition for evolving applications.
var pecs23Evolving = []struct {
	name, title, number string
	of                  func(sim.PECS23Figures) float64
}{
	{"efficiency", "work done by node-second allocated, % of one node's", "%.1f", func(f sim.PECS23Figures) float64 { return f.Efficiency }},
	{"late", "declared growths late, seconds at most", "%.0f", func(f sim.PECS23Figures) float64 { return f.Late }},
}

func pecs23Head(out io.Writer, title, first string, shares []int) *tabwriter.Writer {
	fmt.Fprintf(out, "\n%s\n", strings.ToUpper(title[:1])+title[1:])
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprint(w, first)
	for _, s := range shares {
		fmt.Fprintf(w, "\t%d %%", s)
	}
	fmt.Fprintln(w)
	return w
}

// publishedJSON is a result with the published figures.
type publishedJSON struct {
	sim.PECS23Result
	Published map[string]map[string][]float64 `json:"published,omitempty"` // by scheduler and metric, for every share
}

func pecs23JSON(r sim.PECS23Result) publishedJSON {
	result := publishedJSON{PECS23Result: r, Published: make(map[string]map[string][]float64)}
	for name, metrics := range sim.PublishedPECS23 {
		for metric := range metrics {
			if values := published(r, name, metric); values != nil {
				if result.Published[name] == nil {
					result.Published[name] = make(map[string][]float64)
				}
				result.Published[name][metric] = values
			}
		}
	}
	return result
}
