package controller_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/internal/config"
	"github.com/evoslurm/evoslurm/adapter/sidecar/store"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest"
)

// TestShippedStrategies: jobs run, grow and shrink under each strategy that comes
// with Evoslurm, as a plugin; what one plans is carried out.
func TestShippedStrategies(t *testing.T) {
	t.Parallel()
	dir := plugins(t)
	l := newLab(t, slurmtest.Options{Accounting: true, PermitJobExpansion: true}, func(c *config.Config) { c.Strategies.Dir = dir })
	for _, name := range []string{"rigid", "klein", "minwaste", "search", "asap"} {
		l.run(name, func(l *lab) {
			l.use(name, nil)
			if s := l.strategy(name); s.Kind != "plugin" {
				t.Fatalf("%s is %s, want a plugin", name, s.Kind)
			}
			grows := l.submit("2@90s,6@20s,1@20s")
			l.running(grows, 1)
			// Step by step, there is room for this job beside the other; beside the other's peak,
			// there is not.
			waits := l.submit("3@20s,2@20s")
			plan := l.planned(waits).Plan
			if ahead := time.Until(plan[0].Start); (ahead > 100*time.Second) != (name == "rigid") || name != "rigid" && ahead > 20*time.Second || plan[0].Nodes != 3 || plan[1].Nodes != 2 {
				t.Errorf("the second job is to start in %v, with %+v", ahead, plan)
			}
			second := func() {
				l.running(waits, 1)
				l.has(l.next(waits, 1), 2)
			}
			if name != "rigid" {
				second()
			}
			l.has(l.next(grows, 1), 6)
			l.has(l.next(grows, 2), 1)
			time.Sleep(time.Second) // so that its last step is seen
			if name == "rigid" {
				l.cancel(grows)
				second()
				time.Sleep(time.Second)
			}
			for _, id := range []uint32{grows, waits} {
				l.end(id)
			}
			l.held(grows, 2, 6, 1)
			l.held(waits, 3, 2)
			if s := l.strategy(name); s.Faults != 0 || s.Fallen != 0 || s.Plans == 0 {
				t.Errorf("%d plans, %d faults (%s), %d cycles without it", s.Plans, s.Faults, s.LastFault, s.Fallen)
			}
		})
	}
}

// TestOneCallOfThePluginACycle: partitions that share nodes and constraints make
// several requests, in one call.
func TestOneCallOfThePluginACycle(t *testing.T) {
	t.Parallel()
	dir := plugins(t)
	l := newLab(t, slurmtest.Options{
		Partitions: []slurmtest.Partition{{Name: "all", Default: true}, {Name: "left", Nodes: "n[1-5]"}, {Name: "right", Nodes: "n[4-8]"}},
		NodeExtra:  map[string]string{"n[1-3]": "Feature=big"},
	}, func(c *config.Config) { c.Strategies.Dir = dir })
	if err := os.Chmod(dir, 0o777); err != nil { // for the notes; only this test uses the folder
		t.Fatal(err)
	}
	notes := filepath.Join(dir, "notes")
	l.must(os.Mkdir(notes, 0o777))
	l.must(os.Chmod(notes, 0o777))
	l.must(os.Chmod(dir, 0o755))
	blocker := l.sbatch(1, "--nodes=8", "--exclusive", "--time=60")
	l.onNodes(blocker, 8)
	var jobs []uint32
	for _, where := range [][]string{{"--partition=left"}, {"--partition=left"}, {"--partition=right"}, {"--partition=left", "--constraint=big"}, {"--partition=right"}, {"--partition=all"}} {
		jobs = append(jobs, l.submit("2@10m,3@10m", where...))
	}
	for _, id := range jobs {
		l.planned(id)
	}
	l.use("evil", map[string]string{"note": notes + "/calls"})
	l.eventually("ten cycles", func() error {
		if n := l.strategy("evil").Plans; n < 10 {
			return fmt.Errorf("%d", n)
		}
		return nil
	})
	l.use("noX", nil)
	evil := l.strategy("evil")
	var calls []string
	l.eventually("the last call has ended", func() error {
		text, err := os.ReadFile(notes + "/calls")
		if calls = strings.Fields(strings.ReplaceAll(string(text), " ", ":")); err == nil && len(calls) < evil.Plans {
			err = fmt.Errorf("%d calls in %d cycles", len(calls), evil.Plans)
		}
		return err
	})
	if len(calls) != evil.Plans || evil.Faults != 0 || evil.Fallen != 0 {
		t.Errorf("%d calls in %d cycles, %d faults (%s), %d cycles without it", len(calls), evil.Plans, evil.Faults, evil.LastFault, evil.Fallen)
	}
	for _, call := range calls {
		if call != "4:6" {
			t.Errorf("a call has requests:jobs %s, want 4:6", call)
		}
	}
	for _, id := range jobs {
		l.cancel(id)
	}
	l.cancelStock(1, blocker)
	l.clean()
}

