package delay

import (
	"fmt"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/hold"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/slurm"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state/statetest"
	"github.com/evoslurm/evoslurm/planner"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// TestGivesWayFirst checks whose promises lapse so that a stock job gets four nodes for an hour: jobs 1 to 3 run on n1
// to n3, and n4 to n8 are idle.
func TestGivesWayFirst(t *testing.T) {
	for name, c := range map[string]struct {
		promises map[int]string // of jobs: the step that they are promised
		may      func(id uint32) bool
		want     string
	}{
		"nobody is promised anything":      {nil, nil, "nobody"},
		"enough is left beside it":         {map[int]string{1: "600-1200 n[1,4]"}, nil, "nobody"},
		"the only one":                     {map[int]string{1: "600-1200 n[1,4-5]"}, nil, "[1]"},
		"the cheapest":                     {map[int]string{1: "600-1200 n[1,4-5]", 2: "600-1199 n[2,4-5]"}, nil, "[2 1]"}, // both keep the same nodes
		"the cheaper of two on others":     {map[int]string{1: "600-1200 n[1,4]", 2: "600-1199 n[2,5]"}, nil, "[2]"},
		"of the same cost, the later one":  {map[int]string{1: "600-1200 n[1,4]", 2: "601-1201 n[2,5]"}, nil, "[2]"},
		"of the same time, the newer one":  {map[int]string{1: "600-1200 n[1,4]", 2: "600-1200 n[2,5]"}, nil, "[2]"},
		"a dear one, and one of two cheap": {map[int]string{1: "600-700 n[1,4]", 2: "600-700 n[2,5]", 3: "600-3600 n[3,6-8]"}, nil, "[2 3]"},
		"a cheap one that does not matter": {map[int]string{1: "600-601 n[1,4]", 2: "600-1200 n[2,5-6]"}, nil, "[2]"},
		"the cheapest may not":             {map[int]string{1: "600-1200 n[1,4]", 2: "600-1199 n[2,5]"}, func(id uint32) bool { return id == 1 }, "[1]"},
		"those that may do not suffice":    {map[int]string{1: "600-1200 n[1,4]", 2: "600-1199 n[2,5-8]"}, func(id uint32) bool { return id == 1 }, "nobody"},
		"promised for after its end":       {map[int]string{1: "3600-4200 n[1,4-8]"}, nil, "nobody"},
		"promised for its last second":     {map[int]string{1: "3599-4200 n[1,4-8]"}, nil, "[1]"},
	} {
		t.Run(name, func(t *testing.T) {
			b := statetest.New(t, 8)
			for id := 1; id <= 3; id++ {
				j := b.Evolving(id, 1, "1@10m,2@10m", 3*time.Hour)
				b.Runs(j, fmt.Sprint("n", id))
				if step := c.promises[id]; step != "" {
					b.Plans(j, "0-600 n"+fmt.Sprint(id), step)
					hold.SetHold(b.Core, slurmctl.Reservation{Name: state.OwnName{Job: j.BaseID(), Step: 2, Attempt: 1}.String(), Flags: msg.HoldFlags})
				}
			}
			r := b.Stock(9, 5, 4, time.Hour)
			p := slurm.Placed{Candidate: slurm.Candidate{Record: r, Nodes: []int{0, 1, 2, 3, 4, 5, 6, 7}, Profile: planner.Profile{{Duration: 3600, Nodes: 4}}}, Stock: true, At: []int{3, 4, 5, 6}}
			idle := slurm.LanesOf(msg.NewOccupancy(8, statetest.Second))
			nodes, lapse := cheapest(b.Core, b.Seen, idle, &p, func(j *state.Job) bool { return c.may == nil || c.may(j.SlurmID) }, b.Now.Unix())
			got := "nobody"
			if len(lapse) > 0 {
				var ids []uint32
				for _, j := range lapse {
					ids = append(ids, j.SlurmID)
				}
				got = fmt.Sprint(ids)
			}
			if got != c.want || len(lapse) > 0 && len(nodes) != 4 {
				t.Errorf("%s give way, want %s; it gets %v", got, c.want, nodes)
			}
		})
	}
}
