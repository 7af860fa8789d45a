package slurm

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state/statetest"
	"github.com/evoslurm/evoslurm/planner"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// TestLanes places rigid jobs one after the other, like a backfill scheduler: each as early as it fits, and none later
// because of one behind it. Times are seconds from the origin.
func TestLanes(t *testing.T) {
	type job struct {
		nodes    int
		lasts    int64
		earliest int64
		on       []int // eligible
		want     string
	}
	all := []int{0, 1, 2, 3}
	const never = planner.Forever
	for name, c := range map[string]struct {
		busy string // "node:start-end …"
		held []int64
		jobs []job
	}{
		"an empty cluster":                    {"", nil, []job{{4, 10, 0, all, "0 on [0 1 2 3]"}}},
		"one after the other":                 {"", nil, []job{{3, 10, 0, all, "0 on [0 1 2]"}, {2, 10, 0, all, "10 on [0 1]"}}},
		"a small job behind fits beside":      {"", nil, []job{{3, 10, 0, all, "0 on [0 1 2]"}, {4, 10, 0, all, "10 on [0 1 2 3]"}, {1, 10, 0, all, "0 on [3]"}}},
		"a long one behind delays nobody":     {"", nil, []job{{3, 10, 0, all, "0 on [0 1 2]"}, {4, 10, 0, all, "10 on [0 1 2 3]"}, {1, 11, 0, all, "20 on [0]"}}},
		"a gap that it just fills":            {"0:0-5 0:15-20", nil, []job{{1, 10, 0, []int{0}, "5 on [0]"}}},
		"a gap that is a second too short":    {"0:0-5 0:14-20", nil, []job{{1, 10, 0, []int{0}, "20 on [0]"}}},
		"not before its begin time":           {"", nil, []job{{1, 10, 7, all, "7 on [0]"}}},
		"a begin time in the past":            {"", nil, []job{{1, 10, -7, all, "0 on [0]"}}},
		"more nodes than are eligible":        {"", nil, []job{{3, 10, 0, []int{0, 1}, "never"}, {1, 10, 0, all, "0 on [0]"}}},
		"no node is eligible":                 {"", nil, []job{{1, 10, 0, nil, "never"}}},
		"a node that never becomes free":      {"0:0-forever", nil, []job{{1, 10, 0, []int{0}, "never"}, {1, 10, 0, []int{0, 1}, "0 on [1]"}}},
		"longest job of all":                  {"", nil, []job{{1, planner.MaxDuration, 0, all, "0 on [0]"}}},
		"nodes whose hold begins later first": {"", []int64{5, never, 10, never}, []job{{2, 10, 0, all, "0 on [1 2]"}, {2, 10, 0, all, "0 on [3 0]"}}},
	} {
		t.Run(name, func(t *testing.T) {
			o := busyLanes(t, c.busy)
			held := []int64{never, never, never, never}
			for i, at := range c.held {
				if at != never {
					held[i] = at + statetest.Second
				}
			}
			var list []Placed
			for _, j := range c.jobs {
				list = append(list, Placed{Candidate: Candidate{Nodes: j.on, Profile: planner.Profile{{Duration: j.lasts, Nodes: j.nodes}}, Earliest: statetest.Second + j.earliest}})
			}
			LanesOf(o).Place(list, held)
			for i, p := range list {
				got := "never"
				if p.Start != never {
					got = fmt.Sprintf("%d on %v", p.Start-statetest.Second, p.At)
				}
				if got != c.jobs[i].want {
					t.Errorf("job %d: %s, want %s", i+1, got, c.jobs[i].want)
				}
			}
		})
	}
}

// TestLanesOfParts places a job of two of the nodes 0 and 1 and one of 2 and 3, and one behind it that may have any node.
func TestLanesOfParts(t *testing.T) {
	for _, c := range []struct{ busy, want, behind string }{
		{"", "0 on [0 1 2]", "0 on [3]"},
		{"2:0-50 3:0-40", "40 on [0 1 3]", "0 on [0]"},
		{"1:0-20 2:0-10 3:0-40", "20 on [0 1 2]", "0 on [0]"},
		{"0:0-5 0:12-20 1:0-8 2:0-9 3:0-30", "20 on [0 1 2]", "30 on [0]"},
		{"3:0-forever 2:0-forever", "never", "0 on [0]"},
	} {
		list := []Placed{
			{Candidate: Candidate{Nodes: []int{0, 1, 2, 3}, Parts: []Part{{[]int{0, 1}, 2}, {[]int{2, 3}, 1}}, Profile: planner.Profile{{Duration: 10, Nodes: 3}}}},
			{Candidate: Candidate{Nodes: []int{0, 1, 2, 3}, Profile: planner.Profile{{Duration: 20, Nodes: 1}}}},
		}
		LanesOf(busyLanes(t, c.busy)).Place(list, slices.Repeat([]int64{planner.Forever}, 4))
		for i, want := range []string{c.want, c.behind} {
			got := "never"
			if list[i].Start < planner.Forever {
				got = fmt.Sprintf("%d on %v", list[i].Start-statetest.Second, list[i].At)
			}
			if got != want {
				t.Errorf("%q: job %d: %s, want %s", c.busy, i+1, got, want)
			}
		}
	}
}

