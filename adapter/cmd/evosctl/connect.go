package main

import (
	"context"
	"errors"
	"fmt"
	"os"
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

// jobFlag is --job, for the commands that are about one job.
type jobFlag struct{ name string }

func (f *jobFlag) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.name, "job", "", "ID of the evolving job, or ARRAY_TASK (not needed inside the job)")
}

// connect returns a client and the job that the command is about.
func (f *jobFlag) connect(cmd *cobra.Command) (*api.Client, uint32, error) {
	var name api.JobName
	var err error
	if cmd.Flags().Changed("job") {
		name, err = api.ParseJobName(f.name)
	} else {
		name.ID, err = injob.JobID("", os.Getenv)
	}
	if err != nil {
		return nil, 0, err
	}
	client, err := connect(cmd)
	if err != nil {
		return nil, 0, err
	}
	job, err := client.Find(cmd.Context(), name)
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
