package evosim

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/evoslurm/evoslurm/adapter/lab/workload"
)

// rangeFlag is a workload.Range as a flag.
type rangeFlag struct{ *workload.Range }

func (r rangeFlag) Type() string { return "MIN-MAX" }
func (r rangeFlag) String() string {
	if r.Range == nil {
		return ""
	}
	return r.Range.String()
}
func (r rangeFlag) Set(s string) (err error) {
	*r.Range, err = workload.ParseRange(s)
	return err
}

// modelFlags adds the flags of the paper's model.
func modelFlags(cmd *cobra.Command, model *workload.Paper) {
	cmd.Flags().IntVar(&model.Nodes, "nodes", model.Nodes, "nodes of the cluster")
	cmd.Flags().Var(rangeFlag{&model.Jobs}, "jobs", "jobs in a workload")
	cmd.Flags().Var(rangeFlag{&model.Steps}, "steps", "steps of a job")
	cmd.Flags().Var(rangeFlag{&model.Duration}, "duration", "seconds of a step")
	cmd.Flags().Var(rangeFlag{&model.StepNodes}, "step-nodes", "nodes of a step")
}

func generateCommand() *cobra.Command {
	kind, tests, seed, dir := "paper", 1, uint64(1), ""
	model := workload.DefaultPaper
	cmd := &cobra.Command{
		Use:   "generate [--kind=paper] [--tests=N] [--jobs=15-20] [--steps=1-10] [--duration=500-3600] [--step-nodes=1-75] [--nodes=100] [--seed=1]",
		Short: "Generate random workloads",
		Long: `Generate workloads of the paper's model: uniform choices of the number of jobs,
of their steps, and of every step's duration and nodes; all queued at second 0.

Workloads go to standard output, one a line, or with --output to files
test-0001.json, test-0002.json, … Test number k of a seed is always the same.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if kind != "paper" {
				return fmt.Errorf(`unknown kind %q, there is "paper"`, kind)
			}
			if tests < 1 {
				return fmt.Errorf("--tests=%d: must be at least 1", tests)
			}
			if err := model.Validate(); err != nil {
				return err
			}
			if dir != "" {
				return output(generateFiles(cmd, model, tests, seed, dir))
			}
			out := bufio.NewWriter(cmd.OutOrStdout())
			for test := range tests {
				if err := cmd.Context().Err(); err != nil {
					return err
				}
				if err := workload.Write(out, model.Generate(seed, test)); err != nil {
					return output(err)
				}
			}
			return output(out.Flush())
		},
	}
	cmd.Flags().StringVar(&kind, "kind", kind, "model")
	cmd.Flags().IntVar(&tests, "tests", tests, "number of workloads")
	cmd.Flags().Uint64Var(&seed, "seed", seed, "random seed")
	cmd.Flags().StringVar(&dir, "output", dir, "folder for one file per workload")
	modelFlags(cmd, &model)
	return cmd
}

func generateFiles(cmd *cobra.Command, model workload.Paper, tests int, seed uint64, dir string) error {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	for test := range tests {
		if err := cmd.Context().Err(); err != nil {
			return err
		}
		if err := create(filepath.Join(dir, fmt.Sprintf("test-%04d.json", test+1)), func(out io.Writer) error {
			return workload.Write(out, model.Generate(seed, test))
		}); err != nil {
			return err
		}
	}
	return nil
}
