package matrix

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/evoslurm/evoslurm/slurmctl"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest/must"
)

// TestExpedite has Slurm requeue jobs at once (sbatch --requeue=expedite, 25.11 and later): one whose epilog failed waits before
// all others, one whose epilogs did not fail is held, and an evolving one whose node fails starts over.
func TestExpedite(t *testing.T) {
	if !slurmtest.Needs(t, "25.11") {
		return
	}
	cluster := slurmtest.Start(t, slurmtest.Options{Nodes: 4, PermitJobExpansion: true,
		ExtraConf: "SlurmctldParameters=enable_expedited_requeue\nEpilog=@DIR@/epilog",
		Files:     map[string]string{"epilog": "#!/bin/sh\n[ ! -e @DIR@/fails ]\n"}})
	d := &driven{}
	d.bench = newBench(t, cluster, "cons_tres", "")
	ctx, cancel := context.WithTimeout(t.Context(), operationTime)
	defer cancel()
	fails := cluster.Dir() + "/fails"
	must.OK(t, os.WriteFile(fails, nil, 0o644))
	blocker := d.stock(ctx, 3, "n[2-4]")
	id, err := d.submit(ctx, "--nodes=1", "--requeue=expedite", "--wrap=sleep 2; exit 3")
	must.OK(t, err)
	must.OK(t, d.shown(ctx, id, "EXPEDITING", math.MaxUint32))
	must.OK(t, errors.Join(os.Remove(fails), d.node(ctx, "n1", "RESUME")))
	must.OK(t, d.shown(ctx, id, "REQUEUE_HOLD", 0)) // it has run again
	must.OK(t, d.slurm.Cancel(ctx, id, blocker))

	d.startSidecar()
	d.base, err = d.park(ctx, "", "1@60s,3@60s", "exec sleep 3600", nil, "--requeue=expedite")
	must.OK(t, err)
	must.OK(t, d.inStep(ctx, 1, 1))
	must.OK(t, d.next(ctx, 1, 3))
	j, err := d.job(ctx, d.base)
	must.OK(t, err)
	must.OK(t, errors.Join(cluster.StopNode(ctx, j.BatchHost), d.node(ctx, j.BatchHost, "DOWN")))
	must.OK(t, d.inStep(ctx, 1, 1))
	must.OK(t, d.next(ctx, 1, 3))
	must.OK(t, d.slurm.Cancel(ctx, d.base)) // on the node that is away, it completes without end
}

// shown waits until squeue shows a waiting job in a state, and sees that it is pending with that priority for the sidecar.
func (d *driven) shown(ctx context.Context, id slurmctl.JobID, state string, priority uint64) error {
	if err := until(ctx, func() error {
		out, err := d.cluster.Run(ctx, d.root(), "squeue", "-h", "-o", "%T", "-j", fmt.Sprint(id))
		if got := strings.TrimSpace(out); err == nil && got != state {
			err = fmt.Errorf("squeue shows it as %s, want %s", got, state)
		}
		return err
	}); err != nil {
		return err
	}
	j, err := d.job(ctx, id)
	if err == nil && (j.State != slurmctl.Pending || j.Priority != priority) {
		err = fmt.Errorf("%s: the sidecar sees it as %s, with priority %d", state, j.State, j.Priority)
	}
	return err
}

// node changes a node's state.
func (d *driven) node(ctx context.Context, name, state string) error {
	_, err := d.cluster.Run(ctx, d.root(), "scontrol", "update", "NodeName="+name, "State="+state, "Reason=trial")
	return err
}
