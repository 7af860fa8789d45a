package core

import (
	"fmt"
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
// is back. In near, also mostly still, 32 jobs prefer few switches; in wide, all this is in one partition. first-ms is the first cycle, which plans everything. Figures of its parts: see, plan, decide.
func BenchmarkCycle(b *testing.B) {
	for _, name := range []string{"still", "end", "near still", "near end", "wide still", "wide end", "wide near still", "wide near end"} {
		b.Run(name, func(b *testing.B) {
			now := time.Now().Truncate(time.Second)
			c, o, profiles := largeSite(now)
			if strings.Contains(name, "wide") {
				wide(&o)
			}
			switches(&o)
			if strings.Contains(name, "near") {
				near(c)
			}
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
				at := time.Now()
				lap := func(d *time.Duration) { *d, at = *d+time.Since(at), time.Now() }
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
			before := processorTime()
			for ; b.Loop(); n++ {
				cycle(n + 4)
			}
			ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 / float64(n) }
			b.ReportMetric(float64(first.Milliseconds()), "first-ms")
			b.ReportMetric(ms(see), "see-ms")
			b.ReportMetric(ms(plan), "plan-ms")
			b.ReportMetric(ms(decide), "decide-ms")
			b.ReportMetric(ms(processorTime()-before), "cpu-ms/op")
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

// wide puts all into one partition.
func wide(o *msg.Observation) {
	all := slurmctl.Partition{Name: "all", Up: true, Default: true, MaxTime: slurmctl.Unlimited}
	for i := range o.Nodes {
		o.Nodes[i].Partitions = []string{"all"}
		all.Nodes = append(all.Nodes, o.Nodes[i].Name)
	}
	o.Partitions = []slurmctl.Partition{all}
	for i := range o.Jobs {
		o.Jobs[i].Partition = "all"
	}
}

// switches puts each 25 nodes on a switch.
func switches(o *msg.Observation) {
	o.Topology = slurmctl.Topology{Switches: []slurmctl.Switch{{Name: "top", Above: -1}}}
	for i := 0; i < len(o.Nodes); i += 25 {
		s := slurmctl.Switch{Name: fmt.Sprint("leaf", i), Above: 0}
		for _, n := range o.Nodes[i : i+25] {
			s.Nodes = append(s.Nodes, n.Name)
		}
		o.Topology.Switches = append(o.Topology.Switches, s)
	}
}

// near has the first waiting jobs prefer few switches.
func near(c *state.Core) {
	left := 32
	for _, j := range c.Active {
		if left > 0 {
			j.Aim = planner.AimNear
			left--
		}
	}
}
