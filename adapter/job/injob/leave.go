package injob

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// LeaveSignals lists the signals that srun steps may get before their nodes leave.
var LeaveSignals = []string{"HUP", "INT", "QUIT", "TERM", "USR1", "USR2"}

// LeaveSignal reads the name of a signal, with or without SIG.
func LeaveSignal(text string) (string, error) {
	name := strings.TrimPrefix(text, "SIG")
	if !slices.Contains(LeaveSignals, name) {
		return "", fmt.Errorf("--signal=%s: want %s", text, strings.Join(LeaveSignals, ", "))
	}
	return name, nil
}

// leavePause is how often Leave looks.
const leavePause = 500 * time.Millisecond

// Leave signals the srun steps that have tasks on leaving nodes, including the tasks of these steps
// on other nodes, except the caller's own (JOB.STEP). It waits until they have ended, at most until
// the deadline. It leaves all other steps alone, and returns the steps that remain.
func Leave(ctx context.Context, slurm Signaller, has api.Allocation, leaving []string, signal, own string, deadline time.Time) ([]string, error) {
	var jobs []slurmctl.JobID
	for _, p := range has.Parts {
		jobs = append(jobs, slurmctl.JobID(p.Job))
	}
	ctx, cancel := context.WithDeadline(ctx, deadline)
	defer cancel()
	there := func() (ids []string, err error) {
		steps, err := slurm.Steps(ctx, jobs...)
		for _, s := range steps {
			if s.ID != own && slices.ContainsFunc(s.Nodes, func(name string) bool { return slices.Contains(leaving, name) }) {
				ids = append(ids, s.ID)
			}
		}
		return ids, err
	}
	ids, err := there()
	if err != nil || len(ids) == 0 {
		return nil, err
	}
	if err := slurm.SignalSteps(ctx, signal, ids...); err != nil {
		return ids, err
	}
	told := ids
	for {
		select {
		case <-ctx.Done():
			return ids, nil
		case <-time.After(leavePause):
		}
		now, err := there()
		if err != nil {
			if ctx.Err() != nil {
				err = nil
			}
			return ids, err
		}
		ids = slices.DeleteFunc(now, func(id string) bool { return !slices.Contains(told, id) })
		if len(ids) == 0 {
			return nil, nil
		}
	}
}
