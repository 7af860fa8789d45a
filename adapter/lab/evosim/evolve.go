package evosim

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/evoslurm/evoslurm/adapter/lab/trace"
	"github.com/evoslurm/evoslurm/planner/malleable"
)

func evolveCommand(more []trace.Format) *cobra.Command {
	f := traceFlags{more: more}
	model := trace.Evolve{Share: .3, Shape: "uniform", Seed: 1, Shortest: 60}
	speedup := ""
	cmd := &cobra.Command{
		Use:   "evolve [--share=0.3] [--shape=uniform|amr|ramp|pulse|moldable|malleable] [--seed=1] [--speedup=SPEEDUP] FILE",
		Short: "Make some jobs of a rigid trace evolve",
		Long: `Make a share of the jobs of a rigid trace evolve, drawn by the seed from those that ran for
at least --shortest seconds. A job keeps its node-seconds, to less than a second of its largest step, so
both traces have the same work. Its largest size is at most the machine's. Shapes:

  uniform    1 to 10 steps of 500 to 3600 s on 1 to 75 % of the machine, as Klein and Pérez (2011) draw
             them, scaled to the job's size and run time
  amr        the blocks of a code with adaptive mesh refinement (miniAMR, a moving sphere), in 22 steps
  ramp       four steps, each larger than the one before
  pulse      small, with two bursts at the job's size
  moldable   half, once or twice the size, with the time that each takes
  malleable  from a quarter of its size up to its size

On another size, a moldable or malleable job takes the same node-seconds, unless --speedup gives its speed on each
number of nodes: amdahl:0.95, or NODES:SPEEDUP,… such as 1:1,4:3.4,16:9.

The output is a workload file (JSON), which keeps the trace's fields of each job.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if !slices.Contains(trace.Shapes, model.Shape) {
				return fmt.Errorf("--shape=%s: must be %s", model.Shape, strings.Join(trace.Shapes, ", "))
			}
			if !(model.Share >= 0 && model.Share <= 1) {
				return fmt.Errorf("--share=%v: must be within 0 … 1", model.Share)
			}
			if speedup != "" {
				var err error
				if model.Speedup, err = malleable.ParseDeclared(speedup); err != nil {
					return fmt.Errorf("--speedup: %w", err)
				}
				if model.Shape != "moldable" && model.Shape != "malleable" {
					return fmt.Errorf("--speedup: goes with --shape=moldable and --shape=malleable: a job of shape %s says itself how long its steps are", model.Shape)
				}
			}
			if f.to == "" {
				f.to = "json"
			}
			machine := 0
			return f.stream(cmd, args[0], func(h *trace.Header) { machine = h.Machine() }, func(j *trace.Job) (bool, error) {
				return true, model.Job(j, machine)
			})
		},
	}
	f.writing(cmd)
	flags := cmd.Flags()
	flags.Float64Var(&model.Share, "share", model.Share, "share of the jobs, 0 to 1")
	flags.StringVar(&model.Shape, "shape", model.Shape, strings.Join(trace.Shapes, ", "))
	flags.Uint64Var(&model.Seed, "seed", model.Seed, "random seed")
	flags.StringVar(&speedup, "speedup", "", "of moldable and malleable jobs: amdahl:F, or NODES:SPEEDUP,…")
	flags.Int64Var(&model.Shortest, "shortest", model.Shortest, "shortest run time of a job that evolves, in seconds")
	return cmd
}
