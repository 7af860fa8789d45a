package controller_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/internal/config"
	"github.com/evoslurm/evoslurm/adapter/sidecar/store"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest/must"
)

// plugins makes a folder of all shipped plugins, the one in Python and an evil one.
func plugins(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "evoslurm-strategies-")
	must.OK(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	must.OK(t, os.Chmod(dir, 0o755))
	for _, args := range [][]string{
		{"go", "build", "-o", dir, "../../../plugins/cmd/klein", "../../../plugins/cmd/minwaste", "../../../plugins/cmd/search", "../../../plugins/cmd/rigid", "../../../plugins/cmd/gain", "../pluginhost/internal/evil"},
		{"cp", "-r", "../../../plugins/python/asap", "../../../plugins/python/evostrategy", dir},
	} {
		if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", args, err, out)
		}
	}
	return dir
}

// keepers returns the processes around plugins that this process has started.
func keepers(t *testing.T) []string {
	t.Helper()
	out, err := exec.Command("pgrep", "--parent", fmt.Sprint(os.Getpid()), "--full", "evoslurm-strategy-keeper").Output()
	var none *exec.ExitError
	if err != nil && (!errors.As(err, &none) || none.ExitCode() != 1) {
		t.Fatal(err)
	}
	return strings.Fields(string(out))
}

func (l *lab) use(name string, parameters map[string]string) {
	l.t.Helper()
	_, err := l.UseStrategy(l.ctx(), api.Planning, name, api.StrategyRequest{Parameters: parameters}, "tester")
	l.must(err)
}

func (l *lab) strategy(name string) api.Strategy {
	l.t.Helper()
	all, err := l.Strategies(l.ctx(), api.Planning)
	l.must(err)
	i := slices.IndexFunc(all, func(s api.Strategy) bool { return s.Name == name })
	if i < 0 {
		l.t.Fatalf("there is no strategy %s", name)
	}
	return all[i]
}

// events returns the event log's of one kind after the given one.
func (l *lab) events(kind string, after int64) []store.Event {
	l.t.Helper()
	all, err := l.store.Events(context.Background(), 0, after, 100000)
	l.must(err)
	return slices.DeleteFunc(all, func(e store.Event) bool { return e.Kind != kind })
}

func (l *lab) lastEvent() int64 {
	l.t.Helper()
	all, err := l.store.Events(context.Background(), 0, 0, 100000)
	l.must(err)
	if len(all) == 0 {
		return 0
	}
	return all[len(all)-1].ID
}

// held checks what a job really held, step by step.
func (l *lab) held(id uint32, nodes ...int) {
	l.t.Helper()
	job, err := l.Job(context.Background(), id)
	l.must(err)
	got, longest := make([]int, len(nodes)), make([]time.Duration, len(nodes))
	for _, p := range job.Past { // a change of nodes is seen a moment before the step's
		if lasted := p.End.Sub(p.Start); p.Step <= len(nodes) && (lasted > longest[p.Step-1] || p.End.IsZero()) {
			got[p.Step-1], longest[p.Step-1] = p.Nodes, lasted
		}
	}
	if !slices.Equal(got, nodes) {
		l.t.Errorf("job %d held %v nodes, want %v; past %+v", id, got, nodes, job.Past)
	}
}

