package fidelity_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/internal/config"
	"github.com/evoslurm/evoslurm/adapter/internal/drivemode"
	"github.com/evoslurm/evoslurm/adapter/lab/simulate"
	"github.com/evoslurm/evoslurm/planner"
	"github.com/evoslurm/evoslurm/slurmctl"
	"github.com/evoslurm/evoslurm/slurmctl/slurmsim"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest/must"
)

var (
	recordings = flag.String("fidelity.recordings", "testdata", "folder of what a real Slurm with the sidecar has made of random workloads")
	phases     = flag.Int("fidelity.phases", 2, "how many moments of a second TestFidelity tries for each of slurmctld's loops and the sidecar's polls")
	everyJob   = flag.Bool("fidelity.jobs", false, "tell of every job")
)

// arrival is a job of a workload: stock with one step, else evolving.
type arrival struct {
	After   time.Duration
	Profile planner.Profile
	Drive   drivemode.Mode
	Limit   time.Duration
}

func (a arrival) evolves() bool { return len(a.Profile) > 1 }

// drives lists the drive modes that jobs of a workload request.
var drives = []drivemode.Mode{drivemode.Merge, drivemode.Companion, drivemode.Chain}

// workload is random jobs that keep a cluster busy for a minute or two, two of five of them
// evolving.
func workload(seed uint64, nodes int) []arrival {
	r := rand.New(rand.NewPCG(seed, uint64(1000+nodes)))
	size := func() int { return 1 + min(r.IntN(nodes), r.IntN(nodes)) }
	var all []arrival
	at := time.Duration(0)
	for i := range 12 {
		at += time.Duration(r.IntN(5000)) * time.Millisecond
		a := arrival{After: at, Profile: planner.Profile{{Duration: int64(5 + r.IntN(15)), Nodes: size()}}}
		if i%5 == 1 || i%5 == 3 {
			a.Profile, a.Drive = nil, drives[r.IntN(len(drives))]
			for range 2 + r.IntN(3) {
				a.Profile = append(a.Profile, planner.Step{Duration: int64(5 + r.IntN(10)), Nodes: size()})
			}
			a.Limit = time.Duration(a.Profile.Duration()/60+2) * time.Minute
		} else {
			a.Limit = time.Duration(1+r.IntN(4)) * time.Minute
		}
		all = append(all, a)
	}
	return all
}

// played is the outcome of a workload.
type played struct {
	Seed  uint64
	Nodes int
	Load  string    // of the machine, before and after
	Begun time.Time // before the first submission
	Jobs  []playedJob
}

// playedJob has times in seconds from Begun.
type playedJob struct {
	Submitted float64   // when the command had returned
	Steps     []float64 // when each began, as its script saw it; of a stock job its start
	Nodes     []int     // that it had then
	End       float64   // of the script
}

func seconds(d time.Duration) float64 { return d.Round(time.Millisecond).Seconds() }

// compared is how two runs of workloads differ.
type compared struct {
	starts, jobs   int // within a second; of so many
	changes, steps int // the same of steps that are not the first
	swaps, pairs   int // jobs that start clearly in another order
	makespan       []float64
	late           []float64 // differences of the durations of changes after steps that began alike
}

func near(a, b float64) bool { return math.Abs(a-b) < 1.0005 }

func compare(a, b played) (c compared) {
	end := func(p played) (last float64) {
		for _, j := range p.Jobs {
			last = max(last, j.End)
		}
		return last
	}
	c.makespan = []float64{end(a)/end(b) - 1}
	for i, x := range a.Jobs {
		y := b.Jobs[i]
		c.jobs++
		if len(x.Steps) == 0 || len(y.Steps) == 0 {
			continue
		}
		if near(x.Steps[0], y.Steps[0]) {
			c.starts++
		}
		for k := range i {
			u, v := a.Jobs[k], b.Jobs[k]
			if len(u.Steps) == 0 || len(v.Steps) == 0 {
				continue
			}
			c.pairs++
			p, q := x.Steps[0]-u.Steps[0], y.Steps[0]-v.Steps[0]
			if p > 1 && q < -1 || p < -1 && q > 1 {
				c.swaps++
			}
		}
		for k := 1; k < max(len(x.Steps), len(y.Steps)); k++ {
			c.steps++
			if k < len(x.Steps) && k < len(y.Steps) {
				if near(x.Steps[k], y.Steps[k]) {
					c.changes++
				}
				if near(x.Steps[k-1], y.Steps[k-1]) {
					c.late = append(c.late, x.Steps[k]-x.Steps[k-1]-(y.Steps[k]-y.Steps[k-1]))
				}
			}
		}
	}
	return c
}

