package drive

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// failing is a Slurm with a running job, whose slurmdbd may be away.
type failing struct {
	Slurm
	dbd    error
	merged []slurmctl.JobID
}

func (f *failing) Slurmdbd(context.Context) error { return f.dbd }

func (f *failing) Glance(context.Context, ...slurmctl.JobID) ([]slurmctl.Job, error) {
	return []slurmctl.Job{{ID: 7, State: slurmctl.Running, NodeList: []string{"n1", "n2"}}}, nil
}

func (f *failing) Merge(_ context.Context, k slurmctl.JobID) error {
	f.merged = append(f.merged, k)
	return nil
}

// TestOutageBeforeMerge checks that no expander is merged on an old answer of slurmdbd: it may be away since.
func TestOutageBeforeMerge(t *testing.T) {
	for name, c := range map[string]struct {
		later  time.Duration
		dbd    error
		merges int
	}{
		"at once":                    {0, nil, 1},
		"at once, on its word":       {0, slurmctl.ErrNoSlurmdbd, 1},
		"the expander took a while":  {3 * time.Second, nil, 1},
		"and slurmdbd is away since": {3 * time.Second, slurmctl.ErrNoSlurmdbd, 0},
	} {
		t.Run(name, func(t *testing.T) {
			now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
			slurm := &failing{}
			g := &growth{Driver: New(slurm, func() time.Time { return now }), Grow: msg.Grow{Base: 7, NeedsDBD: true, Nodes: []string{"n2"}}}
			g.Grown.Expanders = []slurmctl.JobID{9}
			g.askDBD(t.Context())
			now, slurm.dbd = now.Add(c.later), c.dbd
			err := g.merge(t.Context())
			if len(slurm.merged) != c.merges || (err == nil) != (c.merges == 1) || err != nil && !errors.Is(err, slurmctl.ErrNoSlurmdbd) {
				t.Errorf("merged %v, %v", slurm.merged, err)
			}
		})
	}
}
