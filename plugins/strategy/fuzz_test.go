package strategy

import (
	"math"
	"reflect"
	"slices"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/evoslurm/evoslurm/planner"
	"github.com/evoslurm/evoslurm/planner/malleable"
	pb "github.com/evoslurm/evoslurm/plugins/strategypb"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest/must"
)

// asked is a small request with everything: a pinned job, own limits, and nodes that never come
// back.
var asked = Request{Now: 5, Pinned: []planner.Placement{{Start: -3, Steps: planner.Profile{{Duration: 10, Nodes: 1}, {Duration: 5, Nodes: 2}}}},
	Problem: planner.Problem{Nodes: 6, Busy: []planner.Busy{{Start: -3, Duration: 10, Nodes: 1}, {Start: 7, Duration: 5, Nodes: 2}, {Start: 0, Duration: planner.Forever, Nodes: 1}},
		Jobs: []planner.Job{{ID: "1", Submit: 5, Profile: planner.Profile{{Duration: 10, Nodes: 2}, {Duration: 4, Nodes: 5}, {Duration: 9, Nodes: 1}}},
			{ID: "2", Submit: 8, Profile: planner.Profile{{Duration: 20, Nodes: 4}}, ExpandLimit: 1}, {ID: "3", Submit: 5, Profile: planner.Profile{{Duration: 1, Nodes: 6}}}}}}

// FuzzAnswer checks that whatever bytes a plugin answers are rejected, or are a plan that keeps C1
// and C2.
func FuzzAnswer(f *testing.F) {
	noX, err := planner.StrategyByName("2X")
	must.OK(f, err)
	for _, rigid := range []bool{false, true} {
		a, err := Run(f.Context(), noX, asked)
		must.OK(f, err)
		text, err := proto.Marshal(encodeAnswer(asked, []bool{true, false, false, false}, rigid, a))
		must.OK(f, err)
		f.Add(text, rigid)
	}
	f.Add([]byte{}, false)
	f.Fuzz(func(t *testing.T, text []byte, rigid bool) {
		var m pb.PlanResponse
		if proto.Unmarshal(text, &m) != nil {
			return
		}
		a, err := decodeAnswer(asked, rigid, &m)
		if err != nil || Check(asked, rigid, 2, a) != nil {
			return
		}
		p, limit := asked.Problem, planner.ExpandLimit(2)
		if rigid {
			p, limit = p.Rigid(), 1
		}
		var s planner.Schedule
		var jobs []planner.Job
		for i, j := range p.Jobs {
			if _, unfit := a.Unfit[i]; !unfit {
				s, jobs = append(s, a.Schedule[i]), append(jobs, j)
			} else if i != 2 {
				t.Fatalf("job %d is believed to be infeasible", i+1)
			}
		}
		p.Jobs = jobs
		must.OK(t, planner.Verify(p, s, limit))
	})
}

// FuzzDescription checks that whatever a plugin says about itself is rejected or safe to show.
func FuzzDescription(f *testing.F) {
	text, err := proto.Marshal(encodeDefinition(Definition{Name: "a", Version: "1", Help: "b\nc", Parameters: []Parameter{
		{Name: "p", Type: Number, Default: "1.5", Min: "1", Max: "inf"}, {Name: "q", Type: String, Choices: []string{"", "x"}}, {Name: "r", Type: Duration, Default: "1s"}}}))
	must.OK(f, err)
	f.Add(text)
	f.Fuzz(func(t *testing.T, text []byte) {
		var m pb.DescribeResponse
		if proto.Unmarshal(text, &m) != nil {
			return
		}
		d, err := decodeDescription(&m)
		if err != nil {
			return
		}
		must.OK(t, d.Validate())
		v, err := d.Values(nil)
		must.OK(t, err)
		if _, err := d.Values(v); err != nil {
			t.Fatalf("its own defaults are refused: %v", err)
		}
		for _, shown := range []string{d.Version, d.Help} {
			for _, r := range shown {
				if r < ' ' && r != '\n' || r == 0x7f {
					t.Fatalf("%q is shown to administrators", shown)
				}
			}
		}
	})
}

// FuzzRequest checks that the plugin's side rejects or plans whatever the contract carries.
func FuzzRequest(f *testing.F) {
	text, err := proto.Marshal(encodeRequest(asked, nil, 1e9))
	must.OK(f, err)
	f.Add(text)
	f.Fuzz(func(t *testing.T, text []byte) {
		var m pb.PlanRequest
		if proto.Unmarshal(text, &m) != nil {
			return
		}
		r, pinned, err := decodeRequest(&m)
		if err != nil || r.Validate() != nil || len(r.Jobs) > 20 {
			return
		}
		noX, err := planner.StrategyByName("noX")
		must.OK(t, err)
		a, err := Run(t.Context(), noX, r)
		must.OK(t, err)
		back, err := decodeAnswer(r, false, encodeAnswer(r, pinned, false, a))
		if len(r.Pinned) > 0 && !pinnedFirst(pinned) {
			return // the host sends them first
		}
		if err != nil || Check(r, false, 1, back) != nil {
			t.Fatalf("its plan is not believed: %v, %v", err, Check(r, false, 1, back))
		}
	})
}

