package evosim

import (
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/evoslurm/evoslurm/adapter/lab/sim"
	"github.com/evoslurm/evoslurm/planner/malleable"
)

func koalaCommand() *cobra.Command {
	runs, seed, names, format := 4, uint64(1), []string{"fpsma", "egs"}, format("table")
	k := sim.DefaultKoala
	cmd := &cobra.Command{
		Use:   "koala [--runs=4] [--seed=1] [--format=json|table]",
		Short: "Repeat KOALA's evaluation of malleable jobs (FPSMA, EGS; PRA, PWA)",
		Long: `Simulate the workloads of "Scheduling Malleable Applications in Multicluster Systems"
(Buisson et al. 2007) on a model of the DAS-3: 300 jobs of FT (2-32 processors,
powers of two) and GADGET 2 (2-46); Wm and Wmr (half of the jobs rigid) with two
minutes between arrivals under PRA, W'm and W'mr with 30 s under PWA. Report for each
finding of section VII whether it holds, does not (and why), or is undecided: a
difference is within the noise of the runs (95 %, Student's t).

Sizes are processors per malleable job, averaged over its execution and the most
it reached; times are seconds; utilisation is percent of the processors that other
users leave, while jobs are submitted; "stuck" is the percentage of malleable jobs
that never had more than 2 processors. Options set what the text leaves open.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if runs < 1 || runs > 10_000 {
				return fmt.Errorf("--runs=%d: must be within 1 … 10000", runs)
			}
			if err := k.Validate(); err != nil {
				return fmt.Errorf("--%w", err)
			}
			var policies []malleable.Policy
			for _, name := range names {
				p, err := malleable.PolicyByName(name)
				if err != nil {
					return err
				}
				policies = append(policies, p)
			}
			result, err := k.Play(runs, seed, policies, cmd.Context().Err)
			if err != nil {
				return Failure{err}
			}
			if format == "table" {
				return output(koalaTables(cmd.OutOrStdout(), result))
			}
			return output(writeJSON(cmd.OutOrStdout(), result))
		},
	}
	flags := cmd.Flags()
	flags.IntVar(&runs, "runs", runs, "runs of each workload under each policy")
	flags.Uint64Var(&seed, "seed", seed, "of the first run's random choices")
	flags.StringSliceVar(&names, "policies", names, "malleability policies to compare")
	flags.Var(&format, "format", "output format")
	flags.IntVar(&k.Jobs, "jobs", k.Jobs, "jobs of a workload")
	flags.IntVar(&k.Background, "background", k.Background, "percent of each cluster that other users occupy")
	flags.IntVar(&k.Threshold, "threshold", k.Threshold, "percent of each cluster above which jobs do not grow")
	flags.IntVar(&k.Poll, "poll", k.Poll, "seconds between two polls of the scheduler")
	flags.IntVar(&k.Claim, "claim", k.Claim, "seconds to get a further processor")
	flags.IntVar(&k.Adapt, "adapt", k.Adapt, "seconds that an application stops at a change")
	flags.IntVar(&k.BestGadget, "best-gadget", k.BestGadget, "processors on which GADGET 2 is fastest")
	flags.IntVar(&k.BestFT, "best-ft", k.BestFT, "processors on which FT is fastest")
	return cmd
}

func koalaTables(out io.Writer, r sim.KoalaResult) error {
	fmt.Fprintf(out, "%d jobs, %d runs, seed %d; grown up to %d %% of each cluster, other jobs have %d %% of it\n\n", r.Koala.Jobs, r.Runs, r.Seed, r.Koala.Threshold, r.Koala.Background)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "workload\tapproach\tpolicy\tmean size\tmax size\tstuck %\texecution\tFT\tGADGET 2\twait\tresponse\tutilisation %\tgrows\tshrinks")
	for _, x := range r.Rows {
		fmt.Fprintf(w, "%s\t%s\t%s\t%.2f\t%.2f\t%.0f\t%.0f\t%.0f\t%.0f\t%.0f\t%.0f\t%.2f\t%.0f\t%.0f\n", x.Workload, x.Approach, x.Policy, x.MeanSize, x.MaxSize, x.Stuck,
			x.Execution, x.FT, x.Gadget, x.Wait, x.Response, x.Utilisation, x.Grows, x.Shrinks)
	}
	if err := w.Flush(); err != nil || len(r.Findings) == 0 {
		return err
	}
	fmt.Fprintln(out, "\nSection VII says (in brackets, what counts as it here)")
	writeFindings(out, r.Findings)
	return nil
}

func writeFindings(out io.Writer, findings []sim.KoalaFinding) {
	count := map[sim.Verdict]int{}
	for _, f := range findings {
		count[f.Verdict]++
		fmt.Fprintf(out, "  %s\n      %s: %s\n", f.Says, f.Verdict, f.Figures)
		if f.Why != "" {
			fmt.Fprintf(out, "      because %s\n", f.Why)
		}
	}
	fmt.Fprintf(out, "%d findings: %d hold, %d do not hold, %d undecided\n", len(findings), count[sim.Holds], count[sim.HoldsNot], count[sim.IsUndecided])
}
