//go:build planned

package planned_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/sidecar/observed"
	"github.com/evoslurm/evoslurm/adapter/trials/rig"
	"github.com/evoslurm/evoslurm/slurmctl"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest"
)

var (
	lasts  = flag.Duration("planned.for", time.Minute, "how long jobs are submitted; their starts are watched for half as long after that")
	before = flag.String("planned.before", "", "folder of an earlier evoslurmd, which observes the same clusters")
	seed   = flag.Uint64("planned.seed", 28, "random seed of the workloads")
)

var bin string

func TestMain(m *testing.M) {
	rig.Main(func(dir string) int {
		bin = dir
		if err := rig.AtOnce(5); err != nil {
			panic(err)
		}
		return m.Run()
	})
}

// workload is a cluster with the jobs that come to it.
type workload struct {
	slurmtest.Options
	job   func(chance *rand.Rand) []string // arguments of sbatch, without the time
	every time.Duration                    // between two jobs, on average
	after func(*trial) error               // what else happens, once the cluster is up
}

func pick(chance *rand.Rand, all ...string) string { return all[chance.IntN(len(all))] }

// workloads returns the six workloads: each has something that a plan of whole nodes does not know.
func workloads(t *testing.T) map[string]workload {
	shared := slurmtest.Options{ExtraConf: "SelectTypeParameters=CR_Core_Memory\n", Partitions: []slurmtest.Partition{{Name: "main", Default: true, Extra: "DefaultTime=10 DefMemPerCPU=100"}}}
	return map[string]workload{
		"arrays": {every: 12 * time.Second, job: func(c *rand.Rand) []string {
			if c.IntN(3) > 0 {
				return []string{"--exclusive", "--nodes=" + pick(c, "1", "2", "3", "5")}
			}
			return []string{"--exclusive", "--nodes=1", fmt.Sprintf("--array=1-%d%s", 3+c.IntN(6), pick(c, "", "%2", "%3"))}
		}},
		"GPUs": {every: 9 * time.Second, Options: slurmtest.Options{NodeExtra: map[string]string{"n[1-3]": "Gres=gpu:2"}, ExtraConf: "GresTypes=gpu\n",
			Files: map[string]string{"gres.conf": slurmtest.GPUs(t, "n[1-3]", 2)}}, job: func(c *rand.Rand) []string {
			if c.IntN(2) == 0 {
				return []string{"--gres=gpu:" + pick(c, "1", "2"), "--nodes=" + pick(c, "1", "1", "2"), "--ntasks-per-node=" + pick(c, "1", "2")}
			}
			return []string{"--exclusive", "--nodes=" + pick(c, "1", "2", "3")}
		}},
		"shared nodes": {every: 4 * time.Second, Options: shared, job: func(c *rand.Rand) []string {
			if c.IntN(5) == 0 {
				return []string{"--exclusive", "--nodes=" + pick(c, "1", "2", "4")}
			}
			return []string{"--ntasks=" + pick(c, "1", "1", "2", "3"), "--nodes=1", "--mem=" + pick(c, "100", "200", "500", "900")}
		}},
		"heterogeneous jobs": {every: 14 * time.Second, job: func(c *rand.Rand) []string {
			args := []string{"--exclusive", "--nodes=" + pick(c, "1", "2", "3")}
			if c.IntN(2) == 0 {
				args = append(args, ":", "--exclusive", "--time=2", "--nodes="+pick(c, "1", "2"))
			}
			return args
		}},
		"two tiers": {every: 14 * time.Second, Options: slurmtest.Options{Partitions: []slurmtest.Partition{
			{Name: "main", Default: true}, {Name: "short", Nodes: "n[1-5]", Extra: "PriorityTier=2"}}}, job: func(c *rand.Rand) []string {
			return []string{"--exclusive", "--nodes=" + pick(c, "1", "2", "3", "4"), "--partition=" + pick(c, "main", "main", "short")}
		}},
		"reservations": {every: 14 * time.Second, job: func(c *rand.Rand) []string {
			args := []string{"--exclusive", "--nodes=" + pick(c, "1", "2", "3")}
			if c.IntN(3) == 0 {
				args = append(args, "--reservation=course")
			}
			return args
		}, after: func(o *trial) error {
			_, err := o.Run(o.ctx, slurmtest.Root, "scontrol", "create", "reservation", "ReservationName=course", "Nodes=n[1-3]", "Flags=IGNORE_JOBS", "Duration=600",
				"Users="+names(o.Users()), "StartTime="+time.Now().Add(*lasts/3).Format("2006-01-02T15:04:05"))
			return err
		}},
	}
}

func names(users []slurmtest.User) string {
	var all []string
	for _, u := range users {
		all = append(all, u.Name)
	}
	return strings.Join(all, ",")
}