func pinnedFirst(pinned []bool) bool {
	for i := 1; i < len(pinned); i++ {
		if pinned[i] && !pinned[i-1] {
			return false
		}
	}
	return true
}

// FuzzSizes checks that whatever bytes a malleability policy answers are rejected, or are sizes
// within the bounds.
func FuzzSizes(f *testing.F) {
	jobs := []malleable.Job{{ID: "1", Nodes: 4, Min: 2, Max: 9}, {ID: "2", Nodes: 8, Min: 2, Max: 16, Sizes: malleable.Pow2}, {ID: "3", Nodes: 3, Min: 1, Max: 5, Held: true}}
	for _, sizes := range [][]uint32{{4, 8, 3}, {9, 8, 3}, {2, 4, 3}, {5, 16, 2}, {4}} {
		text, err := proto.Marshal(&pb.ResizeResponse{JobNodes: sizes})
		must.OK(f, err)
		for kind := range byte(3) {
			f.Add(text, kind, uint8(6))
		}
	}
	f.Fuzz(func(t *testing.T, text []byte, kind byte, by uint8) {
		var m pb.ResizeResponse
		if proto.Unmarshal(text, &m) != nil {
			return
		}
		r := ResizeRequest{Jobs: jobs, Asked: malleable.Request{Kind: malleable.Kind(kind % 3), Nodes: int(by), Mandatory: kind%3 == 1}}
		all, err := decodeResized(r, &m)
		if err != nil {
			return
		}
		given := 0
		for _, c := range all {
			size := c.Size(jobs[c.Job])
			if c.Job == 2 || size < 2 || c.Job == 0 && size > 9 || c.Job == 1 && !slices.Contains([]int{2, 4, 8, 16}, size) {
				t.Fatalf("%+v is believed", c)
			}
			given += size - jobs[c.Job].Nodes
		}
		if given > int(by) || r.Asked.Mandatory && -given < min(int(by), 8) || kind%3 > 0 && given > 0 || kind%3 == 0 && given < 0 {
			t.Fatalf("%+v, and %d nodes more", r.Asked, given)
		}
	})
}

// TestResizeOnTheWire checks that the receiver reads what was sent.
func TestResizeOnTheWire(t *testing.T) {
	r := ResizeRequest{Nodes: 40, Now: -7, Free: 3, Waiting: []int{5, 1}, Asked: malleable.Request{Kind: malleable.Shrink, Nodes: 6, Mandatory: true}, Jobs: []malleable.Job{
		{ID: "1", Start: -100, Nodes: 4, Min: 2, Max: 9, Speedup: malleable.Table{{Nodes: 2, Speedup: 1.5}, {Nodes: 9, Speedup: 4}}},
		{ID: "2", Start: 5, Nodes: 5, Min: 5, Max: 100, Sizes: malleable.Pow2, Speedup: malleable.Amdahl(.8)},
		{ID: "3", Start: 9, Nodes: 300, Min: 100, Max: 3000, Sizes: 3, Speedup: malleable.Amdahl(.99)},
		{ID: "4", Start: 9, Nodes: 1, Min: 1, Max: 1, Voluntary: true},
		{ID: "5", Start: 9, Nodes: 1, Min: 1, Max: 1, Held: true},
	}}
	got, err := decodeResize(encodeResize(r, nil))
	must.OK(t, err)
	for i, j := range got.Jobs {
		sent := r.Jobs[i]
		for n := sent.Min; j.Speedup != nil && n <= sent.Max; n++ {
			if sent.Sizes.Has(n) && math.Abs(j.Speedup.At(n)/sent.Speedup.At(n)-1) > .01 {
				t.Errorf("job %d on %d nodes: %v, was %v", i+1, n, j.Speedup.At(n), sent.Speedup.At(n))
			}
		}
		if (j.Speedup == nil) != (sent.Speedup == nil) || j.Held != (sent.Held || sent.Voluntary) {
			t.Errorf("job %d is %+v, was %+v", i+1, j, sent)
		}
		got.Jobs[i].Speedup, r.Jobs[i].Speedup = nil, nil
		got.Jobs[i].Held, r.Jobs[i].Held, r.Jobs[i].Voluntary = false, false, false
	}
	if !reflect.DeepEqual(got, r) {
		t.Errorf("%+v\nwas %+v", got, r)
	}
	for name, spoil := range map[string]func(*pb.ResizeRequest){
		"a column too short": func(m *pb.ResizeRequest) { m.JobMax = m.JobMax[1:] },
		"an unknown change":  func(m *pb.ResizeRequest) { m.Change = 9 },
		"points missing":     func(m *pb.ResizeRequest) { m.JobPoints[4] = 1 },
		"points left":        func(m *pb.ResizeRequest) { m.JobPoints[1] = 1 },
		"nodes above max":    func(m *pb.ResizeRequest) { m.JobNodes[3] = 2 },
		"unknown sizes":      func(m *pb.ResizeRequest) { m.JobSizes[0] = -2 },
	} {
		m := encodeResize(r, nil)
		m.JobPoints[1], m.PointNodes, m.PointSpeedup = 2, []uint32{1, 2}, []float64{1, 2}
		spoil(m)
		if _, err := decodeResize(m); err == nil {
			t.Errorf("%s: is read", name)
		}
	}
}
