// Command evoslatency measures what an application waits for when it grows: jobs in every
// drive mode on a private Slurm, whose scripts note when they call evosctl next and when
// it answers, beside the sidecar's log of the commands that it ran. And what a stock job waits
// for where malleable ones give way.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/evoslurm/evoslurm/adapter/trials/rig"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest"
)

func main() {
	var l latency
	flag.IntVar(&l.jobs, "jobs", 4, "jobs of each drive mode, two at a time")
	flag.IntVar(&l.growths, "growths", 8, "growths of each job")
	flag.IntVar(&l.stock, "stock", 20, "stock jobs for which malleable jobs give way")
	flag.StringVar(&l.only, "only", "", "one drive mode (merge, companion, chain, stock chain), or way: malleable jobs that give way")
	flag.StringVar(&l.keep, "keep", "", "folder that the sidecar's log and the scripts' notes are kept in")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := l.run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "evoslatency:", err)
		os.Exit(1)
	}
}

// latency is one run.
type latency struct {
	jobs, growths int
	stock         int
	only, keep    string
	*rig.Rig
}

// seconds is how long a step lasts.
const seconds = 3

func (l *latency) run(ctx context.Context) error {
	// The scheduling intervals are Slurm's own, as on a site.
	return rig.Use(ctx, slurmtest.Options{Accounting: true, PermitJobExpansion: true, SlurmIntervals: true}, "  format: json\n", func(r *rig.Rig) error {
		l.Rig = r
		_, stop, err := r.Start(rig.Account{}, "--log-level=trace")
		if err != nil {
			return err
		}
		return errors.Join(l.measure(ctx), stop(), l.kept())
	})
}

// kept keeps the sidecar's log and the scripts' notes.
func (l *latency) kept() error {
	if l.keep == "" {
		return nil
	}
	text, err := os.ReadFile(l.LogFile())
	return errors.Join(err, os.CopyFS(l.keep, os.DirFS(l.Dir+"/out")), os.WriteFile(l.keep+"/evoslurmd.log", text, 0o644))
}

func (l *latency) measure(ctx context.Context) error {
	fmt.Printf("Slurm %s, %d jobs of %d growths in each drive mode, load %s\n\n", l.Cluster.Version(), l.jobs, l.growths, rig.Load())
	for _, mode := range []string{"merge", "companion", "chain", "stock chain", "way"} {
		if l.only != "" && l.only != mode {
			continue
		}
		try := func(ctx context.Context) error { return l.try(ctx, mode) }
		if mode == "way" {
			try = l.givesWay
		}
		if err := try(ctx); err != nil {
			return fmt.Errorf("%s: %w", mode, err)
		}
	}
	fmt.Printf("load %s\n", rig.Load())
	return nil
}

// profile returns the jobs' profile: alternately one node and three.
func (l *latency) profile() (text string) {
	for range l.growths {
		text += fmt.Sprintf("1@%[1]ds,3@%[1]ds,", seconds)
	}
	return text + fmt.Sprintf("1@%ds", seconds)
}

// try runs the jobs of a drive mode and tells what their growths took.
func (l *latency) try(ctx context.Context, mode string) error {
	two := make(chan struct{}, 2)
	errs := make([]error, l.jobs)
	var all sync.WaitGroup
	for i := range l.jobs {
		all.Go(func() {
			two <- struct{}{}
			defer func() { <-two }()
			time.Sleep(time.Duration(i) * 700 * time.Millisecond)
			errs[i] = l.job(ctx, mode, fmt.Sprintf("%s-%d", strings.ReplaceAll(mode, " ", "-"), i))
		})
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	return l.tell(mode)
}

// job runs one job to its end. Its script notes in a file of its name when a step's work is
// done and when the next one begins.
func (l *latency) job(ctx context.Context, mode, name string) error {
	trace := l.Dir + "/out/" + name
	note := func(what, step string) string {
		return fmt.Sprintf("echo %s %s $SLURM_JOB_ID $(date +%%s.%%N) >>%s; ", what, step, trace)
	}
	args := []string{"--parsable", "--output=/dev/null", "--exclusive", "--job-name=" + name}
	steps := 2*l.growths + 1
	link := note("begun", "$EVO_STEP") + fmt.Sprintf("sleep %d; ", seconds) + note("done", "$EVO_STEP")
	switch mode {
	case "chain":
		_, errs, err := l.As(0, "evosbatch", append(args, "--drive=chain", "--profile="+l.profile(), "--wrap="+link)...)
		if err != nil {
			return fmt.Errorf("evosbatch: %w\n%s", err, errs)
		}
	case "stock chain":
		before := ""
		for k := 1; k <= steps; k++ {
			more := []string{fmt.Sprintf("--nodes=%d", 3-2*(k%2)), "--time=2", fmt.Sprintf("--export=ALL,EVO_STEP=%d", k), "--wrap=" + link}
			if k > 1 {
				more = append(more, "--dependency=afterok:"+before)
			}
			out, errs, err := l.As(1, "sbatch", append(args[:len(args):len(args)], more...)...)
			if err != nil {
				return fmt.Errorf("sbatch: %w\n%s", err, errs)
			}
			before = strings.TrimSpace(out)
		}
	default:
		script := note("begun", "1")
		for k := 1; k < steps; k++ {
			script += fmt.Sprintf("sleep %d; ", seconds) + note("done", fmt.Sprint(k)) + `eval "$(evosctl next)"; ` + note("begun", fmt.Sprint(k+1))
		}
		script += "sleep 1; evosctl next >/dev/null"
		_, errs, err := l.As(0, "evosbatch", append(args, "--drive="+mode, "--profile="+l.profile(), "--wrap="+script)...)
		if err != nil {
			return fmt.Errorf("evosbatch: %w\n%s", err, errs)
		}
	}
	for end := time.Now().Add(10 * time.Minute); ; {
		left, err := l.Cluster.Run(ctx, slurmtest.Root, "squeue", "-h", "--name="+name)
		switch {
		case err == nil && strings.TrimSpace(left) == "":
			return nil
		case time.Now().After(end):
			return fmt.Errorf("job %s has not ended: %s", name, left)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(500 * time.Millisecond):
		}
	}
}

// notes returns the files of a drive mode.
func (l *latency) notes(mode string) ([]string, error) {
	return filepath.Glob(l.Dir + "/out/" + strings.ReplaceAll(mode, " ", "-") + "-*")
}
