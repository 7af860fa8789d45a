package core

import (
	"fmt"
	rand "math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/internal/config"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/adopt"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state/statetest"
	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
	"github.com/evoslurm/evoslurm/planner"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// BenchmarkCycle measures a whole cycle of a large site (statetest.LargeSite), from the poll to the decisions that follow
// from the plan, without Slurm and the database. In still, nothing happens; in end, one stock job has ended early, or
// is back; in late, jobs have not started on time, so everything is planned again (see alter for near and wide). Figures are processor time: cpu-ms/op, and its parts see, plan, and decide; first-ms is the
// first cycle, which plans everything.
func BenchmarkCycle(b *testing.B) {
	for _, name := range []string{"still", "end", "near still", "near end", "wide still", "wide end", "wide near still", "wide near end", "wide late", "wide tasks end"} {
		b.Run(name, func(b *testing.B) {
			now := time.Now().Truncate(time.Second)
			c, o, profiles := largeSite(now)
			alter(name, c, &o)
			var marks []msg.Mark
			var see, plan, decide time.Duration
			cycle := func(i int) {
				b.StopTimer()
				now = now.Add(time.Second)
				in := o
				in.Begun, in.Jobs, in.Nodes = now, slices.Clone(o.Jobs), slices.Clone(o.Nodes)
				if i > 0 {
					in.Config = nil
				}
				if strings.Contains(name, "end") && i%2 == 1 {
					in.Jobs[0].State = slurmctl.Completing
				}
				b.StartTimer()
				at := processorTime()
				lap := func(d *time.Duration) { now := processorTime(); *d, at = *d+now-at, now }
				in.Marks = msg.ReadMarks(in.Jobs, marks)
				marks = in.Marks
				effects := step(c, now, in)
				lap(&see)
				for _, e := range effects {
					if p, ok := e.(msg.Plan); ok {
						result := p.Problem.Plan(statetest.NoX())
						lap(&plan)
						step(c, now, result)
						lap(&decide)
					}
				}
				c.Pace.Polling = false
			}
			cycle(0)
			first := see + plan + decide
			for i := range 3 {
				cycle(i + 1)
			}
			see, plan, decide = 0, 0, 0
			n := 0
			for ; b.Loop(); n++ {
				cycle(n + 4)
			}
			ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 / float64(n) }
			b.ReportMetric(float64(first.Milliseconds()), "first-ms")
			b.ReportMetric(ms(see), "see-ms")
			b.ReportMetric(ms(plan), "plan-ms")
			b.ReportMetric(ms(decide), "decide-ms")
			b.ReportMetric(ms(see+plan+decide), "cpu-ms/op")
			if c.Snapshot == nil || len(c.Active) != len(profiles) {
				b.Fatal("nothing is planned")
			}
		})
	}
}

// largeSite returns a core that has adopted the evolving jobs of statetest.LargeSite.
func largeSite(now time.Time) (*state.Core, msg.Observation, []planner.Profile) {
	o, profiles := statetest.LargeSite(now)
	c := statetest.NewCore(config.Default(), now)
	for i, p := range profiles {
		record := o.Jobs[len(o.Jobs)-len(profiles)+i]
		values := &row.Job{Owned: row.Owned{ID: int64(record.ID), SlurmID: uint32(record.ID), User: record.User, UID: record.UID, Submitted: now}, Terms: row.Terms{Drive: "merge", Profile: p}, Life: row.Life{State: row.Queued}}
		adopt.Add(c, &state.Job{Job: values, Sight: state.Sight{Record: record}, Adopted: state.Adopted{Asked: &slurmctl.JobRequest{}}})
	}
	return c, o, profiles
}

// alter puts each 25 nodes on a switch, and changes the site as the words of a name say: wide puts all into one partition, and
// near has 32 jobs prefer few switches; with tasks, the waiting stock jobs are one array's, listed in any order. Unless jobs are late, stock jobs have all nodes, so that nobody can start yet.
func alter(name string, c *state.Core, o *msg.Observation) {
	o.Topology = slurmctl.Topology{Switches: []slurmctl.Switch{{Name: "top", Above: -1}}}
	all := slurmctl.Partition{Name: "all", Up: true, Default: true, MaxTime: slurmctl.Unlimited}
	for i, n := range o.Nodes {
		if i%25 == 0 {
			o.Topology.Switches = append(o.Topology.Switches, slurmctl.Switch{Name: fmt.Sprint("leaf", i)})
		}
		leaf := &o.Topology.Switches[len(o.Topology.Switches)-1]
		leaf.Nodes = append(leaf.Nodes, n.Name)
		all.Nodes = append(all.Nodes, n.Name)
	}
	if strings.Contains(name, "near") {
		for _, j := range c.Active[:32] {
			j.Aim = planner.AimNear
		}
	}
	if !strings.Contains(name, "late") {
		running := 0
		for i := range o.Nodes {
			if n := &o.Nodes[i]; n.CPUsAlloc == 0 {
				n.State, n.CPUsAlloc = "allocated", n.CPUs
				o.Jobs[running].NodeList = append(slices.Clip(o.Jobs[running].NodeList), n.Name)
				o.Jobs[running].NumNodes++
				running++
			}
		}
	}
	if strings.Contains(name, "tasks") {
		waiting := o.Jobs[len(o.Jobs)-len(c.Active)-100_000 : len(o.Jobs)-len(c.Active)]
		for i := range waiting {
			waiting[i].ArrayJobID, waiting[i].Display, waiting[i].Priority, waiting[i].UID = waiting[0].ID, fmt.Sprintf("%d_%d", waiting[0].ID, i), 1_000_000, 1000
		}
		rand.New(rand.NewPCG(1, 2)).Shuffle(len(waiting), func(i, k int) { waiting[i], waiting[k] = waiting[k], waiting[i] })
	}
	if !strings.Contains(name, "wide") {
		return
	}
	o.Partitions = []slurmctl.Partition{all}
	for i := range o.Nodes {
		o.Nodes[i].Partitions = []string{all.Name}
	}
	for i := range o.Jobs {
		o.Jobs[i].Partition = all.Name
	}
}
