package sim

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/evoslurm/evoslurm/planner/malleable"
)

// das3 is the nodes of the DAS-3's clusters (Buisson et al. 2007, table I).
var das3 = []int{85, 41, 68, 46, 32}

// Koala is the experiment of Buisson et al. 2007: what its text says (sections VI and VII) is
// fixed, what it leaves open is a field; see doc.go.
type Koala struct {
	Jobs       int `json:"jobs"`
	Background int `json:"background"`  // percent of every cluster in use by other users
	Threshold  int `json:"threshold"`   // percent of every cluster above which KOALA's jobs do not grow (V-B)
	Poll       int `json:"poll"`        // seconds between two polls of the scheduler
	Claim      int `json:"claim"`       // seconds to get a further processor, one after the other (V-A)
	Adapt      int `json:"adapt"`       // seconds during which an application pauses at a change
	BestGadget int `json:"best_gadget"` // processors on which GADGET 2 is fastest (4 min); no slower on more
	BestFT     int `json:"best_ft"`     // the same for FT (1 min)
}

// DefaultKoala comes closest to the figures in the text.
var DefaultKoala = Koala{Jobs: 300, Threshold: 15, Poll: 10, Claim: 5, Adapt: 10, BestGadget: 32, BestFT: 16}

// Validate returns what cannot be simulated.
func (k Koala) Validate() error {
	for _, v := range []struct {
		name             string
		got, least, most int
	}{
		{"jobs", k.Jobs, 1, 100_000}, {"background", k.Background, 0, 97}, {"threshold", k.Threshold, 1, 100}, {"poll", k.Poll, 1, 3600}, {"claim", k.Claim, 0, 3600},
		{"adapt", k.Adapt, 0, 3600}, {"best-gadget", k.BestGadget, 3, 46}, {"best-ft", k.BestFT, 4, 32},
	} {
		if v.got < v.least || v.got > v.most {
			return fmt.Errorf("%s: %d is not within %d … %d", v.name, v.got, v.least, v.most)
		}
	}
	return nil
}

// KoalaRun is a row: a workload under a policy, the mean of all runs. Times are seconds, sizes
// processors.
type KoalaRun struct {
	Workload string `json:"workload"` // Wm, Wmr, W'm, W'mr
	Approach string `json:"approach"`
	Policy   string `json:"policy"`

	MeanSize    float64 `json:"mean_size"` // of malleable jobs, averaged over their execution
	MaxSize     float64 `json:"max_size"`  // largest size of malleable jobs
	Stuck       float64 `json:"stuck"`     // percent of malleable jobs that never had more than 2
	StuckFT     float64 `json:"stuck_ft"`
	Execution   float64 `json:"execution"`
	FT          float64 `json:"execution_ft"` // of malleable jobs, like GADGET 2's
	Gadget      float64 `json:"execution_gadget"`
	Wait        float64 `json:"wait"`
	Response    float64 `json:"response"`
	Utilisation float64 `json:"utilisation"` // percent of what other users leave, during submissions
	Grows       float64 `json:"grows"`
	Shrinks     float64 `json:"shrinks"`
	Late        float64 `json:"late_changes"` // percent of the changes after half of the submissions

	Short float64 `json:"ft_below_200"`     // percent of all FT jobs
	Long  float64 `json:"gadget_above_400"` // percent of all GADGET 2 jobs
}

// KoalaResult is the result of the experiment.
type KoalaResult struct {
	Koala    Koala          `json:"parameters"`
	Runs     int            `json:"runs"`
	Seed     uint64         `json:"seed"`
	Rows     []KoalaRun     `json:"rows"`
	Findings []KoalaFinding `json:"findings"`
}

