package drive

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// failing is a Slurm with one job and its expanders, whose slurmdbd goes away.
type failing struct {
	Slurm
	state     slurmctl.JobState
	merges    int // before slurmdbd goes away
	merged    []slurmctl.JobID
	cancelled []slurmctl.JobID
}

func (f *failing) Slurmdbd(context.Context) error {
	if len(f.merged) == f.merges {
		return slurmctl.ErrNoSlurmdbd
	}
	return nil
}

func (f *failing) Glance(context.Context, ...slurmctl.JobID) ([]slurmctl.Job, error) {
	return []slurmctl.Job{{ID: 7, State: f.state, NodeList: []string{"n1", "n2", "n3"}}}, nil
}

func (f *failing) Merge(_ context.Context, k slurmctl.JobID) error {
	f.merged = append(f.merged, k)
	return nil
}

func (f *failing) CancelAs(_ context.Context, _ *slurmctl.User, ids ...slurmctl.JobID) error {
	f.cancelled = append(f.cancelled, ids...)
	return nil
}

// TestOutageBeforeMerge checks that no expander is merged without an answer of slurmdbd to a
// question after the last merge, and that expanders of an ended job go back even then.
func TestOutageBeforeMerge(t *testing.T) {
	for name, c := range map[string]struct {
		slurm     failing
		needs     bool
		merged    []slurmctl.JobID
		left      []slurmctl.JobID
		cancelled []slurmctl.JobID
	}{
		"slurmdbd answers":           {slurm: failing{state: slurmctl.Running, merges: 9}, needs: true, merged: []slurmctl.JobID{8, 9}},
		"slurmdbd is away":           {slurm: failing{state: slurmctl.Running}, needs: true, left: []slurmctl.JobID{8, 9}},
		"it goes after the first":    {slurm: failing{state: slurmctl.Running, merges: 1}, needs: true, merged: []slurmctl.JobID{8}, left: []slurmctl.JobID{9}},
		"nothing needs it":           {slurm: failing{state: slurmctl.Running}, merged: []slurmctl.JobID{8, 9}},
		"the job ended":              {slurm: failing{state: slurmctl.Completed, merges: 9}, needs: true, cancelled: []slurmctl.JobID{8, 9}},
		"it is away, the job ended":  {slurm: failing{state: slurmctl.Completed}, needs: true, cancelled: []slurmctl.JobID{8, 9}},
		"away, the job is suspended": {slurm: failing{state: slurmctl.Suspended}, needs: true, left: []slurmctl.JobID{8, 9}},
	} {
		t.Run(name, func(t *testing.T) {
			f := &c.slurm
			g := &growth{Driver: New(f, time.Now), Grow: msg.Grow{Base: 7, NeedsDBD: c.needs, Nodes: []string{"n2", "n3"}}}
			g.Grown.Expanders = []slurmctl.JobID{8, 9}
			err := g.merge(t.Context())
			if !slices.Equal(f.merged, c.merged) || !slices.Equal(g.Grown.Expanders, c.left) || !slices.Equal(f.cancelled, c.cancelled) {
				t.Errorf("merged %v, left %v, cancelled %v", f.merged, g.Grown.Expanders, f.cancelled)
			}
			if (err == nil) != (len(c.merged) == 2) || errors.Is(err, slurmctl.ErrNoSlurmdbd) != (f.state == slurmctl.Running && len(c.left) > 0) {
				t.Error(err)
			}
		})
	}
}
