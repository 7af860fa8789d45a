package planner

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/evoslurm/evoslurm/slurmctl/slurmtest/must"
)

// reservedOn returns a reservation of some nodes.
func reservedOn(start, end int64, nodes ...int) (all []NodeBusy) {
	for _, n := range nodes {
		all = append(all, NodeBusy{n, start, end})
	}
	return all
}

// TestPoolReserved checks that each job's own limit counts, once.
func TestPoolReserved(t *testing.T) {
	job := func(limit int64, p ...Step) PoolJob {
		return PoolJob{Job: Job{Profile: p}, Driver: Lowest, Limits: []int64{limit}}
	}
	const hour = 3600
	maintenance := reservedOn(2*hour, 3*hour, 0, 1, 2, 3)
	grows := job(2*hour, Step{hour, 1}, Step{hour - 60, 3})
	for _, c := range []struct {
		name     string
		busy     []NodeBusy
		reserved []NodeBusy
		jobs     []PoolJob
		starts   []int64
		apart    bool // from the first two nodes
	}{
		{"an unlimited job of higher priority", nil, maintenance, []PoolJob{
			job(MaxDuration, Step{MaxDuration, 4}), job(120, Step{35, 2})}, []int64{3 * hour, 0}, false},
		{"a limit that ends as the maintenance begins", nil, maintenance, []PoolJob{grows}, []int64{0}, false},
		{"a limit that ends a second later", nil, reservedOn(2*hour-1, 3*hour, 0, 1, 2, 3), []PoolJob{grows}, []int64{3 * hour}, false},
		{"no nodes before the maintenance is too near", reservedOn(0, hour+1, 0, 1, 2, 3), maintenance, []PoolJob{
			job(hour, Step{60, 1}), job(60, Step{60, 1}), job(hour, Step{60, 4}), job(600, Step{600, 2})},
			[]int64{3 * hour, hour + 1, 3*hour + 60, hour + 1}, false},
		{"other nodes", nil, reservedOn(100, 200, 0, 1), []PoolJob{job(150, Step{50, 2}), job(150, Step{50, 2}), job(100, Step{100, 2})},
			[]int64{0, 50, 0}, false},
		{"a growth after the reservation", nil, reservedOn(100, 200, 0, 1), []PoolJob{job(300, Step{200, 2}, Step{100, 4})}, []int64{0}, false},
		{"two maintenances, one after the other", nil, append(reservedOn(100, 200, 0, 1, 2, 3), reservedOn(300, 400, 0, 1, 2, 3)...),
			[]PoolJob{job(90, Step{10, 4}), job(150, Step{10, 4}), job(99, Step{90, 4}), job(100, Step{90, 4})}, []int64{0, 400, 200, 410}, false},
		{"a chain's limits are each step's own", nil, maintenance, []PoolJob{
			{Job: Job{Profile: Profile{{hour, 1}, {60, 4}}}, Driver: -1, Limits: []int64{2 * hour, hour}},
			{Job: Job{Profile: Profile{{hour, 1}, {60, 4}}}, Driver: -1, Limits: []int64{2 * hour, hour + 1}}}, []int64{0, 3 * hour}, false},
		{"a job without limit ends with its plan", nil, maintenance, []PoolJob{
			{Job: Job{Profile: Profile{{2 * hour, 4}}}, Driver: -1}}, []int64{0}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := Pool{Nodes: 4, Busy: c.busy, Reserved: c.reserved, Jobs: c.jobs}.Plan(mustStrategy(t, "noX"))
			must.OK(t, err)
			var starts []int64
			for _, p := range got {
				if p.Unfit != "" {
					t.Fatal(p.Unfit)
				}
				starts = append(starts, p.Start)
			}
			if diff := cmp.Diff(c.starts, starts); diff != "" {
				t.Errorf("starts (-want +got):\n%s", diff)
			}
		})
	}
	t.Run("a growth before others have the nodes", func(t *testing.T) {
		runs := PoolJob{Job: Job{Profile: Profile{{50, 1}, {30, 2}, {10, 1}}}, Held: []int{0}, Driver: 0, Fixed: true, Limits: []int64{100}, Bring: 60}
		waits := runs
		waits.Held, waits.Fixed = nil, false
		for _, c := range []struct {
			start int64 // of the reservation
			want  [][]int
		}{{110, [][]int{{0}, {0, 1}, {0}}}, {109, [][]int{{0}, {0, 3}, {0}}}} {
			got, err := Pool{Nodes: 4, Reserved: reservedOn(c.start, 500, 1, 2), Jobs: []PoolJob{runs}}.Plan(mustStrategy(t, "noX"))
			if err != nil || got[0].Unfit != "" || !cmp.Equal(got[0].Nodes, c.want) {
				t.Errorf("reserved from %d on: it has %v, want %v (%v)", c.start, got[0], c.want, err)
			}
		}
		for start, want := range map[int64]int64{110: 0, 109: 500} { // of all nodes
			got, err := Pool{Nodes: 4, Reserved: reservedOn(start, 500, 0, 1, 2, 3), Jobs: []PoolJob{waits}}.Plan(mustStrategy(t, "noX"))
			if err != nil || got[0].Unfit != "" || got[0].Start != want {
				t.Errorf("all are reserved from %d on: it starts at %d, want %d (%v)", start, got[0].Start, want, err)
			}
		}
	})
	t.Run("a running job's end is known", func(t *testing.T) {
		runs := PoolJob{Job: Job{Profile: Profile{{50, 1}, {50, 2}}}, Held: []int{0}, Driver: 0, Fixed: true, Limits: []int64{120}}
		for _, c := range []struct {
			start int64 // of the reservation
			want  [][]int
		}{{120, [][]int{{0}, {0, 1}}}, {119, [][]int{{0}, {0, 3}}}} {
			got, err := Pool{Nodes: 4, Reserved: reservedOn(c.start, 500, 1, 2), Jobs: []PoolJob{runs}}.Plan(mustStrategy(t, "noX"))
			if err != nil || got[0].Unfit != "" || !cmp.Equal(got[0].Nodes, c.want) {
				t.Errorf("reserved from %d on: it has %v, want %v (%v)", c.start, got[0], c.want, err)
			}
		}
	})
	t.Run("a link of a running chain that is delayed", func(t *testing.T) {
		// it runs on node 0; an earlier job in the list delays its second step by a second
		first := PoolJob{Job: Job{Profile: Profile{{1, 1}, {1, 4}}}, Held: []int{1}, Driver: 1, Fixed: true, Limits: []int64{1}}
		chain := PoolJob{Job: Job{Profile: Profile{{1, 1}, {1, 4}}}, Held: []int{0}, Driver: -1, Fixed: true, MaxDuration: []int64{2}, Limits: []int64{1, 60}}
		got, err := Pool{Nodes: 7, Reserved: reservedOn(61, 62, 2, 3, 4), Jobs: []PoolJob{first, chain}}.Plan(mustStrategy(t, "noX"))
		must.OK(t, err)
		if p := got[1]; p.Unfit == "" && p.Start+p.Steps[0].Duration > 1 && p.Start+p.Steps[0].Duration < 62 && slices.ContainsFunc(p.Nodes[1], func(n int) bool { return n >= 2 && n <= 4 }) {
			t.Errorf("%+v: a step at %d with a limit of 60 on nodes reserved from 61 on", p, p.Start+p.Steps[0].Duration)
		}
	})
	t.Run("a request for most", func(t *testing.T) {
		calls := 0
		p := Pool{Nodes: 4, Reserved: maintenance}
		for i := range 300 {
			p.Jobs = append(p.Jobs, job([]int64{MaxDuration, 600}[i%2], Step{10, 1 + i%4}))
		}
		got, err := p.Plan(once{mustStrategy(t, "noX"), &calls})
		if err != nil || calls != 1 || got[0].Start < 3*hour || got[299].Start > 2*hour {
			t.Errorf("%d requests, the first starts at %d, the last at %d: %v", calls, got[0].Start, got[299].Start, err)
		}
	})
}

