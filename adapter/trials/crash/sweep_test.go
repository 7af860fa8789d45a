package crash_test

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
)

var (
	full  = flag.Bool("crash.full", false, "try every point, not a sample")
	first = flag.Int("crash.from", 1, "with -crash.full: the first point")
	every = flag.Int("crash.every", 1, "with -crash.full: how far apart points are, so that several runs can share them")
)

// sample is how many points of a scenario are tried where not all are.
const sample = 2

// TestCrashPoints kills the sidecar at the numbered points of every scenario,
// one in each run, starts it again and sees that all ends as it should.
func TestCrashPoints(t *testing.T) {
	for _, sc := range scenarios {
		t.Run(sc.name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, sc.options, healing)
			s.notRoot(sc.name == byTheJob)
			s.occupy()
			points, _, err := s.try(sc, 0)
			if err != nil {
				t.Fatalf("without any crash: %v\n%s", err, s.story())
			}
			step, begin := *every, *first
			if !*full {
				// spread over the scenario, others for each
				step = points / sample
				begin = 1 + len(sc.name)*7%step
			}
			tried := 0
			// killed and started again the sidecar makes more points than without
			for n := begin; ; n += step {
				_, hit, err := s.try(sc, n)
				if hit == "" && err == nil {
					break // the scenario has no such point
				}
				tried++
				fmt.Fprintf(os.Stderr, "%s %d/%d: killed %s\n", sc.name, n, points, hit)
				if err != nil {
					t.Errorf("%s: killed at point %d, %s: %v\n%s", sc.name, n, hit, err, s.story())
					if err := s.clear(); err != nil {
						t.Fatalf("what the scenario left cannot be cleared: %v", err)
					}
				}
				if !*full && tried == sample {
					break
				}
			}
			someTried(t, tried, points-begin)
			fmt.Fprintf(os.Stderr, "%s: %d crash points tried, %d in a run without a crash\n", sc.name, tried, points)
		})
	}
}

// someTried fails a test that tried no crash point though there are some after the first one.
func someTried(t *testing.T, tried, after int) {
	t.Helper()
	if tried == 0 && after >= 0 {
		t.Error("no crash point was tried")
	}
}

// try runs a scenario with the sidecar killed at point n (0: never). It gives how
// many points there were, and what the n-th was.
func (s *site) try(sc scenario, n int) (points int, hit string, err error) {
	s.must(os.RemoveAll(s.Dir + "/db"))
	s.must(s.account.Own(s.Dir + "/db"))
	s.must(s.log.Truncate(0))
	s.control.arm(n)
	s.start()
	err = sc.run(s)
	if err == nil {
		err = within(patience, s.clean)
	}
	if err == nil {
		err = within(patience, s.settled)
	}
	points, hit = s.control.reached()
	s.stop()
	if err == nil {
		err = s.checkStore()
	}
	return points, hit, err
}

// settled sees that the sidecar, which may have just started, has looked at Slurm and
// knows of no job any more.
func (s *site) settled() error {
	if status, err := s.status(); err != nil || status.LastCycle.IsZero() {
		return errors.Join(err, errors.New("the sidecar has not seen Slurm yet"))
	}
	jobs, err := s.Jobs(1)
	for _, j := range jobs {
		if j.State != "ended" {
			err = errors.Join(err, fmt.Errorf("the sidecar has job %d as %s: %s", j.ID, j.State, j.Reason))
		}
	}
	return err
}

// story returns what the sidecar did and said in the present run.
func (s *site) story() string {
	text, _ := os.ReadFile(s.log.Name())
	s.control.mu.Lock()
	defer s.control.mu.Unlock()
	var b strings.Builder
	for _, line := range s.control.history {
		if !strings.Contains(line, "squeue") && !strings.Contains(line, "sinfo") && !strings.Contains(line, " show ") {
			b.WriteString(line + "\n")
		}
	}
	return fmt.Sprintf("commands and commits:\n%sthe sidecar's log:\n%s", b.String(), text)
}
