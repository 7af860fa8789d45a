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

// submitted finds the expander that a process of the job was asked to submit, by its user and name. Of several, the
// oldest counts; the core ends the others.
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
	return k, g.asAsked(ctx, &k)
}

// mayBeIn reports whether a list of reservations is the one that was asked for. Slurm may show only the one of them in which a job runs.
func (g *growth) mayBeIn(list string) bool {
	return list == msg.Both(g.Hold, g.Inside) || list == g.Hold
}

// asAsked cancels a job that a process of the job submitted if it is another one than was asked for. What is merged gets
// the base job's time limit.
func (g *growth) asAsked(ctx context.Context, k *slurmctl.Job) error {
	q := g.Request
	if g.Merge {
		q.TimeLimit = 0
	}
	why := msg.Unlike(k, &q, g.Moved)
	switch {
	case !g.mayBeIn(k.Reservation) || len(k.NodeList) > 0 && !msg.SameSet(k.NodeList, g.Nodes):
		why = fmt.Sprintf("it has %s from reservation %q, not %s from %q", slurmctl.CompressNodes(k.NodeList), k.Reservation, slurmctl.CompressNodes(g.Nodes), msg.Both(g.Hold, g.Inside))
	case why == "":
		return nil
	}
	err := g.Slurm.Cancel(ctx, k.ID)
	g.Grown.Expanders = nil
	return errors.Join(fmt.Errorf("job %d, which the job's own process submitted, is not the one that was asked for, and is cancelled: %s", k.ID, why), err)
}
