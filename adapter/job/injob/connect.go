package injob

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/pflag"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/api/reach"
	"github.com/evoslurm/evoslurm/adapter/internal/config"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// Connect makes a client of the configured sidecar. program is the caller's name in the line on
// stderr that reports once that the command waits for the sidecar.
func Connect(flags *pflag.FlagSet, program string, stderr io.Writer) (*api.Client, error) {
	c, _, err := config.Load(flags)
	if err != nil {
		return nil, err
	}
	client, err := reach.Client(c)
	if err != nil {
		return nil, err
	}
	client.Submit = Submitter(&slurmctl.Client{Dir: c.Slurm.Bin})
	client.Waiting = func(address string, err error) {
		if errors.Is(err, api.ErrUnavailable) { // it has answered
			fmt.Fprintf(stderr, "%s: waiting: %v\n", program, err)
			return
		}
		fmt.Fprintf(stderr, "%s: waiting for the sidecar at %s: %v\n", program, address, err)
	}
	return client, nil
}

// How often the sidecar is asked whether it has seen the job start.
const startPause = 250 * time.Millisecond

// Present returns what the job has now. A script may run before the sidecar's next poll of Slurm
// has seen the job start; Present waits for that.
func Present(ctx context.Context, client *api.Client, job uint32) (api.Allocation, error) {
	if a, rigid := Rigid(job, os.Getenv); rigid {
		return a, nil
	}
	EndIfLetGo(client, job)
	for {
		a, err := client.Allocation(ctx, job)
		a, err = OrLetGo(ctx, job, 0, a, err)
		if err != nil || a.Done || a.Step >= 1 && len(a.Parts) > 0 {
			return a, err
		}
		select {
		case <-time.After(startPause):
		case <-ctx.Done():
			return a, fmt.Errorf("job %d has not started, as far as the sidecar knows: %w", job, ctx.Err())
		}
	}
}
