package workload

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"

	"github.com/evoslurm/evoslurm/planner"
)

// Range is an inclusive range to draw from.
type Range struct{ Min, Max int64 }

// ParseRange reads MIN-MAX, or one number for both.
func ParseRange(text string) (Range, error) {
	low, high, found := strings.Cut(text, "-")
	if !found {
		high = low
	}
	a, errA := strconv.ParseInt(low, 10, 64)
	b, errB := strconv.ParseInt(high, 10, 64)
	if errA != nil || errB != nil || a < 1 || a > b {
		return Range{}, fmt.Errorf("%q is not a range like 15-20", text)
	}
	return Range{a, b}, nil
}

func (r Range) String() string {
	if r.Min == r.Max {
		return strconv.FormatInt(r.Min, 10)
	}
	return fmt.Sprintf("%d-%d", r.Min, r.Max)
}

func (r Range) draw(random *rand.Rand) int64 { return r.Min + random.Int64N(r.Max-r.Min+1) }

// Paper is the paper's model (section 5.1): uniform choices of the number of
// jobs, of steps, of durations and of node counts; all are queued at second 0.
type Paper struct {
	Jobs      Range
	Steps     Range
	Duration  Range // seconds of a step
	StepNodes Range
	Nodes     int // of the cluster, which the paper does not tell
}

// DefaultPaper are the ranges of the paper's Tables 1 and 2. With 100 nodes the
// tables come out as printed.
var DefaultPaper = Paper{Range{15, 20}, Range{1, 10}, Range{500, 3600}, Range{1, 75}, 100}

// Validate returns which range cannot be drawn from.
func (p Paper) Validate() error {
	for _, r := range []struct {
		name string
		got  Range
		most int64
	}{
		{"jobs", p.Jobs, 10_000_000},
		{"steps", p.Steps, planner.MaxSteps},
		{"duration", p.Duration, planner.MaxDuration},
		{"step-nodes", p.StepNodes, int64(p.Nodes)},
	} {
		if r.got.Min < 1 || r.got.Max < r.got.Min || r.got.Max > r.most {
			return fmt.Errorf("%s: %s is not within 1 … %d", r.name, r.got, r.most)
		}
	}
	if p.Nodes > planner.MaxNodes {
		return fmt.Errorf("nodes: %d is more than %d", p.Nodes, planner.MaxNodes)
	}
	return nil
}

// Generate draws test number test (from 0) of a seed. Equal arguments give equal
// workloads, whatever other tests are drawn.
func (p Paper) Generate(seed uint64, test int) planner.Problem {
	random := rand.New(rand.NewPCG(seed, uint64(test)))
	problem := planner.Problem{Nodes: p.Nodes, Jobs: make([]planner.Job, p.Jobs.draw(random))}
	for i := range problem.Jobs {
		profile := make(planner.Profile, p.Steps.draw(random))
		for k := range profile {
			profile[k] = planner.Step{Duration: p.Duration.draw(random), Nodes: int(p.StepNodes.draw(random))}
		}
		problem.Jobs[i] = planner.Job{ID: strconv.Itoa(i + 1), Profile: profile}
	}
	return problem
}
