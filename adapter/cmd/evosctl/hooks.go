package main

import (
	"context"
	"errors"
	"os"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/job/injob"
	"github.com/evoslurm/evoslurm/adapter/job/request"
)

// hooksHere returns the hooks that the job was submitted with; their output must not mix with what
// the shell evaluates.
func hooksHere() injob.Hooks {
	return injob.Hooks{Hooks: request.HooksOf(os.Getenv), Environ: os.Environ(), Output: os.Stderr}
}

// unwatched reports whether no hook and no evosrun --follow is to learn of a job's changes.
func unwatched(client *api.Client, job uint32) bool {
	return len(hooksHere().Variables()) == 0 && !injob.Followed(client.Address(), job)
}

// hooksFor returns these hooks for the end of the step in which the job has a, or for an offer.
func hooksFor(ctx context.Context, client *api.Client, a api.Allocation, offer int64) injob.Hooks {
	return hooksHere().For(ctx, client, client.Address(), a, offer)
}

// hookFailed reports a failed hook. The job continues: others wait for the leaving nodes, and
// arriving nodes are there.
func hookFailed(err error) {
	if err != nil {
		say("%v", err)
		hookErrors = append(hookErrors, err)
	}
}

var hookErrors []error

// errDraining means that the step's end came before draining was done.
var errDraining = errors.New("evosrun --follow was still draining nodes: the step has not ended")
