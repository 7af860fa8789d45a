package strategy

import (
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/evoslurm/evoslurm/planner"
	pb "github.com/evoslurm/evoslurm/plugins/strategypb"
)

// asked is a small request with all that there is: a pinned job, own limits, nodes
// that never come back.
var asked = Request{Now: 5, Pinned: []planner.Placement{{Start: -3, Steps: planner.Profile{{Duration: 10, Nodes: 1}, {Duration: 5, Nodes: 2}}}},
	Problem: planner.Problem{Nodes: 6, Busy: []planner.Busy{{Start: -3, Duration: 10, Nodes: 1}, {Start: 7, Duration: 5, Nodes: 2}, {Start: 0, Duration: planner.Forever, Nodes: 1}},
		Jobs: []planner.Job{{ID: "1", Submit: 5, Profile: planner.Profile{{Duration: 10, Nodes: 2}, {Duration: 4, Nodes: 5}, {Duration: 9, Nodes: 1}}},
			{ID: "2", Submit: 8, Profile: planner.Profile{{Duration: 20, Nodes: 4}}, ExpandLimit: 1}, {ID: "3", Submit: 5, Profile: planner.Profile{{Duration: 1, Nodes: 6}}}}}}

// FuzzAnswer: whatever bytes a plugin answers, they are refused or a plan that
// keeps C1 and C2.
func FuzzAnswer(f *testing.F) {
	noX, err := planner.StrategyByName("2X")
	if err != nil {
		f.Fatal(err)
	}
	for _, rigid := range []bool{false, true} {
		a, err := Run(f.Context(), noX, asked)
		if err != nil {
			f.Fatal(err)
		}
		text, err := proto.Marshal(encodeAnswer(asked, []bool{true, false, false, false}, rigid, a))
		if err != nil {
			f.Fatal(err)
		}
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
		if err := planner.Verify(p, s, limit); err != nil {
			t.Fatal(err)
		}
	})
}

// FuzzDescription: whatever a plugin says of itself is refused or fit to be shown.
func FuzzDescription(f *testing.F) {
	text, err := proto.Marshal(encodeDefinition(Definition{Name: "a", Version: "1", Help: "b\nc", Parameters: []Parameter{
		{Name: "p", Type: Number, Default: "1.5", Min: "1", Max: "inf"}, {Name: "q", Type: String, Choices: []string{"", "x"}}, {Name: "r", Type: Duration, Default: "1s"}}}))
	if err != nil {
		f.Fatal(err)
	}
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
		if err := d.Validate(); err != nil {
			t.Fatal(err)
		}
		v, err := d.Values(nil)
		if err != nil {
			t.Fatal(err)
		}
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

// FuzzRequest: whatever the contract carries, the plugin's side refuses it or plans.
func FuzzRequest(f *testing.F) {
	text, err := proto.Marshal(encodeRequest(asked, nil, 1e9))
	if err != nil {
		f.Fatal(err)
	}
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
		if err != nil {
			t.Fatal(err)
		}
		a, err := Run(t.Context(), noX, r)
		if err != nil {
			t.Fatal(err)
		}
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