func TestStrategiesSwappedWhileJobsGrow(t *testing.T) {
	dir := plugins(t)
	if left := keepers(t); len(left) != 0 {
		t.Fatalf("plugins run already: %v", left)
	}
	l := newLab(t, slurmtest.Options{Accounting: true, PermitJobExpansion: true}, func(c *config.Config) { c.Strategies.Dir = dir })
	first, second, third := l.submit("1@6s,3@6s,2@6s,4@6s"), l.submit("2@6s,1@6s,4@6s,1@6s"), l.submit("6@6s,1@6s")
	stop, swapped := make(chan struct{}), make(chan int)
	go func() {
		names, swaps := []string{"klein", "asap", "minwaste", "search"}, 0
		tick := time.NewTicker(2 * time.Second) // thirty times a minute
		defer tick.Stop()
		for {
			select {
			case <-stop:
				swapped <- swaps
				return
			case <-tick.C:
				name := names[swaps%len(names)]
				if _, err := l.UseStrategy(context.Background(), api.Planning, name, api.StrategyRequest{}, "tester"); err != nil {
					t.Errorf("use %s: %v", name, err)
				}
				swaps++
			}
		}
	}()
	began, last, cycles, longest := time.Now(), time.Now(), 0, time.Duration(0)
	watch := func(done func() bool) { // cycles go on; on a loaded machine one may take seconds
		for !done() {
			s, err := l.Status(context.Background())
			l.must(err)
			if s.LastCycle.After(last) {
				last = s.LastCycle
				cycles++
			}
			if longest = max(longest, time.Since(last)); longest > 20*time.Second {
				t.Fatalf("no cycle for %v", longest)
			}
			time.Sleep(20 * time.Millisecond)
		}
	}
	l.running(first, 1)
	l.running(second, 1)
	for step := 1; step < 4; step++ {
		end := time.Now().Add(5 * time.Second)
		watch(func() bool { return time.Now().After(end) })
		a, b := make(chan api.Allocation, 1), make(chan api.Allocation, 1)
		go func() { a <- l.next(first, step) }()
		go func() { b <- l.next(second, step) }()
		watch(func() bool { return len(a) == 1 && len(b) == 1 })
		l.has(<-a, []int{1, 3, 2, 4}[step])
		l.has(<-b, []int{2, 1, 4, 1}[step])
	}
	time.Sleep(2 * time.Second) // so that their last steps are seen
	l.cancel(first)
	l.cancel(second)
	l.running(third, 1)
	l.has(l.next(third, 1), 1)
	time.Sleep(2 * time.Second)
	l.cancel(third)
	for _, id := range []uint32{first, second, third} {
		l.ended(id)
	}
	close(stop)
	swaps := <-swapped
	minutes := time.Since(began).Minutes()
	t.Logf("%d swaps in %.1f minutes; %d cycles seen meanwhile, never more than %v apart", swaps, minutes, cycles, longest.Round(time.Millisecond))
	if float64(swaps) < 10*minutes {
		t.Errorf("%d swaps in %.1f minutes, want ten a minute", swaps, minutes)
	}
	l.held(first, 1, 3, 2, 4)
	l.held(second, 2, 1, 4, 1)
	l.held(third, 6, 1)
	if swaps < 8 {
		t.Errorf("%d swaps", swaps)
	}
	if got := len(l.events("strategy", 0)); got != swaps {
		t.Errorf("%d swaps in the event log, there were %d", got, swaps)
	}
	for _, e := range l.events("strategy", 0) {
		var detail struct{ By, From, To string }
		l.must(json.Unmarshal(e.Detail, &detail))
		if detail.By != "tester" || detail.From == "" || detail.To == "" {
			t.Errorf("a swap is written as %s", e.Detail)
		}
	}
	for _, name := range []string{"klein", "asap", "minwaste", "search"} {
		if s := l.strategy(name); s.Faults != 0 || s.Fallen != 0 || s.Plans == 0 {
			t.Errorf("%s: %d plans, %d faults (%s), %d cycles without it", name, s.Plans, s.Faults, s.LastFault, s.Fallen)
		}
	}
	l.eventually("one plugin runs", func() error {
		if n := len(keepers(t)); n != 1 {
			return fmt.Errorf("%d run", n)
		}
		return nil
	})
	l.clean()
	l.stop()
	if left := keepers(t); len(left) != 0 {
		t.Errorf("processes are left behind: %v", left)
	}
	if left, err := exec.Command("pgrep", "--full", dir).Output(); err == nil {
		t.Errorf("plugins are left behind: %s", left)
	}
}