// trial is a cluster with its observers.
type trial struct {
	*slurmtest.Cluster
	ctx    context.Context
	chance *rand.Rand
}

// TestPlanned measures each workload. Jobs end some seconds before their time limits, so that what is measured is not
// how wrong users' limits are.
func TestPlanned(t *testing.T) {
	for name, w := range workloads(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), 2**lasts+10*time.Minute)
			defer cancel()
			w.SlurmIntervals = true
			o := &trial{slurmtest.Start(t, w.Options), ctx, rand.New(rand.NewPCG(*seed, 0))}
			recordNow, recordBefore := o.observe(t, bin), func() string { return "" }
			if *before != "" {
				recordBefore = o.observe(t, *before)
			}
			load := rig.Load()
			if err := o.submit(w); err != nil {
				t.Fatal(err)
			}
			now := errorsOf(t, recordNow())
			t.Logf("%s, load %s to %s", name, load, rig.Load())
			if dir := recordBefore(); dir != "" {
				t.Log("before: ", errorsOf(t, dir).ours)
			}
			t.Log("now:    ", now.ours)
			t.Log("squeue: ", now.slurm)
			if len(now.ours.seconds) == 0 {
				t.Error("no start was predicted")
			}
		})
	}
}

// observe starts a sidecar. stop ends it, and returns the folder of its record.
func (o *trial) observe(t *testing.T, bin string) (stop func() string) {
	t.Helper()
	r, err := rig.New(o.Cluster, bin, "mode: observe\npoll_interval: 3s\n")
	if err != nil {
		t.Fatal(err)
	}
	return func() func() string {
		end := r.StartIn(t, rig.Account{}, "--log-level=info")
		return func() string { end(); return r.Dir + "/db/observed" }
	}()
}

// submit submits jobs for the time of the trial, and waits for half as long.
func (o *trial) submit(w workload) error {
	if w.after != nil {
		if err := w.after(o); err != nil {
			return err
		}
	}
	for begun := time.Now(); time.Since(begun) < *lasts; {
		minutes := 1 + o.chance.IntN(2)
		args := append([]string{"--chdir=/", "--output=/dev/null", fmt.Sprintf("--time=%d", minutes), fmt.Sprintf("--wrap=sleep %d", 60*minutes-5-o.chance.IntN(10))}, w.job(o.chance)...)
		if _, err := o.Run(o.ctx, o.Users()[o.chance.IntN(len(o.Users()))], "sbatch", args...); err != nil {
			return err
		}
		time.Sleep(time.Duration(o.chance.Float64() * 2 * float64(w.every)))
	}
	time.Sleep(*lasts / 2)
	return nil
}

// off holds the differences between predicted and real starts, in seconds.
type off struct {
	seconds []int64
	none    int // starts for which none was predicted
}

func (o *off) add(predicted, start int64) {
	if predicted == 0 {
		o.none++
		return
	}
	o.seconds = append(o.seconds, max(predicted-start, start-predicted))
}

func (o off) String() string {
	slices.Sort(o.seconds)
	n := len(o.seconds)
	if n == 0 {
		return fmt.Sprintf("none predicted, %d missing", o.none)
	}
	return fmt.Sprintf("median %d s, 95th percentile %d s (%d predictions, %d missing)", o.seconds[n/2], o.seconds[(n*95+99)/100-1], n, o.none)
}

// errorsOf reads a record: each sample of a job that has started counts, of an array for the next task that started.
func errorsOf(t *testing.T, dir string) (all struct{ ours, slurm off }) {
	t.Helper()
	days, err := observed.Days(dir)
	if err != nil {
		t.Fatal(err)
	}
	var samples []observed.Sample
	starts := map[slurmctl.JobID][]int64{}
	for _, d := range days {
		for _, file := range d.Files {
			r, err := observed.Open(file)
			if err != nil {
				t.Fatal(err)
			}
			for {
				rec, err := r.Next()
				if errors.Is(err, io.EOF) {
					break
				}
				if err != nil {
					t.Fatal(err)
				}
				switch s := rec.Start; {
				case rec.Sample != nil:
					samples = append(samples, *rec.Sample)
				case s != nil && s.Array != 0:
					starts[s.Array] = append(starts[s.Array], s.Start)
				case s != nil:
					starts[s.Job] = append(starts[s.Job], s.Start)
				}
			}
			if err := r.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, s := range samples {
		next := int64(0)
		for _, start := range starts[s.Job] {
			if start >= s.At && (next == 0 || start < next) {
				next = start
			}
		}
		if next > 0 {
			all.ours.add(s.Ours, next)
			all.slurm.add(s.Slurm, next)
		}
	}
	return all
}
