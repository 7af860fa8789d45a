package controller_test

import (
	"testing"

	"github.com/evoslurm/evoslurm/adapter/internal/drivemode"
	"github.com/evoslurm/evoslurm/adapter/job/request"
	"github.com/evoslurm/evoslurm/slurmctl"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest"
)

// TestRacks checks that a job with alternatives in brackets starts where its growths fit too, and grows there by
// every drive mode, although nodes of the other alternative are free, too.
func TestRacks(t *testing.T) {
	t.Parallel()
	l := newLab(t, slurmtest.Options{Accounting: true, PermitJobExpansion: true,
		NodeExtra: map[string]string{"n[1-4]": "Feature=rack1,all", "n[5-8]": "Feature=rack2,all"}})
	for _, c := range []struct {
		drive      drivemode.Mode
		constraint string
	}{
		{drivemode.Merge, "[rack1|rack2]"}, {drivemode.Merge, "all&[rack1|rack2]"},
		{drivemode.Companion, "[rack1|rack2]&(rack1|rack2)"}, {drivemode.Chain, "[rack1|rack2]"},
	} {
		l.run(string(c.drive)+" "+c.constraint, func(l *lab) {
			busy := l.sbatch(1, "--exclusive", "--nodelist=n2,n3")
			l.onNodes(busy, 2)
			ids, nodes := []uint32{0}, []string(nil)
			if c.drive == drivemode.Chain {
				ids = l.submitChain("1@5s,4@20s", "--constraint="+c.constraint, "sleep 1", "sleep 60")
				l.running(ids[0], 2)
				nodes = l.nodesOf(ids[1])
			} else {
				ids[0] = l.submitSpec(request.Request{Drive: c.drive}, "1@5s,4@5s", "--constraint="+c.constraint)
				l.running(ids[0], 1)
				a := l.next(ids[0], 1)
				l.has(a, 4)
				for _, p := range a.Parts {
					nodes = append(nodes, p.NodeList...)
				}
			}
			if got := slurmctl.CompressNodes(nodes); got != "n[5-8]" {
				l.t.Errorf("it grew onto %s, want n[5-8]", got)
			}
			l.cancelStock(1, busy)
			for _, id := range ids {
				l.cancel(id)
			}
			l.ended(ids[0])
		})
	}
}