func TestEvilStrategies(t *testing.T) {
	dir := plugins(t)
	l := newLab(t, slurmtest.Options{Accounting: true, PermitJobExpansion: true}, func(c *config.Config) {
		c.Strategies.Dir, c.Strategies.Timeout, c.Strategies.Memory = dir, 700*time.Millisecond, 256
	})
	grows := l.submit("2@10m,5@10m,7@10m")
	l.running(grows, 1)
	waits := []uint32{l.submit("4@10m,6@10m"), l.submit("7@10m")} // behind it
	for _, id := range waits {
		l.planned(id)
	}
	modes := []string{"killed", "exit", "panic", "hang", "stop", "garbage", "empty", "overfull", "moves-pinned", "too-early", "too-late",
		"nan", "overflow", "few", "many", "few-steps", "unfit", "gigabyte", "leak", "forks-and-exits"}
	for i, mode := range modes {
		before, faults := l.lastEvent(), l.strategy("evil").Faults
		l.use("evil", map[string]string{"mode": mode})
		l.eventually("a fault by "+mode, func() error {
			if l.strategy("evil").Faults == faults {
				return errors.New("nobody noticed")
			}
			return nil
		})
		fault := l.events("strategy fault", before)
		var detail struct {
			PlannedBy   string `json:"planned_by"`
			JobsPlanned int    `json:"jobs_planned"`
			Fault       string
		}
		l.eventually("the event log", func() error {
			if fault = l.events("strategy fault", before); len(fault) == 0 {
				return errors.New("nothing is written")
			}
			return nil
		})
		l.must(json.Unmarshal(fault[0].Detail, &detail))
		if detail.PlannedBy != "noX" || detail.JobsPlanned != len(waits) { // in that very cycle
			t.Errorf("%s: the event log has %s, want %d jobs planned by noX", mode, fault[0].Detail, len(waits))
		}
		for _, id := range waits { // planned all the same, and not away from where it was
			job, err := l.Job(context.Background(), id)
			l.must(err)
			if len(job.Plan) == 0 || job.State != "queued" {
				t.Errorf("%s: job %d is %s without a plan: %s", mode, id, job.State, job.Reason)
			}
		}
		switch i { // the running job is not disturbed
		case 4:
			l.has(l.next(grows, 1), 5)
		case 12:
			l.has(l.next(grows, 2), 7)
		}
	}
	patient := l.cfg // what they write and start takes its time on a busy machine
	patient.Strategies.Timeout = 30 * time.Second
	l.must(l.Configure(context.Background(), patient))
	for _, mode := range []string{"stdout", "forks"} { // no faults
		l.use("evil", map[string]string{"mode": mode})
		plans, faults := l.strategy("evil").Plans, l.strategy("evil").Faults
		l.eventually("plans of "+mode, func() error {
			if l.strategy("evil").Plans < plans+3 {
				return errors.New("none")
			}
			return nil
		})
		if got := l.strategy("evil"); got.Faults != faults {
			t.Errorf("%s: %s", mode, got.LastFault)
		}
	}
	l.use("noX", nil)
	l.held(grows, 2, 5, 7)
	for _, id := range append(waits, grows) {
		l.end(id)
	}
	l.clean()
	l.stop()
	if out, err := exec.Command("pgrep", "--full", dir+"/evil|sleep 1000$").Output(); err == nil {
		t.Errorf("processes are left behind: %s", out)
	}
}

// TestSearchGains: three jobs in an order that list scheduling makes the worst of. Search does not start the growing one last.
func TestSearchGains(t *testing.T) {
	t.Parallel()
	dir := plugins(t)
	l := newLab(t, slurmtest.Options{Accounting: true, PermitJobExpansion: true}, func(c *config.Config) {
		c.Strategies.Dir, c.Margin = dir, time.Second
	})
	// lastOf returns which of the three starts last, and what a trial of search says before
	lastOf := func(name string) (last int, promised api.Trial) {
		l.use("noX", nil)
		blocker := l.sbatch(1, "--nodes=8", "--exclusive", "--time=60")
		l.onNodes(blocker, 8)
		var jobs []uint32
		for _, profile := range []string{"4@8s", "4@8s", "3@8s,4@8s"} {
			seconds := strings.Count(profile, "@") * 8
			wrap := fmt.Sprintf("--wrap=sleep %d", seconds)
			if seconds > 8 {
				wrap = "--wrap=sleep 3600"
			}
			jobs = append(jobs, l.submit(profile, wrap))
		}
		for _, id := range jobs {
			l.planned(id)
		}
		promised, err := l.TryStrategy(l.ctx(), "search", api.StrategyRequest{})
		l.must(err)
		l.use(name, nil)
		l.cancelStock(1, blocker)
		l.running(jobs[2], 1)
		l.has(l.next(jobs[2], 1), 4)
		l.cancel(jobs[2])
		var starts []time.Time
		for _, id := range jobs {
			starts = append(starts, l.ended(id).Start)
		}
		l.clean()
		return slices.Index(starts, slices.MaxFunc(starts, time.Time.Compare)), promised
	}
	last, promised := lastOf("search")
	if last == 2 {
		t.Error("search starts the growing job last")
	}
	if gain := promised.Present.Makespan - promised.Tried.Makespan; gain < 6 {
		t.Errorf("try shows a gain of %v s, want 8 or so: %+v", gain, promised)
	}
	if last, _ := lastOf("noX"); last != 2 {
		t.Errorf("noX starts job %d last, want the growing one", last)
	}
}