// Play plays every workload under each policy, that many times with seeds from seed on. progress,
// if not nil, is called before each; an error from it ends the experiment.
func (k Koala) Play(runs int, seed uint64, policies []malleable.Policy, progress func() error) (KoalaResult, error) {
	if err := k.Validate(); err != nil {
		return KoalaResult{}, err
	}
	result := KoalaResult{Koala: k, Runs: runs, Seed: seed}
	each := make([][]KoalaRun, runs) // all rows of each run
	for _, w := range []struct {
		name     string
		approach malleable.Approach
		rigid    bool
		interval int
	}{{"Wm", malleable.PRA, false, 120}, {"Wmr", malleable.PRA, true, 120}, {"W'm", malleable.PWA, false, 30}, {"W'mr", malleable.PWA, true, 30}} {
		for _, p := range policies {
			row := KoalaRun{Workload: w.name, Approach: w.approach.String(), Policy: p.Name()}
			for run := range runs {
				if progress != nil {
					if err := progress(); err != nil {
						return KoalaResult{}, err
					}
				}
				s := newKoalaSim(k, w.approach, p)
				s.submit(w.rigid, w.interval, rand.New(rand.NewPCG(seed+uint64(run), 0)))
				if err := s.play(); err != nil {
					return KoalaResult{}, fmt.Errorf("%s, %s: %w", w.name, p.Name(), err)
				}
				s.add(&row, float64(runs))
				one := KoalaRun{Workload: row.Workload, Policy: row.Policy}
				s.add(&one, 1)
				each[run] = append(each[run], one)
			}
			result.Rows = append(result.Rows, row)
		}
	}
	result.Findings = k.findings(result.Rows, each)
	return result, nil
}

// times returns an application's seconds on 1, 2, … processors: a serial and a parallel part
// through the two end points in the text, and no faster beyond.
func times(two, best float64, at, most int) []float64 {
	parallel := (two - best) / (1.0/2 - 1/float64(at))
	serial := two - parallel/2
	all := make([]float64, most+1)
	for n := 1; n <= most; n++ {
		all[n] = serial + parallel/float64(min(n, at))
	}
	return all
}

// koalaJob is a job with its simulation state.
type koalaJob struct {
	malleable.Job // Nodes is its allocation
	ft, rigid     bool
	times         []float64
	submitted     int
	started       int
	ended         int // 0 until it ends
	cluster       int

	used    int     // processors that it computes on
	done    float64 // share of its work, up to 1
	next    int     // processors after the current change
	changes int     // second at which that change is done; 0 for none
	still   int     // it pauses until then
	area    float64 // processor-seconds
	most    int
}

type koalaSim struct {
	Koala
	approach  malleable.Approach
	policy    malleable.Policy
	nodes     []int // of each cluster that others leave
	jobs      []*koalaJob
	queue     []*koalaJob
	running   []*koalaJob
	interval  int
	submitted int     // jobs
	busy      float64 // processor-seconds while jobs are submitted
	grows     int
	shrinks   int
	late      int // changes after half of the submissions
}

func newKoalaSim(k Koala, a malleable.Approach, p malleable.Policy) *koalaSim {
	s := &koalaSim{Koala: k, approach: a, policy: p}
	for _, n := range das3 {
		s.nodes = append(s.nodes, max(n*(100-k.Background)/100, 2))
	}
	return s
}

// submit draws the workload: both applications alike, one every interval.
func (s *koalaSim) submit(rigid bool, interval int, random *rand.Rand) {
	gadget, ft := times(600, 240, s.BestGadget, 46), times(120, 60, s.BestFT, 32)
	s.interval = interval
	for i := range s.Jobs {
		j := &koalaJob{submitted: i * interval, ft: random.IntN(2) == 0}
		j.ID, j.Min = fmt.Sprint(i+1), 2
		j.Max, j.times = 46, gadget
		if j.ft {
			j.Max, j.times, j.Sizes = 32, ft, malleable.Pow2
		}
		if even := random.IntN(2) == 0; rigid && even { // drawn in any case, so that Wm and Wmr have the same applications
			j.rigid = true
		}
		speedup := make(malleable.Table, 0, j.Max)
		for n := 1; n <= j.Max; n++ {
			speedup = append(speedup, malleable.Point{Nodes: n, Speedup: j.times[1] / j.times[n]})
		}
		j.Speedup = speedup
		s.jobs = append(s.jobs, j)
	}
}

