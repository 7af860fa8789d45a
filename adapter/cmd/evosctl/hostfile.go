package main

import (
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/evoslurm/evoslurm/adapter/internal/wholefile"
	"github.com/evoslurm/evoslurm/adapter/job/injob"
)

func newHostfile() *cobra.Command {
	var job jobFlag
	var component, format, file string
	var slots int
	cmd := &cobra.Command{
		Use:   "hostfile",
		Short: "Write the current nodes of the job as an MPI host file",
		Long: `Write all current nodes of the job, one per line: plain (n1), mpich (n1:4) or
openmpi (n1 slots=4). The slots are --slots, else the tasks that Slurm would place
there: --ntasks-per-node, else the CPUs divided by --cpus-per-task.

  evosctl hostfile --format=mpich -o hosts
  mpiexec -f hosts ./a.out

With --component=NAME, only the nodes of that component (evosbatch --component).

In drive mode companion the launcher needs help to reach all nodes: see evosctl
launch --help.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			a, err := job.present(cmd)
			if err != nil {
				return err
			}
			text, err := injob.Hostfile(a, component, format, slots, os.Getenv)
			if err != nil {
				return err
			}
			if file == "" || file == "-" {
				_, err = os.Stdout.WriteString(text)
				return err
			}
			return wholefile.Write(file, 0o666, func(w io.Writer) error {
				_, err := io.WriteString(w, text)
				return err
			})
		},
	}
	job.add(cmd)
	cmd.Flags().StringVar(&component, "component", "", "component of a job of coupled codes (default: all nodes)")
	cmd.Flags().StringVar(&format, "format", "plain", "format: plain, mpich, or openmpi")
	cmd.Flags().StringVarP(&file, "output", "o", "", "file to write (default standard output)")
	cmd.Flags().IntVar(&slots, "slots", 0, "slots per node (default: the tasks that Slurm would place there)")
	return cmd
}