// TestLanesLicensed places two jobs that ask for the only licence. The first one waits for nodes: without bf_licenses, Slurm gives the
// licence to the second one meanwhile.
func TestLanesLicensed(t *testing.T) {
	for parameters, want := range map[string]int64{"": 0, "bf_licenses": 60} {
		o := busyLanes(t, "2:0-50 3:0-50")
		o.Licenses = msg.Licenses{Names: []string{"foo"}, All: []planner.License{{Total: 1}}}
		foo := []slurmctl.License{{Name: "foo", Count: 1}}
		list := []Placed{
			{Candidate: Candidate{Nodes: []int{1, 2, 3}, Licenses: foo, Profile: planner.Profile{{Duration: 10, Nodes: 3}}}},
			{Candidate: Candidate{Nodes: []int{0}, Licenses: foo, Profile: planner.Profile{{Duration: 100, Nodes: 1}}}},
		}
		b := statetest.New(t, 4)
		b.SlurmConfig.Values = map[string]string{"SchedulerParameters": parameters}
		lanes := LanesOf(o)
		lanes.Licensed(b.Core, o)
		lanes.Place(list, slices.Repeat([]int64{planner.Forever}, 4))
		if list[0].Start != statetest.Second+50 || list[1].Start != statetest.Second+want {
			t.Errorf("%q: %d and %d, want 50 and %d", parameters, list[0].Start-statetest.Second, list[1].Start-statetest.Second, want)
		}
	}
}

// busyLanes returns four nodes with the busy times of some: "node:start-end …", in seconds from the origin.
func busyLanes(t *testing.T, busy string) *msg.Occupancy {
	t.Helper()
	const never = planner.Forever
	o := msg.NewOccupancy(4, statetest.Second)
	for _, text := range strings.Fields(strings.ReplaceAll(busy, "forever", fmt.Sprint(never))) {
		var n int
		var start, end int64
		if _, err := fmt.Sscanf(text, "%d:%d-%d", &n, &start, &end); err != nil {
			t.Fatal(err)
		}
		if end != never {
			end += statetest.Second
		}
		o.Add(n, start+statetest.Second, end)
	}
	return o
}

const plainEnd = 400 // by then, all jobs of TestLanesPlain have ended

// TestLanesPlain compares the places of random jobs with those of a search second by second.
func TestLanesPlain(t *testing.T) {
	random := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 1))
	for range 300 {
		o, used := msg.NewOccupancy(6, statetest.Second), [6][plainEnd]bool{}
		for range random.IntN(12) {
			n, at := random.IntN(6), random.IntN(60)
			last := at + 1 + random.IntN(20)
			o.Add(n, statetest.Second+int64(at), statetest.Second+int64(last))
			for ; at < last; at++ {
				used[n][at] = true
			}
		}
		on, list := [][]int{{0, 1, 2, 3, 4, 5}, {1, 3, 5}}, []Placed(nil)
		for range 25 {
			list = append(list, Placed{Candidate: Candidate{Nodes: on[random.IntN(2)], Earliest: statetest.Second + int64(random.IntN(2)*random.IntN(40)),
				Profile: planner.Profile{{Duration: int64(1 + random.IntN(10)), Nodes: 1 + random.IntN(4)}}}})
		}
		LanesOf(o).Place(list, slices.Repeat([]int64{planner.Forever}, 6))
		for i, p := range list {
			want := Placed{Start: planner.Forever}
			if at, nodes := soonest(&used, p); nodes != nil {
				want.Start, want.At = statetest.Second+int64(at), nodes
			}
			if p.Start != want.Start || !slices.Equal(p.At, want.At) {
				t.Fatalf("job %d of %+v: %d on %v, want %d on %v", i+1, list, p.Start-statetest.Second, p.At, want.Start-statetest.Second, want.At)
			}
		}
	}
}

// soonest finds the first second, and the nodes, at which a job fits, and marks these as used.
func soonest(used *[6][plainEnd]bool, p Placed) (at int, nodes []int) {
	lasts, count := int(p.Profile[0].Duration), p.Profile[0].Nodes
	for at = int(p.Earliest - statetest.Second); at+lasts < plainEnd; at++ {
		nodes = slices.DeleteFunc(slices.Clone(p.Nodes), func(n int) bool { return slices.Contains(used[n][at:at+lasts], true) })
		if len(nodes) < count {
			continue
		}
		for _, n := range nodes[:count] {
			for k := range lasts {
				used[n][at+k] = true
			}
		}
		return at, nodes[:count]
	}
	return 0, nil
}