// play runs second by second until all jobs have ended.
func (s *koalaSim) play() error {
	for now := 0; ; now++ {
		if s.second(now) {
			return nil
		}
		if now > s.Jobs*(s.interval+3600) {
			return fmt.Errorf("after %d s there are still %d jobs", now, len(s.running)+len(s.queue))
		}
	}
}

// second simulates one second and reports whether all jobs have ended.
func (s *koalaSim) second(now int) (end bool) {
	for s.submitted < len(s.jobs) && s.jobs[s.submitted].submitted <= now {
		s.queue = append(s.queue, s.jobs[s.submitted])
		s.submitted++
	}
	s.settle(now)
	if now%s.Poll == 0 {
		s.manage(now)
	}
	s.compute(now, now < s.Jobs*s.interval)
	return len(s.running)+len(s.queue) == 0 && s.submitted == len(s.jobs)
}

// settle completes changes whose time has come.
func (s *koalaSim) settle(now int) {
	for _, j := range s.running {
		if j.changes == 0 || j.changes > now {
			continue
		}
		if j.next > j.used {
			j.still = now + s.Adapt
		}
		j.used, j.Nodes, j.changes, j.Held = j.next, j.next, 0, false
		j.most = max(j.most, j.used)
	}
}

// compute advances all applications by a second.
func (s *koalaSim) compute(now int, counts bool) {
	for _, j := range s.running {
		if counts {
			s.busy += float64(j.Nodes)
		}
		j.area += float64(j.used)
		if now >= j.still {
			j.done += 1 / j.times[j.used]
		}
		if j.done > 1-1e-9 {
			j.ended = now + 1
		}
	}
	s.running = slices.DeleteFunc(s.running, func(j *koalaJob) bool { return j.ended > 0 })
}

// manage is KOALA's manager. It assigns jobs to clusters by worst fit: the cluster with the most
// idle processors or, if no cluster has room, the one that can free the most. Then it manages each
// cluster separately.
func (s *koalaSim) manage(now int) {
	states := make([]malleable.State, len(s.nodes))
	idle := slices.Clone(s.nodes) // not assigned yet
	can := slices.Clone(s.nodes)  // the same after running jobs have given all they can
	on := make([][]*koalaJob, len(s.nodes))
	for _, j := range s.running {
		idle[j.cluster] -= j.Nodes
		if j.rigid {
			can[j.cluster] -= j.Nodes
			continue
		}
		can[j.cluster] -= j.Nodes - j.Reclaimable()
		if j.changes > 0 && j.next < j.Nodes {
			states[j.cluster].Coming += j.Nodes - j.next
			can[j.cluster] += j.Nodes - j.next
		}
		on[j.cluster] = append(on[j.cluster], j)
		states[j.cluster].Jobs = append(states[j.cluster].Jobs, j.Job)
	}
	for c := range states {
		states[c].Free = idle[c]
		used := s.nodes[c] - idle[c]
		for _, j := range on[c] {
			used -= j.Nodes
		}
		states[c].Threshold = max(s.nodes[c]*s.Koala.Threshold/100-used, 1)
	}
	waiting := make([][]*koalaJob, len(s.nodes))
	for _, j := range s.queue {
		c := most(idle)
		if idle[c] < j.Min {
			c = most(can)
		}
		idle[c], can[c] = idle[c]-j.Min, can[c]-j.Min
		waiting[c] = append(waiting[c], j)
		states[c].Waiting = append(states[c].Waiting, malleable.Waiting{ID: j.ID, Nodes: j.Min})
	}
	for c, state := range states {
		d := malleable.Manage(s.approach, s.policy, state, malleable.Declared)
		for _, i := range d.Start {
			s.start(waiting[c][i], c, now)
		}
		for _, change := range d.Changes {
			s.change(on[c][change.Job], change, now)
		}
	}
	s.queue = slices.DeleteFunc(s.queue, func(j *koalaJob) bool { return j.Nodes > 0 })
}

