package power

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/hold"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/refit"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/slurm"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/stock"
	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
	"github.com/evoslurm/evoslurm/planner"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// node is a node that no job has.
type node struct {
	name     string
	at       int
	parts    []string // driven partitions
	excepted bool     // the site keeps it on
	isOn     bool
	isOff    bool // and may be requested to come up
	unwanted bool // its first use is far enough away for it to go off
	spare    bool // a job that nobody planned can have it
	mayGoOff bool // unless it belongs to the reserve
	isDue    bool // its use is so near that it must come up

	wantedSoon bool // something is planned on it before it could go off and come up again
}

// idleNodes lists the nodes that no job has, those that Slurm gives to jobs first first.
func idleNodes(c *state.Core, s *state.Snapshot, uses []int64) (all []node) {
	p, now := &c.Power, s.Taken.Unix()
	parts, reserved, soon := partitionsOf(c, s), reservedNow(c, s), int64(gap(c)/time.Second)
	up := int64(p.Up() / time.Second)
	due := up + int64((hold.PowerLead+state.PowerCycle+c.Config.PollInterval+p.Wave(len(p.ByPlan.Naps)))/time.Second)
	for i := range s.Nodes {
		if n := &s.Nodes[i]; !reserved[n.Name] && isIdle(c, s, n) {
			all = append(all, nodeOf(p, n, i, parts[i], uses[i]-now, near{soon, up, due}))
		}
	}
	slices.SortStableFunc(all, func(a, b node) int { return cmp.Compare(s.Nodes[a.at].Weight, s.Nodes[b.at].Weight) })
	except(&p.Except, s, all)
	for i := range all {
		all[i].mayGoOff = all[i].mayGoOff && !all[i].excepted
	}
	return all
}

// near holds how many seconds ahead a use counts: a node cannot go off and come up again before, cannot come up before, and
// must come up before.
type near struct{ soon, up, due int64 }

// nodeOf returns an idle node whose first use is some seconds away.
func nodeOf(p *state.Power, n *slurmctl.Node, at int, parts []string, in int64, by near) node {
	_, asked := p.Asked[n.Name]
	one := node{name: n.Name, at: at, parts: parts, isOn: n.Power() == slurmctl.PowerOn, unwanted: in > by.soon}
	off := n.Power() == slurmctl.PoweredDown
	one.isOff = off && !asked && len(parts) > 0
	one.spare = one.unwanted && (one.isOn || n.Power() == slurmctl.PowerUp || off && asked)
	one.mayGoOff = one.isOn && one.spare && n.State == "idle" && n.Flags == "" && len(parts) > 0
	one.wantedSoon = in > 0 && !one.unwanted
	one.isDue = in > by.up && in <= by.due // sooner, and Slurm would switch it on itself
	return one
}

// isIdle reports whether no job has a node, and Slurm gives it to jobs.
func isIdle(c *state.Core, s *state.Snapshot, n *slurmctl.Node) bool {
	switch {
	case s.InUse[n.Name], n.CPUsAlloc > 0, !n.Usable(), n.Unheard(), s.Asked[n.Name], slices.Contains(c.Leaked, n.Name), slurm.IsSuspect(c, []string{n.Name}):
		return false
	}
	return true
}

// except marks the nodes that the site keeps on.
func except(x *slurmctl.PowerExceptions, s *state.Snapshot, all []node) {
	mark := func(names []string, count int) {
		in := msg.SetOf(names)
		for i := range all {
			if n := &all[i]; in[n.name] && n.isOn && count > 0 {
				n.excepted = true
				count--
			}
		}
	}
	for _, e := range x.Nodes {
		mark(e.Nodes, cmp.Or(e.Count, math.MaxInt))
	}
	for _, part := range x.Partitions {
		mark(s.Partitions[part].Nodes, math.MaxInt)
	}
}

// partitionsOf returns the partitions of each node, or none if the sidecar does not drive all of them.
func partitionsOf(c *state.Core, s *state.Snapshot) [][]string {
	parts, foreign := make([][]string, len(s.Nodes)), make([]bool, len(s.Nodes))
	for _, name := range state.SortedKeys(s.Partitions) {
		driven := len(c.Config.Partitions) == 0 || slices.Contains(c.Config.Partitions, name)
		for _, node := range s.Partitions[name].Nodes {
			if i, known := s.Index[node]; known {
				parts[i], foreign[i] = append(parts[i], name), foreign[i] || !driven
			}
		}
	}
	for i := range parts {
		if foreign[i] {
			parts[i] = nil
		}
	}
	return parts
}

// reservedNow returns the nodes in reservations of others that have begun.
func reservedNow(c *state.Core, s *state.Snapshot) msg.Set {
	all := msg.Set{}
	for name, r := range s.Reservations {
		if _, ours := s.Holds[name]; !ours && !s.Taken.Before(r.Start) && s.Taken.Before(r.End) {
			all.Add(r.Nodes)
		}
	}
	return all
}

// firstUses returns when each node is first used as far as is planned, in Unix seconds, or planner.Forever: for evolving jobs
// and their holds, in reservations of others, and by pending stock jobs.
func firstUses(c *state.Core, s *state.Snapshot) []int64 {
	now := s.Taken.Unix()
	first := slices.Repeat([]int64{planner.Forever}, len(s.Nodes))
	use := func(names []string, start, end int64) {
		for _, name := range names {
			if i, known := s.Index[name]; known && end > now {
				first[i] = min(first[i], max(start, now))
			}
		}
	}
	for _, j := range c.Active {
		for _, step := range j.Plan {
			use(step.Nodes, step.Start, step.End)
		}
	}
	for _, r := range c.Reservations {
		use(r.Nodes, r.Start.Unix(), r.End.Unix())
	}
	for _, r := range s.Reservations {
		use(r.Nodes, r.Start.Unix(), r.End.Unix())
	}
	for _, p := range stockStarts(c, s) {
		for _, n := range p.At {
			first[n] = min(first[n], max(p.Start, now))
		}
	}
	return first
}

// stockStarts places the pending stock jobs, each as early as it fits beside what is planned, wherever they may run.
func stockStarts(c *state.Core, s *state.Snapshot) []slurm.Placed {
	if !slices.ContainsFunc(s.Jobs, func(r slurmctl.Job) bool { return r.State == slurmctl.Pending && c.Owner(r.ID) == nil }) {
		return nil
	}
	now, everywhere := s.Taken.Unix(), slurm.Candidate{Record: &slurmctl.Job{}}
	for i := range s.Nodes {
		everywhere.Nodes = append(everywhere.Nodes, i)
	}
	var list []slurm.Placed
	for _, cand := range stock.Candidates(c, s, now, slurm.Turn{Tier: math.MinInt}, stock.SetsOf(s, []slurm.Candidate{everywhere})) {
		list = append(list, slurm.Placed{Candidate: cand, Stock: true})
	}
	if len(list) == 0 {
		return nil
	}
	o := refit.Occupied(c, s, now, nil)
	for _, j := range c.Active {
		if j.State != row.Queued {
			continue
		}
		for _, step := range j.Plan {
			for _, name := range step.Nodes {
				if i, known := s.Index[name]; known {
					o.Add(i, step.Start, step.End)
				}
			}
		}
	}
	slurm.LanesOf(o).Place(list, slices.Repeat([]int64{planner.Forever}, len(s.Nodes)))
	return list
}
