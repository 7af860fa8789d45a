package matrix

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/internal/drivemode"
	"github.com/evoslurm/evoslurm/slurmctl"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest/must"
)

// blocksConf has three blocks; n13 and n14 are outside of all.
const blocksConf = `BlockName=b1 Nodes=n[1-4]
BlockName=b2 Nodes=n[5-8]
BlockName=b3 Nodes=n[9-12]
BlockSizes=4,8
`

// blockOf returns the block of a node in blocksConf, from 0; 3: none.
func blockOf(node string) int {
	n := 0
	_, _ = fmt.Sscanf(node, "n%d", &n)
	return min((n-1)/4, 3)
}

// TestMatrixBlocks runs evolving jobs on topology/block, which releases before 24.11 have not as it is now.
func TestMatrixBlocks(t *testing.T) {
	if !slurmtest.Needs(t, "24.11") {
		return
	}
	for _, drive := range []drivemode.Mode{drivemode.Merge, drivemode.Companion} {
		t.Run(string(drive), func(t *testing.T) { onBlocks(t, drive) })
	}
}

// onBlocks starts and grows a job.
func onBlocks(t *testing.T, drive drivemode.Mode) {
	cluster := slurmtest.Start(t, slurmtest.Options{Nodes: 14, Accounting: true, PermitJobExpansion: true, ExtraConf: "TopologyPlugin=topology/block",
		Files: map[string]string{"topology.conf": blocksConf}})
	d := &driven{}
	d.bench = newBench(t, cluster, "blocks", string(drive))
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	if got, err := d.slurm.Topology(ctx); err != nil || len(got.Switches) != 3 || got.BlockSize != 4 || !slices.Equal(got.Levels, []int{2, 4}) && !slices.Equal(got.Levels, []int{2}) {
		t.Fatalf("%+v, %v", got, err)
	}
	d.stock(ctx, 2, "n[1-2]")
	d.stock(ctx, 2, "n[5-6]")
	refused := d.stock(ctx, 5, "") // 2, 2, and 4 nodes are free, and those of the first two blocks are not enough
	time.Sleep(2 * time.Second)
	if j, err := d.job(ctx, refused); err != nil || j.State != slurmctl.Pending {
		t.Errorf("%+v, %v", j, err)
	}
	must.OK(t, d.slurm.Cancel(ctx, refused))
	d.startSidecar()
	var err error
	d.base, err = d.park(ctx, drive, "3@10m,8@5m", "exec sleep 3600", nil)
	must.OK(t, err)
	must.OK(t, d.inStep(ctx, 1, 3))
	if on := d.blocks(ctx); on[2] != 3 {
		t.Errorf("it starts on %v", on)
	}
	must.OK(t, d.next(ctx, 1, 8)) // n[3-4], n[7-8], and n[9-12]
	if on := d.blocks(ctx); on[0] != 2 || on[1] != 2 || on[2] != 4 {
		t.Errorf("it grows to %v", on)
	}
}

// stock submits a stock job, on some nodes that it then has.
func (d *driven) stock(ctx context.Context, nodes int, on string) slurmctl.JobID {
	d.t.Helper()
	args := []string{fmt.Sprintf("--nodes=%d", nodes), "--time=20"}
	if on != "" {
		args = append(args, "--nodelist="+on)
	}
	id, err := d.submit(ctx, args...)
	if err == nil && on != "" {
		err = d.is(ctx, id, nodes)
	}
	if err != nil {
		d.t.Fatal(err)
	}
	return id
}

// blocks counts the job's nodes by block.
func (d *driven) blocks(ctx context.Context) map[int]int {
	d.t.Helper()
	a, err := d.sidecar.Allocation(ctx, uint32(d.base))
	if err != nil {
		d.t.Fatal(err)
	}
	count := map[int]int{}
	for _, p := range a.Parts {
		for _, n := range p.NodeList {
			count[blockOf(strings.TrimSpace(n))]++
		}
	}
	return count
}
