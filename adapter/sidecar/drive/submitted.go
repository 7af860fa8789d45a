package drive

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// submitted finds the expander that a process of the job was asked to submit, by its user and name. If it is another
// one than was asked for, it is cancelled. Of several, the oldest counts; the core ends the others.
func (g *growth) submitted(ctx context.Context) (slurmctl.Job, error) {
	all, err := g.Slurm.Named(ctx, g.As, g.Name)
	if err != nil {
		return slurmctl.Job{}, err
	}
	all = slices.DeleteFunc(all, func(k slurmctl.Job) bool { return k.Ended() || k.State == slurmctl.Completing })
	if len(all) == 0 {
		if g.Refusal == "" {
			return slurmctl.Job{}, errors.New("the job's own process did not submit the job that brings the nodes")
		}
		refused := &slurmctl.CommandError{Args: []string{"salloc"}, ExitCode: 1, Stderr: "as the job's own process reports: " + g.Refusal}
		if reason, pending := strings.CutPrefix(g.Refusal, api.PendingRefusal); pending {
			return slurmctl.Job{}, &slurmctl.PendingError{Reason: reason, Err: refused}
		}
		for _, outage := range []error{slurmctl.ErrUnreachable, slurmctl.ErrNoSlurmdbd, slurmctl.ErrDBIndex} {
			if errors.Is(refused, outage) { // slurmctld has just answered, and an outage is waited for without end
				return slurmctl.Job{}, errors.New(refused.Error())
			}
		}
		return slurmctl.Job{}, refused
	}
	k := slices.MinFunc(all, func(a, b slurmctl.Job) int { return int(a.ID) - int(b.ID) })
	if k.Reservation != g.Hold || len(k.NodeList) > 0 && !msg.SameSet(k.NodeList, g.Nodes) {
		err := g.Slurm.Cancel(ctx, k.ID)
		return slurmctl.Job{}, errors.Join(fmt.Errorf("job %d, which was to bring %s from reservation %q, has %s from reservation %q",
			k.ID, slurmctl.CompressNodes(g.Nodes), g.Hold, slurmctl.CompressNodes(k.NodeList), k.Reservation), err)
	}
	return k, nil
}
