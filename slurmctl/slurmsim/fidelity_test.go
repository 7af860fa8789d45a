package slurmsim_test

import (
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/slurmctl"
	"github.com/evoslurm/evoslurm/slurmctl/slurmsim"
)

var (
	recordings = flag.String("fidelity.recordings", "testdata/fidelity", "folder of what a real Slurm has made of random workloads")
	phases     = flag.Int("fidelity.phases", 4, "how many moments of a second TestFidelity tries for each of slurmctld's two loops")
)

// workload returns random jobs that keep a cluster busy for about a minute: with whole nodes and
// parts of a node, and with limits from the needed time to a multiple of it.
func workload(seed uint64, nodes int) []arrival {
	r := rand.New(rand.NewPCG(seed, uint64(nodes)))
	var all []arrival
	at := time.Duration(0)
	for range 30 {
		at += time.Duration(r.IntN(2500)) * time.Millisecond
		j := slurmsim.Job{Nodes: 1 + min(r.IntN(nodes), r.IntN(nodes)), Lasts: time.Duration(5+r.IntN(15)) * time.Second,
			TimeLimit: time.Duration(1+r.IntN(5)) * time.Minute}
		if r.IntN(4) == 0 {
			j.Nodes, j.CPUs = 1, 1+r.IntN(3)
		}
		all = append(all, arrival{at, j})
	}
	return all
}

// played records how a workload ran on a real Slurm.
type played struct {
	Seed  uint64
	Nodes int
	Load  string    // load of the machine, before and after
	Begun time.Time // before the first submission
	Jobs  []playedJob
}

// playedJob has times in seconds from Begun.
type playedJob struct {
	Submitted  float64 // when sbatch returned
	Start, End float64 // as slurmctld prints them, to the second
	Nodes      string
}

func seconds(d time.Duration) float64 { return d.Round(time.Millisecond).Seconds() }

func loadNow() string {
	text, _ := os.ReadFile("/proc/loadavg")
	first, _, _ := strings.Cut(string(text), " ")
	return first
}

// play submits a workload and waits for its end.
func (w *world) play(p *played, jobs []arrival) {
	w.Helper()
	p.Load = loadNow()
	var ids []slurmctl.JobID
	p.Begun = w.now()
	for i, a := range jobs {
		w.sleep(p.Begun.Add(a.after).Sub(w.now()))
		ids = append(ids, w.start(a.job))
		if len(p.Jobs) <= i {
			p.Jobs = append(p.Jobs, playedJob{Submitted: seconds(w.now().Sub(p.Begun))})
		}
	}
	var records []slurmctl.Job
	for left := true; left; {
		w.sleep(2 * time.Second)
		var err error
		records, err = w.JobsByID(w.ctx, ids...)
		w.must(err)
		left = slices.ContainsFunc(records, func(j slurmctl.Job) bool { return !j.Ended() })
	}
	for i, j := range records {
		p.Jobs[i].Start, p.Jobs[i].End = seconds(j.StartTime.Sub(p.Begun)), seconds(j.EndTime.Sub(p.Begun))
		p.Jobs[i].Nodes = slurmctl.CompressNodes(j.NodeList)
	}
	p.Load += " " + loadNow()
}

// compared counts the differences between two runs of a workload.
type compared struct {
	within, jobs, swaps int
	places              int // jobs on the same nodes
	makespan            float64
	off                 []float64
}

func compare(a, b played) compared {
	c := compared{jobs: len(a.Jobs)}
	for i := range a.Jobs {
		d := a.Jobs[i].Start - b.Jobs[i].Start
		c.off = append(c.off, d)
		if d < 1.5 && d > -1.5 {
			c.within++
		}
		if a.Jobs[i].Nodes == b.Jobs[i].Nodes {
			c.places++
		}
		for k := range i { // the order is clear in both runs but differs
			x, y := a.Jobs[i].Start-a.Jobs[k].Start, b.Jobs[i].Start-b.Jobs[k].Start
			if x > 1.5 && y < -1.5 || x < -1.5 && y > 1.5 {
				c.swaps++
			}
		}
	}
	end := func(p played) float64 {
		return slices.MaxFunc(p.Jobs, func(x, y playedJob) int { return cmp.Compare(x.End, y.End) }).End
	}
	c.makespan = end(a)/end(b) - 1
	return c
}