// TestPoolReservedConditions checks that no job is on nodes that others have reserved before its
// limit ends, and that everything else is as without reservations.
func TestPoolReservedConditions(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawPool(t)
		for range rapid.IntRange(1, 4).Draw(t, "reservations") {
			start := rapid.Int64Range(0, 80).Draw(t, "start")
			nodes := rapid.Permutation(seq(p.Nodes)).Draw(t, "nodes")[:rapid.IntRange(1, p.Nodes).Draw(t, "count")]
			p.Reserved = append(p.Reserved, reservedOn(start, start+rapid.Int64Range(1, 40).Draw(t, "length"), nodes...)...)
		}
		for j := range p.Jobs {
			p.Jobs[j].Limits = rapid.SliceOfN(rapid.Int64Range(1, 60), 1, 1).Draw(t, "limit")
			if rapid.Bool().Draw(t, "chain") {
				p.Jobs[j].Limits = rapid.SliceOfN(rapid.Int64Range(1, 60), len(p.Jobs[j].Profile), len(p.Jobs[j].Profile)).Draw(t, "limits")
			}
		}
		s, _ := StrategyByName(rapid.SampledFrom([]string{"noX", "2X", "2X+c", "infX+c"}).Draw(t, "strategy"))
		got, err := p.Plan(s)
		must.OK(t, err)
		held := map[int]bool{}
		for _, job := range p.Jobs {
			for _, n := range job.Held {
				held[n] = true
			}
		}
		var mapped []MappedJob
		var nodes [][][]int
		for i, job := range p.Jobs {
			plan := got[i]
			if plan.Unfit != "" {
				continue
			}
			if !job.Fixed {
				if err := checkPlacement(job.Job, plan.Placement, ExpandLimitOf(s)); err != nil {
					t.Fatalf("C1: job %d: %v", i, err)
				}
			}
			if job.Driver == Lowest {
				job.Driver = min(plan.Nodes[0][0], p.Nodes)
			}
			mapped = append(mapped, MappedJob{Placement: plan.Placement, Held: job.Held, Driver: job.Driver})
			nodes = append(nodes, plan.Nodes)
			at := plan.Start
			for k, step := range plan.Steps {
				until := plan.Start + job.Limits[0]
				if len(job.Limits) > 1 {
					until = at + job.Limits[k]
				}
				until = max(until, at+step.Duration)
				for _, n := range plan.Nodes[k] {
					for _, r := range p.Reserved {
						if r.Node == n && !held[n] && r.Start < until && r.End > at {
							t.Fatalf("job %d, step %d from %d on: node %d is reserved during [%d, %d), its limit ends at %d", i, k+1, at, n, r.Start, r.End, until)
						}
					}
				}
				at += step.Duration
			}
		}
		var busy []NodeBusy
		for _, b := range p.Busy {
			if !held[b.Node] {
				busy = append(busy, b)
			}
		}
		checkMapping(t, p.Nodes, busy, mapped, nodes)
	})
}

// BenchmarkPoolReserved plans 1,500 jobs on 1,000 nodes that are reserved in an hour.
func BenchmarkPoolReserved(b *testing.B) {
	for _, c := range []struct {
		name  string
		nodes int
	}{{"none", 0}, {"all", 1000}, {"half", 500}} {
		b.Run(c.name, func(b *testing.B) {
			p := Pool{Nodes: 1000, Reserved: reservedOn(3600, 7200, seq(c.nodes)...)}
			for i := range 1500 {
				limit := int64(300 + i*7919%7200)
				p.Jobs = append(p.Jobs, PoolJob{Job: Job{Profile: Profile{{limit / 2, 1 + i*31%60}, {limit / 2, 1 + i*17%60}}}, Driver: Lowest, Limits: []int64{limit}})
			}
			s, _ := StrategyByName("noX")
			for b.Loop() {
				if _, err := p.Plan(s); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
