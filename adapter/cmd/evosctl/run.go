package main

import (
	"github.com/spf13/cobra"

	"github.com/evoslurm/evoslurm/adapter/job/injob"
)

func newRun(version string) *cobra.Command {
	return &cobra.Command{
		Use:                "run [srun options] -- command [arguments]",
		Short:              "Run a command on all current nodes of the job (as evosrun)",
		Long:               injob.RunHelp,
		DisableFlagParsing: true, // they are srun's
		RunE: func(_ *cobra.Command, args []string) error {
			if status := injob.Main("evosctl run", version, args); status != 0 {
				return exitStatus(status)
			}
			return nil
		},
	}
}
