package sim

import "math/rand/v2"

// das3Names names the DAS-3's clusters (Buisson et al. 2007, table I), in the order of das3.
var das3Names = []string{"VU", "UvA", "Delft", "MultimediaN", "Leiden"}

// delft is the only cluster without Myri-10G, by which the others reach the lightpaths.
const delft = 2

// networks returns the gigabits per second from cluster to cluster. Each cluster has 1 Gbit/s to the
// Internet, and lightpaths of 10 Gbit/s start at the clusters' Myri-10G switches
// (https://www.cs.vu.nl/das3/starplane.shtml).
var networks = map[string]func() [][]float64{
	"internet":   func() [][]float64 { return bandwidths(func(int, int) bool { return false }) },
	"lightpaths": func() [][]float64 { return bandwidths(func(a, b int) bool { return a != delft && b != delft }) },
}

func bandwidths(lightpath func(a, b int) bool) (all [][]float64) {
	for a := range das3 {
		row := make([]float64, len(das3))
		for b := range das3 {
			if row[b] = 1; lightpath(a, b) {
				row[b] = 10
			}
		}
		all = append(all, row)
	}
	return all
}

// placementFile is a row of the replica table.
type placementFile struct {
	gigabytes int
	on        []bool // by cluster
}

// seconds returns how long the file takes to a cluster, from the replica with the most bandwidth; 0 if it is there.
func (f *placementFile) seconds(to int, bandwidth [][]float64) int64 {
	best := 0.
	for from, has := range f.on {
		if has && from == to {
			return 0
		}
		if has {
			best = max(best, bandwidth[from][to])
		}
	}
	return int64(8*float64(f.gigabytes)/best + .5)
}

// placementJob is a job, of the grid or of a cluster's local user.
type placementJob struct {
	submit        int64
	components    []int // nodes of each
	nodes         int   // of all components
	takes         int64 // seconds in one cluster
	communication float64
	file          *placementFile // nil: none

	parts     []placementPart // where it is placed
	ready     int64           // second at which its files are there
	start     int64
	limit     int64 // second at which its requested time ends
	end       int64
	staged    []int64 // seconds of each transfer
	extension float64 // time on several clusters, as a multiple of the time on one
}

type placementPart struct{ cluster, nodes int }

// placementJobs holds the jobs of a run.
type placementJobs struct {
	jobs        []placementJob
	background  int   // percent
	length      int64 // mean seconds of a local job
	first, last int64 // seconds of the first and the last submission
}

const (
	// warmUp is how many seconds only local jobs arrive, on empty clusters.
	warmUp = 4 * 3600
	// placementFiles is the number of files in the replica table.
	placementFiles = 50
)

// draw draws the jobs of a workload. files and replicated have the same jobs.
func (p Placement) draw(workload string, seed uint64) placementJobs {
	random := rand.New(rand.NewPCG(seed, 0))
	w := placementJobs{background: p.Background, length: 1800, first: warmUp, last: warmUp}
	if workload == "cigri" { // the whole bag at once; local jobs as in table 4.2 of Georgiou's thesis
		w.background, w.length, w.last = CigriTables[1].Load, CigriTables[1].Length, warmUp+CigriTables[1].Seconds
		for range p.Jobs {
			w.jobs = append(w.jobs, placementJob{submit: warmUp, components: []int{1}, nodes: 1, takes: CigriTables[1].Bag.Task})
		}
		return w
	}
	var files []placementFile
	replicas := map[string]int{"files": 1, "replicated": p.Replicas}[workload]
	for range placementFiles {
		f := placementFile{gigabytes: p.File >> random.IntN(3), on: make([]bool, len(das3))}
		for _, c := range random.Perm(len(das3))[:replicas] {
			f.on[c] = true
		}
		files = append(files, f)
	}
	gadget, ft := times(600, 240, DefaultKoala.BestGadget, 46), times(120, 60, DefaultKoala.BestFT, 32)
	area := 0.
	for range p.Jobs {
		j := placementJob{communication: 2 * float64(p.Communication) / 100 * random.Float64()}
		scale, isFT, seconds, file := random.IntN(3), random.IntN(2) == 0, 120+random.Int64N(481), random.IntN(placementFiles)
		switch {
		case workload == "components":
			j.components, j.takes = []int{4 << scale, 4 << scale, 4 << scale, 4 << scale}, seconds
		case isFT:
			j.components = []int{2 << scale, 2 << scale}
			j.takes = int64(ft[4<<scale] + .5)
		default:
			j.components = []int{4 << scale, 4 << scale}
			j.takes = int64(gadget[8<<scale] + .5)
		}
		for _, n := range j.components {
			j.nodes += n
		}
		if replicas > 0 {
			j.file = &files[file]
		}
		area += float64(j.nodes) * float64(j.takes)
		w.jobs = append(w.jobs, j)
	}
	all := 0
	for _, n := range das3 {
		all += n
	}
	gap, at := area*100/float64(p.Jobs*all*p.Load), float64(warmUp)
	for i := range w.jobs {
		w.jobs[i].submit = int64(at)
		w.last = int64(at)
		at += gap * random.ExpFloat64()
	}
	return w
}

// localUsers draws the jobs of a cluster's local users, one after the other: powers of two up to a
// quarter of the cluster, Poisson arrivals, exponential times.
type localUsers struct {
	random *rand.Rand
	sizes  []int
	gap    float64 // mean seconds between arrivals
	length float64
	at     float64 // of the next one
}

// noLocalJob is a second beyond all experiments.
const noLocalJob = 1 << 50

func newLocalUsers(cluster int, w *placementJobs, seed uint64) *localUsers {
	l := &localUsers{random: rand.New(rand.NewPCG(seed, 1+uint64(cluster))), length: float64(w.length), at: noLocalJob}
	sum := 0
	for n := 1; n <= das3[cluster]/4; n *= 2 {
		l.sizes = append(l.sizes, n)
		sum += n
	}
	if w.background > 0 {
		l.gap = float64(sum) / float64(len(l.sizes)) * l.length * 100 / float64(das3[cluster]*w.background)
		l.at = l.gap * l.random.ExpFloat64()
	}
	return l
}

// next returns the next job, and draws the time of the one after it.
func (l *localUsers) next() *placementJob {
	n := l.sizes[l.random.IntN(len(l.sizes))]
	j := &placementJob{submit: int64(l.at), components: []int{n}, nodes: n, takes: 1 + int64(l.length*l.random.ExpFloat64())}
	l.at += l.gap * l.random.ExpFloat64()
	return j
}