// share returns the share of equal starts, to a second.
func (c compared) share() float64 { return float64(c.within) / float64(max(c.jobs, 1)) }

func (c compared) String() string {
	return fmt.Sprintf("%d of %d starts within a second, %d on the same nodes, %d pairs in another order, makespan %+.1f %%", c.within, c.jobs, c.places, c.swaps, 100*c.makespan)
}

// TestFidelity plays the recorded workloads on the model. Jobs must start in the same order and at
// the same times, and the workload must end at the same time. Two runs of a real Slurm also differ;
// the test prints that difference, too. See BENCHMARKS.md.
func TestFidelity(t *testing.T) {
	files, err := filepath.Glob(*recordings + "/*a.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("no recordings: %v", err)
	}
	var total, fits, floor compared
	for _, file := range files {
		first := readPlayed(t, file)
		model := simulate(t, first, 0, 0, 200*time.Millisecond)
		c := compare(first, model)
		t.Logf("%s, load %s: %s", filepath.Base(file), first.Load, c)
		best := c
		step := time.Second / time.Duration(*phases)
		for k := range 4 * *phases * *phases {
			loop, backfill, release := k%*phases, k / *phases % *phases, 1+k/(*phases**phases)
			m := simulate(t, first, time.Duration(loop)*step, time.Duration(backfill)*step, time.Duration(release)*100*time.Millisecond)
			if c := compare(first, m); c.within > best.within {
				best = c
			}
		}
		t.Logf("    with what fits best: %s", best)
		fits = fits.add(best)
		if testing.Verbose() && os.Getenv("EVOSLURM_FIDELITY_JOBS") != "" {
			for i, a := range workload(first.Seed, first.Nodes) {
				r, m := first.Jobs[i], model.Jobs[i]
				t.Logf("  %2d: %d nodes %d cpus, limit %v, lasts %v, submitted %.2f: %.2f-%.2f %v, by the model %.2f-%.2f %v", i+1, a.job.Nodes, a.job.CPUs,
					a.job.TimeLimit, a.job.Lasts, r.Submitted, r.Start, r.End, r.Nodes, m.Start, m.End, m.Nodes)
			}
		}
		total = total.add(c)
		if second := strings.Replace(file, "a.json", "b.json", 1); exists(second) {
			f := compare(first, readPlayed(t, second))
			t.Logf("    the real one, again: %s", f)
			floor = floor.add(f)
		}
	}
	if files == nil || total.share() < floor.share() || fits.share() < 0.95 || fits.makespan > 0.017 {
		t.Error("the model is farther from a run of the real Slurm than the next run of that, or does not do what that did whatever its phases")
	}
	t.Logf("all: %s; with what fits best: %s; the real one against itself: %s", total, fits, floor)
}

func (c compared) add(o compared) compared {
	return compared{within: c.within + o.within, jobs: c.jobs + o.jobs, swaps: c.swaps + o.swaps, places: c.places + o.places, makespan: max(c.makespan, o.makespan, -o.makespan),
		off: append(c.off, o.off...)}
}

func exists(file string) bool { _, err := os.Stat(file); return err == nil }

func readPlayed(t *testing.T, file string) (p played) {
	text, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(text, &p)
	}
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// simulate plays on the model what a real Slurm was given, at the same times.
func simulate(t *testing.T, real played, loop, backfill, release time.Duration) played {
	m := played{Seed: real.Seed, Nodes: real.Nodes, Begun: real.Begun}
	latency := slurmsim.Measured()
	latency.Launch, latency.Release = 100*time.Millisecond, release // under the load during the recording: see BENCHMARKS.md
	w := modelOf(t, slurmsim.Options{Nodes: real.Nodes, Start: real.Begun.Add(-10 * time.Second), Latency: latency, LoopPhase: loop, BackfillPhase: backfill})
	w.sleep(10 * time.Second)
	jobs := workload(real.Seed, real.Nodes)
	for i := range jobs {
		jobs[i].after = time.Duration(real.Jobs[i].Submitted*1e9) - 6*time.Millisecond
	}
	w.play(&m, jobs)
	return m
}
