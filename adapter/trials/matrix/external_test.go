package matrix

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/slurmctl"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest/must"
)

// TestExternal submits jobs without processes (sbatch --external, 26.05): squeue shows them as any running job, also on a node of
// another system, with their nodes until their time limit.
func TestExternal(t *testing.T) {
	if !slurmtest.Needs(t, "26.05") {
		return
	}
	cluster := slurmtest.Start(t, slurmtest.Options{Nodes: 2, ExtraConf: "MaxNodeCount=4",
		Partitions: []slurmtest.Partition{{Name: "main", Nodes: "ALL", Default: true}}})
	d := &driven{}
	d.bench = newBench(t, cluster, "cons_tres", "")
	ctx, cancel := context.WithTimeout(t.Context(), operationTime)
	defer cancel()
	_, err := cluster.Run(ctx, d.root(), "scontrol", "create", "NodeName=x1", "State=EXTERNAL", "CPUs=4")
	must.OK(t, err)
	for _, node := range []string{"n1", "x1"} {
		out, err := cluster.Run(ctx, cluster.Users()[0], "sbatch", "--parsable", "--external", "--chdir=/", "--time=7", "--mem=1", "--nodelist="+node)
		must.OK(t, err)
		var id slurmctl.JobID
		_, err = fmt.Sscan(out, &id)
		must.OK(t, err)
		must.OK(t, d.is(ctx, id, 1))
		j, err := d.job(ctx, id)
		if err != nil || j.Name != "external" || j.NodeList[0] != node || j.TimeLimit != 7*time.Minute || j.EndTime.Sub(j.StartTime) != 7*time.Minute {
			t.Errorf("%+v, %v", j, err)
		}
		must.OK(t, d.slurm.Cancel(ctx, id))
	}
}
