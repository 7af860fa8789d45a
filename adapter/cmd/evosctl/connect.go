package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/job/injob"
)

// connect returns a client of the configured sidecar.
func connect(cmd *cobra.Command) (*api.Client, error) {
	return injob.Connect(cmd.Flags(), "evosctl", os.Stderr)
}

// sidecarRemedy is the remedy if a sidecar does not answer.
const sidecarRemedy = "start evoslurmd; check api in the configuration, and listen.tcp in the sidecar's"

// sidecarPatience is how long a command that only looks waits for the sidecar.
const sidecarPatience = time.Minute

// atOnce queries a sidecar for a user who only looks: if there is none, it fails at once; if it
// exists but cannot answer yet, it waits.
func atOnce[T any](ctx context.Context, client *api.Client, question func(context.Context) (T, error)) (T, error) {
	ctx, cancel := context.WithTimeout(ctx, sidecarPatience)
	defer cancel()
	waiting, away := client.Waiting, false
	defer func() { client.Waiting = waiting }()
	client.Waiting = func(address string, err error) {
		if errors.Is(err, api.ErrUnavailable) {
			waiting(address, err)
			return
		}
		away = true
		cancel()
	}
	answer, err := question(ctx)
	if away {
		err = fmt.Errorf("%w; %s", err, sidecarRemedy)
	}
	return answer, err
}

// parseJob reads a job's ID.
func parseJob(text string) (uint32, error) {
	id, err := strconv.ParseUint(text, 10, 32)
	if err != nil || id == 0 {
		return 0, fmt.Errorf("invalid job ID %q", text)
	}
	return uint32(id), nil
}

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
	client, err := connect(cmd)
	if err == nil {
		injob.EndIfLetGo(client, job)
	}
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
