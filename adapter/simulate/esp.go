package simulate

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/evoslurm/evoslurm/planner"
)

// ESP is the Effective System Performance benchmark, version 2 (Wong and others 2000; Kramer 2008), as Georgiou's
// thesis (2010, section 2.3.2) runs it: 230 jobs of 14 types, whose sizes are parts of the system, in random order.
// Jobs without a full configuration, 228, come first; the two of type Z ask for all cores, come 2,400 and
// 7,200 s after the beginning, and have a higher priority.
//
// What the text leaves open: the "gaussian model of submission" is normal here, all within the 2,400 s before the
// first Z, a sixth of that being the standard deviation; users ask for a minute more than jobs take.
//
// Dynamic ESP (Prabhakaran and others 2014): the 69 jobs of types F to J need four cores more once 16 % of their
// time is over, and are as much faster then, perfectly so. Here they declare it.
type ESP struct {
	Cores   int  // each is a node of the model
	Full    bool // with the jobs of type Z
	Dynamic bool
	Seed    uint64
	Burst   bool // 50 jobs at once, then one every 30 s, as the benchmark's own scripts do
}

// espTypes are those of table 2.2 of the thesis.
var espTypes = []struct {
	name    string
	part    float64
	count   int
	seconds int64
}{
	{"A", .03125, 75, 267}, {"B", .0625, 9, 322}, {"C", .5, 3, 534}, {"D", .25, 3, 616}, {"E", .5, 3, 315}, {"F", .0625, 9, 1846}, {"G", .125, 6, 1334},
	{"H", .1582, 6, 1067}, {"I", .03125, 24, 1432}, {"J", .0625, 24, 725}, {"K", .0957, 15, 487}, {"L", .125, 36, 366}, {"M", .25, 15, 187}, {"Z", 1, 2, 100},
}

// The least time that the jobs take, as printed with table 2.2, and as it adds up, in seconds.
const (
	ESPPrinted = 10773
	ESPBest    = 11003
)

const (
	espFirstZ, espNextZ = 2400, 7200
	espMore             = 4   // cores that dynamic jobs need
	espAfter            = .16 // of their time
)

// Jobs are its jobs in order of submission.
func (b ESP) Jobs() []Submission {
	chance := rand.New(rand.NewPCG(b.Seed, 230))
	var all []Submission
	for _, t := range espTypes[:len(espTypes)-1] {
		for i := range t.count {
			n := max(int(math.Round(t.part*float64(b.Cores))), 1)
			s := Submission{ID: fmt.Sprintf("%s%d", t.name, i+1), Profile: planner.Profile{{Duration: t.seconds, Nodes: n}}, User: len(all) % 20}
			if b.Dynamic && t.name >= "F" && t.name <= "J" && n+espMore <= b.Cores {
				first := int64(math.Round(espAfter * float64(t.seconds)))
				rest := math.Round(float64((t.seconds-first)*int64(n)) / float64(n+espMore))
				s.Profile = planner.Profile{{Duration: first, Nodes: n}, {Duration: int64(rest), Nodes: n + espMore}}
			} else {
				s.Limit = t.seconds + 60
			}
			all = append(all, s)
		}
	}
	chance.Shuffle(len(all), func(i, k int) { all[i], all[k] = all[k], all[i] })
	for i := range all {
		switch {
		case b.Burst:
			all[i].Submit = int64(max(i-49, 0) * 30)
		default:
			at := espFirstZ/2 + espFirstZ/6*chance.NormFloat64()
			all[i].Submit = int64(min(max(at, 0), espFirstZ-1))
		}
	}
	slices.SortStableFunc(all, func(a, b Submission) int { return cmp.Compare(a.Submit, b.Submit) })
	if b.Full {
		z := espTypes[len(espTypes)-1]
		for i, at := range []int64{espFirstZ, espNextZ} {
			all = append(all, Submission{ID: fmt.Sprint(z.name, i+1), Submit: at, Profile: planner.Profile{{Duration: z.seconds, Nodes: b.Cores}}, Limit: z.seconds + 60, First: true})
		}
	}
	return all
}

// ESPResult is what came of a run.
type ESPResult struct {
	Elapsed    int64   `json:"elapsed"`    // seconds from the first submission to the last end
	Printed    float64 `json:"printed"`    // efficiency in percent, by the least time that is printed
	Efficiency float64 `json:"efficiency"` // by what the jobs' work adds up to
	Throughput float64 `json:"throughput"` // jobs a minute
}

// Run runs the benchmark on the experiment's Slurm, with its strategy and configuration; atPeak has what evolves
// rigid at its largest size.
func (b ESP) Run(ctx context.Context, e Experiment, atPeak bool) (ESPResult, error) {
	e.Jobs = b.Jobs()
	e.Cluster.Nodes, e.Cluster.NodeList = b.Cores, nil
	run := e.Run
	if atPeak {
		run = func(ctx context.Context) (*Result, error) { return e.Beside(ctx, Slurm) }
	}
	r, err := run(ctx)
	if err != nil {
		return ESPResult{}, err
	}
	if n := r.Metrics.Unfinished; n > 0 {
		return ESPResult{}, fmt.Errorf("%d jobs did not complete", n)
	}
	elapsed := r.Metrics.Makespan - e.Jobs[0].Submit
	best := b.Best()
	printed := ESPPrinted + best - ESPBest
	return ESPResult{elapsed, 100 * printed / float64(elapsed), 100 * best / float64(elapsed), 60 * float64(len(e.Jobs)) / float64(elapsed)}, nil
}

// Best is what the jobs' work takes in seconds, could it be packed without a gap: by the parts of the
// system that they ask for, whatever these are in whole cores.
func (b ESP) Best() (seconds float64) {
	for _, t := range espTypes {
		if t.name != "Z" || b.Full {
			seconds += t.part * float64(t.count) * float64(t.seconds)
		}
	}
	return seconds
}
