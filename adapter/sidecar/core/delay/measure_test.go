package delay

import (
	"testing"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/plan"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/slurm"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/stock"
	"github.com/evoslurm/evoslurm/planner"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// TestDelaysOfUser: the jobs of one user that wait do not keep the delays of others out of the ledger.
func TestDelaysOfUser(t *testing.T) {
	b := newBench(t, 4)
	book := func(id int, uid uint32) {
		p := slurm.Placed{Stock: true, Start: b.Now.Unix()}
		p.Record, p.Profile = &slurmctl.Job{ID: slurmctl.JobID(id), UID: uid}, planner.Profile{{Duration: 60, Nodes: 1}}
		bookDelay(b.Core, b.Snapshot, &p, 3600)
	}
	b.see()
	for i := range plan.MostHeldUp {
		book(100+i, 999)
	}
	book(2, 10)
	if n := lateOf(b.Core, 999); n != stock.MostOfUser || b.Delays.Late[2] == nil {
		t.Errorf("%d delays of one user are booked, and another's is: %v", n, b.Delays.Late[2] != nil)
	}
}
