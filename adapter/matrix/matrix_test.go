package matrix

import (
	"context"
	"strings"
	"testing"

	"github.com/evoslurm/evoslurm/adapter/spec"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest"
)

// TestMatrix runs every operation on the machine's Slurm.
func TestMatrix(t *testing.T) {
	for _, plugin := range []string{"cons_tres", "linear"} {
		t.Run(plugin, func(t *testing.T) {
			t.Parallel()
			cluster := slurmtest.Start(t, slurmtest.Options{Accounting: true, PermitJobExpansion: true, SelectType: plugin})
			on := func(t *testing.T, drive string) *bench {
				return &bench{t: t, cluster: cluster, slurm: cluster.Client(), plugin: plugin, drive: drive}
			}
			m := &manual{bench: on(t, "commands")}
			m.run(m.byCommands()...)
			t.Run("sidecar", func(t *testing.T) {
				d := &driven{}
				d.bench = on(t, "")
				d.startSidecar()
				for _, drive := range []spec.Drive{spec.Merge, spec.Companion, spec.Chain} {
					// each on its own: what one leaves undone is no reason against another
					d.drive, d.broken, d.chain = string(drive), false, nil
					if drive == spec.Chain {
						d.run(d.byChaining()...)
					} else {
						d.run(d.byMerging(drive)...)
					}
					if d.broken {
						d.sweep(t)
					}
				}
			})
			alone := slurmtest.Start(t, slurmtest.Options{PermitJobExpansion: true, SelectType: plugin})
			s := &manual{bench: &bench{t: t, cluster: alone, slurm: alone.Client(), plugin: plugin, drive: "without slurmdbd"}}
			s.run(s.withoutAccounting()...)
		})
	}
}

// sweep cancels what a broken sequence has left, for the next one.
func (b *bench) sweep(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), operationTime)
	defer cancel()
	if _, err := b.cluster.Run(ctx, b.root(), "scancel", "--user="+b.cluster.Users()[0].Name); err != nil {
		t.Error(err)
	}
	if err := b.clean(ctx); err != nil {
		t.Log(err)
	}
}

func (b *bench) root() slurmtest.User { return slurmtest.Root }

// lastLine is the end of a command's error: what Slurm said.
func lastLine(err error) string {
	lines := strings.Split(strings.TrimSpace(err.Error()), "\n")
	return lines[len(lines)-1]
}

// withoutAccounting tells what resizing is without slurmdbd.
func (m *manual) withoutAccounting() []operation {
	return []operation{
		{name: "shrink", try: func(ctx context.Context) (err error) {
			if m.base, err = m.submit(ctx, "--nodes=6"); err != nil {
				return err
			}
			if err := m.is(ctx, m.base, 6); err != nil {
				return err
			}
			return m.shrink(ctx, 4)
		}},
		{name: "shrink again", quirk: true, try: func(ctx context.Context) error { return m.shrink(ctx, 2) }},
		{name: "merge", try: func(ctx context.Context) (err error) {
			if err := m.cancel(ctx, m.base); err != nil {
				return err
			}
			if m.base, err = m.submit(ctx, "--nodes=2"); err != nil {
				return err
			}
			if err := m.is(ctx, m.base, 2); err != nil {
				return err
			}
			return m.mergeAgain(ctx)
		}},
		{name: "shrink after a merge", quirk: true, try: func(ctx context.Context) error { return m.shrink(ctx, 2) }},
		{name: "cancel leaves nothing", try: func(ctx context.Context) error { return m.cancel(ctx, m.base) }},
	}
}
