//go:build live

package live_test

import (
	"encoding/json"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/lab/simulate"
	"github.com/evoslurm/evoslurm/adapter/trials/rig"
)

// mostOfESP is how many of the benchmark's jobs TestGrowDelay runs.
const mostOfESP = 60

// TestGrowDelay runs the first jobs of Dynamic ESP, a tenth as long, on three real clusters at once: with each grow_delay,
// jobs ask for four more nodes.
func TestGrowDelay(t *testing.T) {
	b := simulate.ESP{Cores: 24, Dynamic: true, Ask: true, Burst: true, Seed: *seed, Time: 10}
	jobs := b.Jobs()[:mostOfESP]
	for _, budget := range []time.Duration{0, time.Minute, 3 * time.Minute} {
		t.Run(budget.String(), func(t *testing.T) {
			t.Parallel()
			s := newSite(t, b.Cores, 20*time.Minute, fmt.Sprintf("grow_delay: %v\n", budget))
			before := rig.Load()
			submitted := s.asks(jobs)
			moved := s.moved()
			submitted.Wait()
			r := s.asked(jobs)
			sum, worst, all := 0., 0., moved()
			for _, seconds := range all {
				sum, worst = sum+seconds, max(worst, seconds)
			}
			if budget == 0 && worst > 0 || worst > budget.Seconds() {
				t.Errorf("growths made a job %.0f s later", worst)
			}
			t.Logf("%s; growths made %d waiting jobs later, by %.1f s on average over all jobs and %.0f s at most; load %s to %s", r, len(all), sum/float64(len(jobs)), worst, before, rig.Load())
		})
	}
}

// asks submits the jobs in the background, when their times come.
func (s *site) asks(jobs []simulate.Submission) (submitted *sync.WaitGroup) {
	submitted = &sync.WaitGroup{}
	for i, j := range jobs {
		args := []string{"sbatch", fmt.Sprintf("--nodes=%d", j.Profile[0].Nodes), fmt.Sprintf("--time=%d", (j.Limit+59)/60), fmt.Sprintf("--wrap=sleep %d", j.Profile.Duration())}
		if d := j.Demand; d != nil {
			script := fmt.Sprintf("#!/bin/bash\nsleep %d\n", d.At[0])
			for k, at := range d.At {
				left := j.Profile.Duration() - at
				script += fmt.Sprintf("if evosctl grow %d; then sleep %d; exit; fi\n", d.Nodes, d.Left(at))
				if k+1 < len(d.At) {
					left = d.At[k+1] - at
				}
				script += fmt.Sprintf("sleep %d\n", left)
			}
			args = []string{"evosbatch", "--profile=" + j.Profile.String(), s.write(fmt.Sprintf("asks-%d.sh", i+1), script)}
		}
		args = append(args[:1:1], append([]string{fmt.Sprintf("--job-name=evotrace-%d", i+1), "--exclusive", "--chdir=/", "--output=/dev/null"}, args[1:]...)...)
		submitted.Go(func() {
			time.Sleep(time.Duration(j.Submit) * time.Second)
			if _, errs, err := s.As(0, args[0], args[1:]...); err != nil {
				s.Errorf("%q: %v\n%s", args, err, errs)
			}
		})
	}
	return submitted
}

// moved watches how much later growths make waiting jobs, in seconds, until all is called.
func (s *site) moved() (all func() map[uint32]float64) {
	most, end, ended := map[uint32]float64{}, make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			var b api.Budget
			out, errs, err := s.As(0, "evosctl", "budget", "--json")
			if err == nil {
				err = json.Unmarshal([]byte(out), &b)
			}
			if err != nil {
				s.Errorf("evosctl budget: %v\n%s", err, errs)
			}
			for _, m := range b.Moved {
				most[m.Job] = max(most[m.Job], m.Seconds)
			}
			select {
			case <-end:
				return
			case <-time.After(time.Second):
			}
		}
	}()
	return func() map[uint32]float64 {
		close(end)
		<-ended
		return most
	}
}

// asked waits until all jobs have ended, and says what became of them.
func (s *site) asked(jobs []simulate.Submission) string {
	first, last, wait, most, others := 0., 0., 0., 0., 0.
	for n, j := range s.extracted(s.Dir+"/out/asked.swf", len(jobs)) {
		if first == 0 || j.Submit < first {
			first = j.Submit
		}
		last = max(last, j.Start()+j.Run)
		if jobs[n-1].Demand == nil {
			wait, most, others = wait+j.Wait, max(most, j.Wait), others+1
		}
	}
	all, err := s.Jobs(0)
	s.must(err)
	got := 0
	for _, j := range all {
		for _, span := range j.Past {
			if span.Nodes > j.Past[0].Nodes {
				got++
				break
			}
		}
	}
	return fmt.Sprintf("%d of %d jobs grew, %.0f s from the first submission to the last end; the %.0f others waited %.0f s on average, %.0f s at most",
		got, len(all), last-first, others, wait/others, most)
}