func (c compared) add(o compared) compared {
	return compared{c.starts + o.starts, c.jobs + o.jobs, c.changes + o.changes, c.steps + o.steps, c.swaps + o.swaps, c.pairs + o.pairs,
		append(c.makespan, o.makespan...), append(c.late, o.late...)}
}

// fits returns how many starts and step changes are the same.
func (c compared) fits() int { return c.starts + c.changes }

func (c compared) String() string {
	off := make([]float64, len(c.makespan))
	for i, m := range c.makespan {
		off[i] = 100 * math.Abs(m)
	}
	slices.Sort(off)
	return fmt.Sprintf("%d of %d starts and %d of %d step changes within a second, %d of %d pairs in another order, makespan off by %.1f %% (median), %.1f %% (worst)",
		c.starts, c.jobs, c.changes, c.steps, c.swaps, c.pairs, off[len(off)/2], off[len(off)-1])
}

// TestFidelity plays the recorded workloads on the model: every job gets in each of its steps
// what it got on the real Slurm. It prints how far the times differ (adapter/BENCHMARKS.md):
// one run of a real Slurm is not like the next.
func TestFidelity(t *testing.T) {
	files, err := filepath.Glob(*recordings + "/*a.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("no recordings: %v", err)
	}
	type result struct {
		plain, fit compared
		again      *compared // the real one, of itself
	}
	results := make([]result, len(files))
	t.Run("workloads", func(t *testing.T) {
		for i, file := range files {
			t.Run(strings.TrimSuffix(filepath.Base(file), ".json"), func(t *testing.T) {
				t.Parallel()
				first := read(t, file)
				m := model(t, first, moment{})
				r := result{plain: compare(first, m)}
				r.fit = r.plain
				for i, j := range m.Jobs {
					if !slices.Equal(j.Nodes, first.Jobs[i].Nodes) {
						t.Errorf("job %d has %v nodes in its steps, on the real Slurm %v", i+1, j.Nodes, first.Jobs[i].Nodes)
					}
				}
				t.Logf("load %s: %s", first.Load, r.plain)
				if *everyJob {
					tellJobs(t, first, m)
				}
				for k := range *phases * *phases * *phases {
					step := time.Second / time.Duration(*phases)
					at := moment{time.Duration(k%*phases) * step, time.Duration(k / *phases % *phases) * step, time.Duration(k / *phases / *phases) * step}
					if o := compare(first, model(t, first, at)); o.fits() > r.fit.fits() {
						r.fit = o
					}
				}
				t.Logf("with the phases that fit best: %s", r.fit)
				if second := strings.Replace(file, "a.json", "b.json", 1); exists(second) {
					again := compare(first, read(t, second))
					t.Logf("the real one, again: %s", again)
					r.again = &again
				}
				results[i] = r
			})
		}
	})
	var total, fit, twice, floor compared
	for _, r := range results {
		total, fit = total.add(r.plain), fit.add(r.fit)
		if r.again != nil {
			floor, twice = floor.add(*r.again), twice.add(r.plain)
		}
	}
	t.Logf("all: %s", total)
	t.Logf("with the phases that fit best: %s", fit)
	if floor.jobs > 0 {
		t.Logf("of those that were played twice: %s", twice)
		t.Logf("the real one against itself: %s", floor)
	}
}

func tellJobs(t *testing.T, real, m played) {
	for i, a := range workload(real.Seed, real.Nodes) {
		t.Logf("  %2d: %v %s, limit %v, submitted %.2f: %v, end %.2f; by the model %v, end %.2f", i+1, a.Profile, a.Drive, a.Limit,
			real.Jobs[i].Submitted, real.Jobs[i].Steps, real.Jobs[i].End, m.Jobs[i].Steps, m.Jobs[i].End)
	}
}

func exists(file string) bool { _, err := os.Stat(file); return err == nil }

