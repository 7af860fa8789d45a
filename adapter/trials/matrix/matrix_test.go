package matrix

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/evoslurm/evoslurm/adapter/internal/drivemode"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest/must"
)

// TestMatrix runs every operation on the machine's Slurm.
func TestMatrix(t *testing.T) {
	for _, plugin := range []string{"cons_tres", "linear"} {
		t.Run(plugin, func(t *testing.T) {
			t.Parallel()
			options := slurmtest.Options{Accounting: true, PermitJobExpansion: true, SelectType: plugin}
			accounting := bootsAccounting(t, options)
			options.Accounting = accounting == nil
			cluster := slurmtest.Start(t, options)
			on := func(t *testing.T, drive string) *bench {
				return newBench(t, cluster, plugin, drive)
			}
			m := &manual{bench: on(t, "commands")}
			// Only 20.11 and 22.05 cannot do without it, as what follows then shows.
			m.run(operation{name: "slurmdbd on the release's MariaDB", quirk: true, try: func(context.Context) error { return accounting }})
			m.run(m.byCommands()...)
			t.Run("sidecar", func(t *testing.T) {
				d := &driven{}
				d.bench = on(t, "")
				d.startSidecar()
				for _, drive := range []drivemode.Mode{drivemode.Merge, drivemode.Companion, drivemode.Chain} {
					// each separately: what one mode leaves undone must not affect another
					d.drive, d.broken, d.chain = string(drive), false, nil
					if drive == drivemode.Chain {
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
			s := &manual{bench: newBench(t, alone, plugin, "without slurmdbd")}
			s.run(s.withoutAccounting()...)
			guard, err := guardText()
			must.OK(t, err)
			if os.Getenv(rootVariable) != "" { // 20.11 searches only there
				must.OK(t, errors.Join(os.MkdirAll("/etc/slurm", 0o755), os.WriteFile("/etc/slurm/job_submit.lua", guard, 0o644)))
			}
			guarded := slurmtest.Start(t, slurmtest.Options{Nodes: 4, PermitJobExpansion: true, SelectType: plugin,
				ExtraConf: "JobSubmitPlugins=lua", Files: map[string]string{"job_submit.lua": string(guard)}})
			for _, cluster := range []*slurmtest.Cluster{alone, guarded} {
				g := &manual{bench: newBench(t, cluster, plugin, "job_submit.lua")}
				g.run(g.expanding(cluster == guarded)...)
			}
		})
	}
}

// bootsAccounting tries whether slurmdbd works at all: in Debian's unstable release
// it is at times at odds with MariaDB's library.
func bootsAccounting(t *testing.T, options slurmtest.Options) error {
	ctx, cancel := context.WithTimeout(t.Context(), operationTime)
	defer cancel()
	options.Nodes = 1
	cluster, err := slurmtest.Boot(ctx, options)
	if err == nil {
		return cluster.Stop(ctx)
	}
	why, _, _ := strings.Cut(err.Error(), "\n")
	if _, fatal, ok := strings.Cut(err.Error(), "fatal: "); ok {
		why += ": " + strings.SplitN(fatal, "\n", 2)[0]
	}
	return errors.New(why)
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

// lastLine returns the end of a command's error: what Slurm said.
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
