package main

import "github.com/spf13/cobra"

func newEnv() *cobra.Command {
	var job jobFlag
	var out output
	cmd := &cobra.Command{
		Use:   "env",
		Short: "Print the exports of the current step, without ending it",
		Long: `Print what evosctl next prints, for the nodes that the job has now:

  eval "$(evosctl env)"

EVO_LOST then lists the nodes that the job lost since the last evosctl next.

With --no-slurm, all SLURM_ variables except SLURM_CONF are unset: for MPI launchers
that start processes themselves; see evosctl launch --help.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			a, err := job.present(cmd)
			if err == nil {
				err = out.print(a)
			}
			if err != nil {
				return out.fail(err, 1, true)
			}
			return nil
		},
	}
	job.add(cmd)
	out.add(cmd)
	cmd.Flags().BoolVar(&out.noSlurm, "no-slurm", false, "unset all of Slurm's variables")
	return cmd
}
