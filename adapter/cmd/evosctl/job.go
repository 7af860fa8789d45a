package main

import (
	"fmt"
	"os"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/job/injob"
)

// jobFlag is --job, for the commands that are about one job.
type jobFlag struct{ id uint32 }

func (f *jobFlag) add(cmd *cobra.Command) {
	cmd.Flags().Uint32Var(&f.id, "job", 0, "ID of the evolving job (not needed inside the job)")
}

// connect returns a client and the job that the command is about.
func (f *jobFlag) connect(cmd *cobra.Command) (*api.Client, uint32, error) {
	given := ""
	if cmd.Flags().Changed("job") {
		given = strconv.FormatUint(uint64(f.id), 10)
	}
	job, err := injob.JobID(given, os.Getenv)
	if err != nil {
		return nil, 0, err
	}
	client, err := injob.Connect(cmd.Flags(), "evosctl", os.Stderr)
	return client, job, err
}

// present returns what the job has now.
func (f *jobFlag) present(cmd *cobra.Command) (api.Allocation, error) {
	client, job, err := f.connect(cmd)
	if err != nil {
		return api.Allocation{}, err
	}
	ctx, stop := untilSignal(cmd.Context())
	defer stop()
	return injob.Present(ctx, client, job)
}

// say prints a message for the user that the shell does not evaluate.
func say(format string, args ...any) { fmt.Fprintf(os.Stderr, "evosctl: "+format+"\n", args...) }