func read(t *testing.T, file string) (p played) {
	text, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(text, &p)
	}
	must.OK(t, err)
	return p
}

// moment says when in a second slurmctld's loops run and the sidecar polls.
type moment struct{ loop, backfill, poll time.Duration }

// calling is how long a script is busy with evosctl next beyond what the sidecar and Slurm
// take: in the recordings the median of step changes that change no nodes.
const calling = 70 * time.Millisecond

// recorded returns the latencies of the machine on which the recordings were made, as their step
// changes have them (adapter/BENCHMARKS.md).
func recorded() slurmsim.Latency {
	l := slurmsim.Measured()
	l.Launch, l.Release = 100*time.Millisecond, 300*time.Millisecond
	l.Merge, l.Shrink = 490*time.Millisecond, 320*time.Millisecond
	return l
}

// model plays on the model what a real Slurm was given, as it was given.
func model(t *testing.T, real played, at moment) played {
	m := played{Seed: real.Seed, Nodes: real.Nodes, Begun: real.Begun, Jobs: make([]playedJob, len(real.Jobs))}
	latency := recorded()
	ended := map[slurmctl.JobID]*playedJob{}
	const warm = 20 * time.Second
	var begun time.Time
	since := func(at time.Time) float64 { return seconds(at.Sub(begun)) }
	c := slurmsim.New(slurmsim.Options{Nodes: real.Nodes, Accounting: true, PermitJobExpansion: true, Start: real.Begun.Add(-warm), Latency: latency,
		LoopPhase: at.loop, BackfillPhase: at.backfill, SchedInterval: time.Second, SchedDelay: time.Second, SchedMinInterval: 100 * time.Millisecond,
		BackfillInterval: time.Second, KillWait: 2 * time.Second,
		Events: func(e slurmsim.Event) {
			j := ended[e.Job]
			switch {
			case j == nil:
			case e.Nodes > 0 && len(j.Steps) == 0:
				j.Steps, j.Nodes = append(j.Steps, since(e.At.Add(latency.Launch))), append(j.Nodes, e.Nodes)
			case e.Nodes == 0:
				j.End = max(j.End, since(e.At)-latency.Release.Seconds())
			}
		}})
	defer c.Close()
	begun = c.Now().Add(warm)
	strategy, _ := planner.StrategyByName("noX")
	s := &simulate.Sidecar{Cluster: c, Database: simulate.NewDatabase(), Config: config.Default(), Strategy: strategy}
	c.Sleep(10*time.Second + at.poll)
	s.Start()
	var apps []*simulate.App
	for i, a := range workload(real.Seed, real.Nodes) {
		c.Sleep(begun.Add(time.Duration(real.Jobs[i].Submitted*1e9) - 6*time.Millisecond).Sub(c.Now()))
		j := &m.Jobs[i]
		j.Submitted = real.Jobs[i].Submitted
		var id slurmctl.JobID
		var err error
		var app *simulate.App
		if a.evolves() {
			app = &simulate.App{User: simulate.Alice, Name: fmt.Sprint(i), Profile: a.Profile, Drive: a.Drive, Limit: a.Limit}
			if a.Drive != drivemode.Chain {
				app.Lasts = func(step int) time.Duration { return time.Duration(a.Profile[step-1].Duration)*time.Second + calling }
			}
			_, err = s.Submit(app)
		} else {
			id, err = c.Submit(slurmsim.Job{User: simulate.Bob, Script: "#!/bin/sh\n", Nodes: a.Profile[0].Nodes, TimeLimit: a.Limit,
				Lasts: time.Duration(a.Profile[0].Duration) * time.Second})
			ended[id] = j
		}
		must.OK(t, err)
		apps = append(apps, app)
	}
	for end := c.Elapsed() + 20*time.Minute; len(c.Queue()) > 0 && c.Elapsed() < end; {
		c.Sleep(5 * time.Second)
	}
	for i, app := range apps {
		if app == nil {
			continue
		}
		j := &m.Jobs[i]
		for _, b := range app.Steps {
			j.Steps, j.Nodes = append(j.Steps, seconds(b.At-warm)), append(j.Nodes, b.Nodes)
		}
		if n := len(app.Steps); n > 0 {
			j.End = j.Steps[n-1] + float64(app.Profile[n-1].Duration)
		}
	}
	return m
}