func most(of []int) int {
	best := 0
	for c, n := range of {
		if n > of[best] {
			best = c
		}
	}
	return best
}

func (s *koalaSim) start(j *koalaJob, cluster, now int) {
	j.cluster, j.started, j.Start = cluster, now, int64(now)
	j.Nodes, j.used, j.most = j.Min, j.Min, j.Min
	s.running = append(s.running, j)
}

// change starts a change. Processors are claimed while the application continues with what it has;
// processors that it returns are free once it has adapted.
func (s *koalaSim) change(j *koalaJob, c malleable.Change, now int) {
	j.next, j.Held = c.Size(j.Job), true
	if c.Kind == malleable.Grow {
		s.grows++
		j.Nodes = j.next
		j.changes = now + max(s.Claim*c.Accepted, 1)
	} else {
		s.shrinks++
		j.used = j.next
		j.still = now + s.Adapt
		j.changes = now + max(s.Adapt, 1)
	}
	if 2*now > s.Jobs*s.interval {
		s.late++
	}
}

// add adds a run's results to a row, as one of that many runs.
func (s *koalaSim) add(row *KoalaRun, runs float64) {
	mean := func(value func(j *koalaJob) float64, which func(j *koalaJob) bool) float64 {
		sum, n := 0.0, 0
		for _, j := range s.jobs {
			if which(j) {
				sum += value(j)
				n++
			}
		}
		return sum / float64(max(n, 1)) / runs
	}
	all := func(*koalaJob) bool { return true }
	changing := func(j *koalaJob) bool { return !j.rigid }
	percent := func(is func(j *koalaJob) bool) func(*koalaJob) float64 {
		return func(j *koalaJob) float64 {
			if is(j) {
				return 100
			}
			return 0
		}
	}
	execution := func(j *koalaJob) float64 { return float64(j.ended - j.started) }
	stuck := percent(func(j *koalaJob) bool { return j.most == j.Min })
	row.MeanSize += mean(func(j *koalaJob) float64 { return j.area / execution(j) }, changing)
	row.MaxSize += mean(func(j *koalaJob) float64 { return float64(j.most) }, changing)
	row.Stuck += mean(stuck, changing)
	row.StuckFT += mean(stuck, func(j *koalaJob) bool { return !j.rigid && j.ft })
	row.Execution += mean(execution, all)
	row.FT += mean(execution, func(j *koalaJob) bool { return !j.rigid && j.ft })
	row.Gadget += mean(execution, func(j *koalaJob) bool { return !j.rigid && !j.ft })
	row.Wait += mean(func(j *koalaJob) float64 { return float64(j.started - j.submitted) }, all)
	row.Response += mean(func(j *koalaJob) float64 { return float64(j.ended - j.submitted) }, all)
	row.Short += mean(percent(func(j *koalaJob) bool { return execution(j) < 200 }), func(j *koalaJob) bool { return j.ft })
	row.Long += mean(percent(func(j *koalaJob) bool { return execution(j) > 400 }), func(j *koalaJob) bool { return !j.ft })
	nodes := 0
	for _, n := range s.nodes {
		nodes += n
	}
	row.Utilisation += 100 * s.busy / float64(nodes*s.Jobs*s.interval) / runs
	row.Grows += float64(s.grows) / runs
	row.Shrinks += float64(s.shrinks) / runs
	row.Late += 100 * float64(s.late) / float64(max(s.grows+s.shrinks, 1)) / runs
}