// TestStrategyKeptOverRestarts: use outlives the sidecar; the configuration has its
// turn when it changes.
func TestStrategyKeptOverRestarts(t *testing.T) {
	dir := plugins(t)
	l := newLab(t, slurmtest.Options{}, func(c *config.Config) { c.Strategies.Dir = dir })
	restart := func() {
		l.stop()
		l.start()
	}
	inUse := func(name, by, instead string, value string) {
		t.Helper()
		s := l.strategy(name)
		if !s.InUse || s.By != by || s.Instead != instead || value != "" && s.Parameters[0].Value != value {
			t.Errorf("%+v, want it in use by %s instead of %q with %s", s, by, instead, value)
		}
	}
	told := func(kind, text string) {
		t.Helper()
		l.eventually("the event log", func() error {
			for _, e := range l.events(kind, 0) {
				if strings.Contains(string(e.Detail), text) {
					return nil
				}
			}
			return fmt.Errorf("has no %q with %q", kind, text)
		})
	}
	inUse("noX", "configuration", "", "")
	l.use("klein", map[string]string{"expand_limit": "1.5"})
	restart()
	inUse("klein", "tester", "noX", "1.5")
	told("strategy kept", `"klein"`)
	planned := l.submit("2@10m")
	l.eventually("it plans", func() error {
		if s := l.strategy("klein"); s.Plans == 0 {
			return errors.New("not yet")
		}
		return nil
	})
	l.cancel(planned)
	restart()
	inUse("klein", "tester", "noX", "1.5")

	// back to the configuration's, for good
	l.use(api.Configured, nil)
	inUse("noX", "tester", "", "")
	restart()
	inUse("noX", "configuration", "", "")

	// a new configuration while it runs, and while it does not
	l.use("asap", nil)
	l.cfg.Strategy = "2X"
	l.must(l.Configure(l.ctx(), l.cfg))
	inUse("2X", "configuration", "", "")
	restart()
	inUse("2X", "configuration", "", "")
	l.use("asap", nil)
	l.must(l.Configure(l.ctx(), l.cfg)) // the same as before says nothing new
	inUse("asap", "tester", "2X", "")
	l.stop()
	l.cfg.Strategy, l.cfg.Strategies.Parameters = "rigid", nil
	l.start()
	inUse("rigid", "configuration", "", "")
	restart()
	inUse("rigid", "configuration", "", "")
	for _, e := range l.events("strategy", 0) {
		var detail struct{ By, From, To string }
		if err := json.Unmarshal(e.Detail, &detail); err != nil || detail.By == "" || detail.From == "" || detail.To == "" {
			t.Errorf("a change is written as %s", e.Detail)
		}
	}
	told("strategy", `"to":"rigid"`)

	// what cannot be written down is not done
	other, err := store.Open(context.Background(), l.cfg.Database)
	l.must(err)
	defer other.Close()
	l.must(other.Together(context.Background(), func(*store.Store) error { // nobody else can write now
		if _, err := l.UseStrategy(l.ctx(), api.Planning, "klein", api.StrategyRequest{}, "tester"); err == nil {
			t.Error("a change was made that the database knows nothing of")
		}
		return nil
	}))
	inUse("rigid", "configuration", "", "")
	l.stop()
	if left := keepers(t); len(left) != 0 {
		t.Errorf("processes are left behind: %v", left)
	}
}
