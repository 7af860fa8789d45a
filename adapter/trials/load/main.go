// Command evosload puts a sidecar under the load of a large site: a private Slurm
// of 1,000 real nodes with a queue of 10,000 stock jobs and 1,000 evolving jobs, and
// an hour of arrivals in ten minutes. It prints what the sidecar costs, and fails
// where that is more than it may be.
package main

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/evoslurm/evoslurm/adapter/job/request"
	"github.com/evoslurm/evoslurm/adapter/trials/rig"
	"github.com/evoslurm/evoslurm/planner"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest"
)

func main() {
	var l load
	flag.IntVar(&l.nodes, "nodes", 1000, "nodes of the cluster")
	flag.IntVar(&l.stock, "stock", 10_000, "stock jobs queued at the start")
	flag.IntVar(&l.evolving, "evolving", 1000, "evolving jobs queued at the start")
	flag.IntVar(&l.records, "records", 0, "further stock jobs queued at the start: tasks of an array, with a record each")
	flag.DurationVar(&l.window, "window", 10*time.Minute, "how long is measured")
	flag.BoolVar(&l.quickACK, "quickack", true, "have the loopback acknowledge at once, or Slurm before 24.05 waits for it at each resize")
	flag.BoolVar(&l.recorder, "recorder", true, "have the sidecar's flight recorder write")
	flag.StringVar(&l.keep, "keep", "", "folder that the sidecar's log is kept in")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	run := l.run
	if l.quickACK {
		run = func(ctx context.Context) error { return onQuickLoopback(ctx, l.run) }
	}
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "evosload:", err)
		os.Exit(1)
	}
}

// load is one run.
type load struct {
	nodes, stock, evolving, records int
	window                          time.Duration
	quickACK, recorder              bool
	keep                            string

	*rig.Rig
	daemon    *exec.Cmd
	submitted atomic.Int64
}

func (l *load) run(ctx context.Context) error {
	begun := time.Now()
	l.say("booting %d nodes", l.nodes)
	config := "  format: json\n"
	if !l.recorder {
		config += "recorder:\n  mib: 0\n"
	}
	// The scheduling intervals are Slurm's own, as on a site.
	options := slurmtest.Options{Nodes: l.nodes, Accounting: true, PermitJobExpansion: true, SlurmIntervals: true}
	return rig.Use(ctx, options, config, func(r *rig.Rig) (err error) {
		l.Rig = r
		l.say("all idle after %.0f s; Slurm %s", time.Since(begun).Seconds(), l.Cluster.Version())
		if l.daemon, _, err = r.Start(rig.Account{}); err != nil {
			return err
		}
		defer func() {
			_ = l.daemon.Process.Kill()
			_ = l.daemon.Wait()
		}()
		begun = time.Now()
		if err := l.fill(ctx); err != nil {
			return err
		}
		if err := l.fillRecords(ctx); err != nil {
			return err
		}
		l.say("%d jobs queued after %.0f s", l.submitted.Load(), time.Since(begun).Seconds())
		return l.measure(ctx)
	})
}

func (l *load) say(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "%s "+format+"\n", append([]any{time.Now().Format(time.TimeOnly)}, args...)...)
}

// fill queues the jobs, an evolving one after every so many stock ones.
func (l *load) fill(ctx context.Context) error {
	total := l.stock + l.evolving
	kinds := make(chan bool)
	errs := make(chan error, 4)
	var workers sync.WaitGroup
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for w := range cap(errs) {
		workers.Go(func() {
			random := rand.New(rand.NewPCG(1, uint64(w)))
			for evolving := range kinds {
				if err := l.submit(ctx, random, evolving); err != nil {
					errs <- err
					cancel()
					return
				}
			}
		})
	}
	for i := range total {
		select {
		case kinds <- (i+1)*l.evolving/total > i*l.evolving/total:
		case <-ctx.Done():
		}
		if i > 0 && i%2000 == 0 {
			l.say("%d jobs submitted", i)
		}
	}
	close(kinds)
	workers.Wait()
	select {
	case err := <-errs:
		return err
	default:
		return ctx.Err()
	}
}

// fillRecords queues an array behind all other jobs. Slurm gives the tasks that change a record each, and squeue prints a line
// for each task of another name: so 100,000 jobs are queued in minutes.
func (l *load) fillRecords(ctx context.Context) error {
	if l.records == 0 {
		return nil
	}
	id, err := l.Cluster.Run(ctx, l.Cluster.Users()[0], "sbatch", "--parsable", "--output=/dev/null", "--chdir=/", "--exclusive", "--nice=1000000",
		fmt.Sprintf("--array=1-%d", l.records), "--nodes=4", "--time=30", "--wrap=exec sleep 60")
	if err != nil {
		return err
	}
	const atOnce = 1000
	for i := 1; i <= l.records; i += atOnce {
		tasks := fmt.Sprintf("JobId=%s_[%d-%d]", strings.TrimSpace(id), i, min(i+atOnce-1, l.records))
		if _, err := l.Cluster.Run(ctx, slurmtest.Root, "scontrol", "update", tasks, fmt.Sprint("JobName=task", i)); err != nil {
			return err
		}
		l.submitted.Add(int64(min(atOnce, l.records-i+1)))
	}
	return nil
}

// submit submits one job that sleeps: a stock one of 1 to 40 nodes for up to 20
// minutes, or an evolving one of three steps of up to a minute each.
func (l *load) submit(ctx context.Context, random *rand.Rand, evolving bool) error {
	args := []string{"--parsable", "--output=/dev/null", "--chdir=/", "--exclusive"}
	if !evolving {
		duration := 60 + random.IntN(1140)
		args = append(args, fmt.Sprintf("--nodes=%d", 1+random.IntN(40)), fmt.Sprintf("--time=%d", duration/60+1),
			fmt.Sprintf("--wrap=exec sleep %d", duration))
	} else {
		var p planner.Profile
		script := ""
		for range 3 {
			step := planner.Step{Duration: int64(20 + random.IntN(40)), Nodes: 1 + random.IntN(60)}
			p = append(p, step)
			script += fmt.Sprintf("sleep %d; eval \"$(evosctl next)\"\n", step.Duration)
		}
		marker, ok := request.Request{Profile: p}.Marker()
		if !ok {
			return fmt.Errorf("no marker for %v", p)
		}
		args = append(args, "--begin=now+3650days", "--comment="+marker, fmt.Sprintf("--nodes=%d", p[0].Nodes),
			fmt.Sprintf("--time=%d", p.Duration()/60+5), "--wrap="+script)
	}
	// sbatch says no while slurmctld is busy; a user would try again.
	var err error
	for range 5 {
		cmd := l.Cluster.Command(ctx, l.Cluster.Users()[random.IntN(2)], "sbatch", args...)
		cmd.Env = append(cmd.Env, append(l.Env(), "EVOSLURM_API=unix://"+l.Dir+"/run/api.sock")...)
		var out []byte
		if out, err = cmd.CombinedOutput(); err == nil {
			l.submitted.Add(1)
			return nil
		}
		err = fmt.Errorf("sbatch: %w: %s", err, strings.TrimSpace(string(out)))
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Second):
		}
	}
	return err
}
