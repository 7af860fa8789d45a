package main

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/evoslurm/evoslurm/adapter/job/injob"
)

const launchHelp = `Start a command on a node of the job, as ssh would. MPI launchers and GNU parallel
need it to reach the nodes of all Slurm jobs of an evolving job (drive mode companion).
If a launcher passes no arguments to its agent, use evolaunch, a link to evosctl.

  eval "$(evosctl env --no-slurm)"       # in a subshell, if srun is used later

MPICH (Hydra):
  evosctl hostfile --format=mpich -o hosts
  mpiexec -launcher ssh -launcher-exec "$(command -v evolaunch)" -f hosts ./a.out

Open MPI:
  evosctl hostfile --format=openmpi -o hosts
  mpiexec --mca plm rsh --mca plm_rsh_agent "$(command -v evolaunch)" --hostfile hosts ./a.out

GNU parallel, which reads the file again when it changes:
  parallel --ssh evolaunch --sshloginfile hosts -j 2 ./task ::: 1 2 3`

func newLaunch() *cobra.Command {
	return &cobra.Command{
		Use:                "launch [options] HOST COMMAND…",
		Short:              "Start a command on one node, for MPI launchers",
		Long:               launchHelp,
		DisableFlagParsing: true, // they are ssh's
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 || slices.Contains([]string{"-h", "--help"}, args[0]) {
				return cmd.Help()
			}
			if args[0] == "--usage" {
				_, err := fmt.Fprintln(cmd.OutOrStdout(), "Usage: evolaunch [ssh options] HOST COMMAND")
				return err
			}
			id, err := injob.JobID(os.Getenv(injob.VarJob), os.Getenv)
			if err != nil {
				return err
			}
			client, err := injob.Connect(nil, "evosctl launch", os.Stderr)
			if err != nil {
				return err
			}
			ctx, stop := untilSignal(cmd.Context())
			defer stop()
			a, err := injob.Present(ctx, client, id)
			if err != nil {
				return err
			}
			argv, env, err := injob.Launch(a, args, os.Environ())
			if err != nil {
				return err
			}
			srun, err := exec.LookPath(argv[0])
			if err != nil {
				return err
			}
			return fmt.Errorf("%s: %w", srun, syscall.Exec(srun, argv, env))
		},
	}
}
