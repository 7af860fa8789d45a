package simulate

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/evoslurm/evoslurm/planner"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// ESP is the Effective System Performance benchmark, version 2 (Wong and others 2000; Kramer 2008),
// as Georgiou's thesis (2010, section 2.3.2) runs it: 230 jobs of 14 types, whose sizes are shares
// of the system, in random order. The 228 jobs without a full configuration come first. The two of
// type Z ask for all cores, come 2,400 and 7,200 s after the start, and have a higher priority.
//
// The text leaves open: the "gaussian model of submission" is normal here, all within the 2,400 s
// before the first Z, with a sixth of that as the standard deviation. Users request a minute more
// than jobs take.
//
// Dynamic ESP (Prabhakaran and others 2014): the 69 jobs of types F to J want four more cores after
// 16 % of their time, and are then perfectly faster. They declare it, or ask as the paper's jobs
// do: at 16 % and, if refused, again at 25 %. Without these cores, they take as long as before.
type ESP struct {
	Cores   int  // number of cores; each is a node of the model
	Full    bool // with the jobs of type Z
	Dynamic bool
	Ask     bool // dynamic jobs ask instead of declaring
	Whole   bool // jobs that ask are as much shorter as if they had always had the cores
	Seed    uint64
	Burst   bool        // 50 jobs at once, then one every 30 s, as the benchmark's own scripts do
	Islands []int       // cores of each; results tell on how many jobs are (the thesis's table 3.8)
	Tree    bool        // Slurm knows the islands, as the leaf switches of topology/tree
	Planned bool        // all jobs are submitted with evosbatch
	Aim     planner.Aim // of all jobs' placement then

	Time float64 // divisor of all times except the extra minute that users request; 1 if below
}

// espTypes lists the job types of the thesis's table 2.2.
var espTypes = []struct {
	name    string
	part    float64
	count   int
	seconds int64
}{
	{"A", .03125, 75, 267}, {"B", .0625, 9, 322}, {"C", .5, 3, 534}, {"D", .25, 3, 616}, {"E", .5, 3, 315}, {"F", .0625, 9, 1846}, {"G", .125, 6, 1334},
	{"H", .1582, 6, 1067}, {"I", .03125, 24, 1432}, {"J", .0625, 24, 725}, {"K", .0957, 15, 487}, {"L", .125, 36, 366}, {"M", .25, 15, 187}, {"Z", 1, 2, 100},
}

// The least time of the jobs, as printed with table 2.2, and as it really sums up, in seconds.
const (
	ESPPrinted = 10773
	ESPBest    = 11003
)

const (
	espFirstZ, espNextZ = 2400, 7200
	espMore             = 4   // cores that dynamic jobs need
	espAfter            = .16 // share of their time
	espAgain            = .25 // share of their time after which they ask again
)

// scaled returns a scaled time of the benchmark, at least a second.
func (b ESP) scaled(seconds float64) int64 {
	return max(int64(math.Round(seconds/max(b.Time, 1))), 1)
}

// faster returns how long a job takes with the cores that it wanted, if it would take that many
// seconds on n.
func faster(seconds int64, n int) int64 {
	return int64(math.Round(float64(seconds*int64(n)) / float64(n+espMore)))
}

// demand returns the demand of a dynamic job that takes that many seconds on n cores.
func (b ESP) demand(seconds int64, n int) *Demand {
	at := func(part float64) int64 { return b.scaled(part * float64(seconds)) }
	all := b.scaled(float64(seconds))
	return &Demand{Nodes: espMore, At: []int64{at(espAfter), at(espAgain)}, Left: func(at int64) int64 {
		if b.Whole {
			return max(faster(all, n)-at, 1)
		}
		return faster(all-at, n)
	}}
}

// Jobs returns the benchmark's jobs in order of submission.
func (b ESP) Jobs() []Submission {
	chance := rand.New(rand.NewPCG(b.Seed, 230))
	var all []Submission
	for _, t := range espTypes[:len(espTypes)-1] {
		for i := range t.count {
			n, seconds := max(int(math.Round(t.part*float64(b.Cores))), 1), b.scaled(float64(t.seconds))
			s := Submission{ID: fmt.Sprintf("%s%d", t.name, i+1), Profile: planner.Profile{{Duration: seconds, Nodes: n}}, User: len(all) % 20}
			switch dynamic := b.Dynamic && t.name >= "F" && t.name <= "J" && n+espMore <= b.Cores; {
			case dynamic && b.Ask:
				s.Demand = b.demand(t.seconds, n)
			case dynamic:
				first := b.scaled(espAfter * float64(t.seconds))
				s.Profile = planner.Profile{{Duration: first, Nodes: n}, {Duration: faster(seconds-first, n), Nodes: n + espMore}}
			default:
				s.Limit = seconds + 60
			}
			all = append(all, s)
		}
	}
	chance.Shuffle(len(all), func(i, k int) { all[i], all[k] = all[k], all[i] })
	speed := max(b.Time, 1)
	for i := range all {
		at := espFirstZ/2 + espFirstZ/6*chance.NormFloat64()
		if at = min(max(at, 0), espFirstZ-1); b.Burst {
			at = float64(max(i-49, 0) * 30)
		}
		all[i].Submit = int64(at / speed)
	}
	slices.SortStableFunc(all, func(a, b Submission) int { return cmp.Compare(a.Submit, b.Submit) })
	if b.Full {
		z := espTypes[len(espTypes)-1]
		for i, at := range []float64{espFirstZ, espNextZ} {
			seconds := b.scaled(float64(z.seconds))
			all = append(all, Submission{ID: fmt.Sprint(z.name, i+1), Submit: b.scaled(at), Profile: planner.Profile{{Duration: seconds, Nodes: b.Cores}}, Limit: seconds + 60, First: true})
		}
	}
	for i := range all {
		all[i].Planned, all[i].Aim = b.Planned, b.Aim
	}
	return all
}

