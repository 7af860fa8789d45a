package evosim

import (
	"fmt"
	"io"
	"runtime"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/evoslurm/evoslurm/adapter/job/place"
	"github.com/evoslurm/evoslurm/adapter/lab/sim"
)

const placementHelp = `Simulate jobs on the five clusters of the DAS-3 (Buisson et al. 2007, table I) under the placement
policies of KOALA (section IV-A), beside "earliest": each job goes to the cluster where it would
complete first by the plan there.

  earliest              the cluster that completes the job first
  worst-fit             the cluster with the most idle nodes
  close-to-files        of the clusters with room, the one where the input file arrives first
  cluster-min           as few clusters as possible for the components of a job
  flexible-cluster-min  the same, with components as large as what is idle

A job without room waits in one cluster, chosen at its submission (cluster), or in one queue that is
scanned for jobs with room anywhere (koala). Only cluster minimisation splits jobs.

  apps        FT on 4 to 16 nodes and GADGET 2 on 8 to 32, as in section VI; no files
  files       the same jobs, each with an input file that one cluster has
  replicated  the same, and --replicas clusters have the file
  components  jobs of four components, 16 to 64 nodes in all, 2 to 10 minutes
  cigri       a bag of tasks of 45 minutes at once, beside the local load of Georgiou's thesis
              (2010, table 4.2)

Wait includes the transfer of the file, imbalance is the standard deviation of the clusters' utilisation
in points, and extension is the time of split jobs as a multiple of the time in one cluster. Beside
each mean is half of its confidence interval of 95 % over the runs. All policies get the same jobs
in a run. A difference within the noise of the runs is undecided.`

func placementCommand() *cobra.Command {
	runs, seed, format, workers := 20, uint64(1), format("table"), runtime.GOMAXPROCS(0)
	workloads, names := sim.PlacementWorkloads, place.Names()
	p := sim.DefaultPlacement
	cmd := &cobra.Command{
		Use:   "koala-placement [--runs=20] [--seed=1] [--workloads=apps,…] [--policies=worst-fit,…] [--format=json|table]",
		Short: "Compare KOALA's policies that choose among clusters, beside earliest",
		Long:  placementHelp,
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if runs < 1 || runs > 10_000 {
				return fmt.Errorf("--runs=%d: must be within 1 … 10000", runs)
			}
			if workers < 1 {
				return fmt.Errorf("--workers=%d: must be at least 1", workers)
			}
			if err := p.Validate(workloads); err != nil {
				return fmt.Errorf("--%w", err)
			}
			policies := make([]place.Policy, len(names))
			for i, name := range names {
				var err error
				if policies[i], err = place.ParsePolicy(name); err != nil {
					return fmt.Errorf("--policies: %w", err)
				}
			}
			progress := NewProgress(cmd.ErrOrStderr(), len(workloads)*runs, "simulating")
			defer progress.Finish()
			result, err := p.Run(cmd.Context(), runs, seed, workloads, policies, workers, progress.Step)
			if err != nil {
				return Failure{err}
			}
			progress.Finish()
			if format == "json" {
				return output(writeJSON(cmd.OutOrStdout(), result))
			}
			return output(placementTables(cmd.OutOrStdout(), result))
		},
	}
	flags := cmd.Flags()
	flags.IntVar(&runs, "runs", runs, "runs of each workload")
	flags.Uint64Var(&seed, "seed", seed, "of the first run's random choices")
	flags.StringSliceVar(&workloads, "workloads", workloads, "workloads to simulate")
	flags.StringSliceVar(&names, "policies", names, "policies to compare with earliest")
	flags.Var(&format, "format", "output format")
	flags.IntVar(&workers, "workers", workers, "simulations at a time")
	flags.IntVar(&p.Jobs, "jobs", p.Jobs, "jobs of a workload")
	flags.IntVar(&p.Load, "load", p.Load, "percent of all nodes that the jobs need (not cigri)")
	flags.IntVar(&p.Background, "background", p.Background, "percent of each cluster that local jobs need (not cigri)")
	flags.IntVar(&p.Limit, "limit", p.Limit, "requested time of a job, as a multiple of what it takes")
	flags.IntVar(&p.Poll, "poll", p.Poll, "seconds between two scans of KOALA's queue")
	flags.IntVar(&p.File, "file", p.File, "gigabytes of the largest input files; others have a half or a quarter")
	flags.IntVar(&p.Replicas, "replicas", p.Replicas, "clusters that have a file, in the workload replicated")
	flags.StringVar(&p.Network, "network", p.Network, "lightpaths (10 Gbit/s between clusters with Myri-10G, 1 Gbit/s to Delft) or internet (1 Gbit/s)")
	flags.IntVar(&p.Communication, "communication", p.Communication, "mean percent of its time that a job communicates in one cluster")
	flags.IntVar(&p.Ratio, "ratio", p.Ratio, "time of a message between clusters, as a multiple of one within")
	return cmd
}

func placementTables(out io.Writer, r sim.PlacementResult) error {
	p, nodes := r.Parameters, 0
	for _, c := range r.Clusters {
		nodes += c.Nodes
	}
	fmt.Fprintf(out, "%d jobs, %d runs, seed %d; %d nodes: %d %% needed by the jobs, %d %% by local jobs (cigri: by others); %s\n\n", p.Jobs, r.Runs, r.Seed, nodes, p.Load, p.Background, p.Network)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "workload\tpolicy\twaits in\twait\tresponse\tlocal wait\tutilisation %\timbalance\tsplit %\textension\ttransfers\tGB\ts each")
	for _, x := range r.Rows {
		fmt.Fprintf(w, "%s\t%s\t%s", x.Workload, x.Policy, x.Queue)
		for _, column := range sim.PlacementColumns {
			digits := map[string]int{"utilisation": 1, "imbalance": 1, "split": 1, "extension": 2}[column]
			fmt.Fprint(w, "\t", estimateText(x.Columns[column], digits))
		}
		fmt.Fprintln(w)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(out, "\nAgainst earliest, in the same runs")
	fmt.Fprintln(w, "workload\tpolicy\twaits in\twait\tresponse\tlocal wait\timbalance\ttransfers\tGB")
	for _, x := range r.Rows {
		if x.Against == nil {
			continue
		}
		fmt.Fprintf(w, "%s\t%s\t%s", x.Workload, x.Policy, x.Queue)
		for _, column := range []string{"wait", "response", "local_wait", "imbalance", "transfers", "gigabytes"} {
			d := x.Against[column]
			text := d.Verdict
			if text == "more" || text == "less" {
				text = estimateText(d.Estimate, map[string]int{"imbalance": 1}[column]) + " " + text
			}
			fmt.Fprint(w, "\t", text)
		}
		fmt.Fprintln(w)
	}
	if err := w.Flush(); err != nil || len(r.Findings) == 0 {
		return err
	}
	fmt.Fprintln(out, "\nThe texts on KOALA say (jobs wait in its queue)")
	writeFindings(out, r.Findings)
	return nil
}

// estimateText formats an estimate: 12 ±3, 12 without an interval, or a dash without a value.
func estimateText(e sim.Estimate, digits int) string {
	if e.Mean == nil {
		return "–"
	}
	text := fmt.Sprintf("%.*f", digits, *e.Mean)
	if e.Half != nil && *e.Half > 0 {
		text += fmt.Sprintf(" ±%.*f", digits, *e.Half)
	}
	return strings.Replace(text, "-", "−", 1)
}