// ESPResult is the result of a run.
type ESPResult struct {
	Elapsed    int64     `json:"elapsed"`      // seconds from the first submission to the last end
	Printed    float64   `json:"printed"`      // efficiency in percent, by the printed least time
	Efficiency float64   `json:"efficiency"`   // by the sum of the jobs' work
	Throughput float64   `json:"throughput"`   // jobs a minute
	Wait       float64   `json:"wait"`         // seconds, on average
	Got        float64   `json:"got"`          // dynamic jobs that got more cores
	Moved      float64   `json:"moved"`        // jobs that waited longer for that
	Later      float64   `json:"later"`        // seconds that they lost, on average over all jobs
	Latest     float64   `json:"latest"`       // and at most, in a job
	On         []float64 `json:"on,omitempty"` // jobs that began on one island, two, …
}

// Run runs the benchmark on the experiment's Slurm, with its strategy and configuration. With
// atPeak, evolving jobs are rigid at their largest size.
func (b ESP) Run(ctx context.Context, e Experiment, atPeak bool) (ESPResult, error) {
	e.Jobs = b.Jobs()
	tree, err := b.tree()
	if err != nil {
		return ESPResult{}, err
	}
	if e.Islands = tree.Switches; b.Tree {
		e.Cluster.Topology = tree
	}
	if len(e.Cluster.NodeList) != b.Cores {
		e.Cluster.Nodes, e.Cluster.NodeList = b.Cores, nil
	}
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
	result := b.Result(r.Metrics.Makespan-e.Jobs[0].Submit, len(e.Jobs))
	result.Wait, result.On = r.Metrics.Wait.Mean, make([]float64, len(b.Islands))
	for _, j := range r.Jobs {
		if j.Islands > 0 {
			result.On[j.Islands-1]++
		}
		if n := len(j.Steps); n > 0 && j.Steps[n-1].Nodes > j.Steps[0].Nodes {
			result.Got++
		}
	}
	for _, seconds := range r.Metrics.Moved {
		result.Moved++
		result.Later += float64(seconds) / float64(len(e.Jobs))
		result.Latest = max(result.Latest, float64(seconds))
	}
	return result, nil
}

// tree returns the islands below one switch.
func (b ESP) tree() (t slurmctl.Topology, err error) {
	var lists []string
	first := 1
	for _, cores := range b.Islands {
		lists = append(lists, fmt.Sprintf("n[%d-%d]", first, first+cores-1))
		first += cores
	}
	return t, addSwitches(&t, lists)
}

// Least returns how many jobs need one island at least, two, …
func (b ESP) Least() []int {
	sizes := slices.Sorted(slices.Values(b.Islands))
	slices.Reverse(sizes)
	on := make([]int, len(sizes))
	for _, j := range b.Jobs() {
		left := j.Profile.Peak()
		for i, cores := range sizes {
			if left -= cores; left <= 0 {
				on[i]++
				break
			}
		}
	}
	return on
}

// Result returns the result for that many jobs in that many seconds.
func (b ESP) Result(elapsed int64, jobs int) ESPResult {
	best := b.Best()
	printed := best - (ESPBest-ESPPrinted)/max(b.Time, 1)
	return ESPResult{Elapsed: elapsed, Printed: 100 * printed / float64(elapsed), Efficiency: 100 * best / float64(elapsed), Throughput: 60 * float64(jobs) / float64(elapsed)}
}

// Best returns the seconds that the jobs' work would take packed without gaps, by the exact shares
// of the system, not by whole cores.
func (b ESP) Best() (seconds float64) {
	for _, t := range espTypes {
		if t.name != "Z" || b.Full {
			seconds += t.part * float64(t.count) * float64(b.scaled(float64(t.seconds)))
		}
	}
	return seconds
}
