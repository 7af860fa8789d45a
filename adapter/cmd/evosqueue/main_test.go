package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/testscript"
	"github.com/sirupsen/logrus"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/cmd/internal/contribtest"
	"github.com/evoslurm/evoslurm/adapter/show/display"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest/must"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"evosqueue": main})
}

var now = time.Date(2026, 11, 20, 14, 0, 0, 0, time.UTC)

func at(d time.Duration) time.Time { return now.Add(d) }

// example are jobs in all states.
func example() []api.Job {
	return []api.Job{
		{ID: 12, Name: "a name that is longer than sixteen", User: "bob", UID: 2002, Partition: "main", State: "queued", Reason: "waits for 6 nodes", Drive: "companion",
			ExpandLimit: "1", Profile: "6@30m", Steps: 1, Priority: 10, Submit: at(-time.Hour), NextChange: at(25 * time.Hour), NextNodes: 6,
			Start: at(25 * time.Hour), End: at(25*time.Hour + 30*time.Minute), Plan: []api.Span{{Step: 1, Start: at(25 * time.Hour), End: at(25*time.Hour + 30*time.Minute), Nodes: 6}}},
		{ID: 7, Name: "amr", User: "alice", UID: 2001, Partition: "main", State: "running", Drive: "merge", ExpandLimit: "2", Profile: "2@10m,5@30m,1@5m",
			Step: 1, Steps: 3, Nodes: 2, NodeList: "n[1-2]", Submit: at(-10 * time.Minute), NextChange: at(250 * time.Second), NextNodes: 5,
			Start: at(-350 * time.Second), End: at(40 * time.Minute),
			Plan: []api.Span{{Step: 1, Start: at(-350 * time.Second), End: at(250 * time.Second), Nodes: 2}, {Step: 2, Start: at(250 * time.Second), End: at(35 * time.Minute), Nodes: 5}},
			Past: []api.Span{{Step: 1, Start: at(-350 * time.Second), Nodes: 2, NodeList: "n[1-2]"}}},
		{ID: 9, Name: "weird\x1b[31m\n", User: "alice", UID: 2001, Partition: "debug", State: "waiting", Reason: "step 1 has ended, 4 nodes will come", Drive: "merge", ExpandLimit: "inf",
			Profile: "1@10m,4@10m", Step: 1, Steps: 2, Nodes: 1, NextChange: at(-time.Second), NextNodes: 4, Start: at(-3 * time.Hour), End: at(time.Hour)},
		{ID: 3, Name: "done", User: "carol", UID: 2003, Partition: "main", State: "ended", EndState: "TIMEOUT", Step: 2, Steps: 2, Start: at(-400 * 24 * time.Hour), End: at(-399 * 24 * time.Hour)},
		{ID: 10, Name: "shrinks", User: "bob", UID: 2002, Partition: "main", State: "running", Step: 1, Steps: 2, Nodes: 5, NextChange: at(20 * time.Second), NextNodes: 1, Start: at(-2 * time.Hour), End: at(3 * time.Hour)},
		{ID: 11, Name: "ends", User: "bob", UID: 2002, Partition: "main", State: "starting", Step: 1, Steps: 1, Nodes: 1, NextChange: at(90061 * time.Second), Start: now, End: at(26 * time.Hour)},
	}
}

// fixed is a source that always knows the same.
type fixed struct {
	jobs []api.Job
	err  error
}

func (f fixed) Jobs(_ context.Context, all bool) ([]api.Job, error) {
	var jobs []api.Job
	for _, j := range f.jobs {
		if all || j.State != "ended" {
			jobs = append(jobs, j)
		}
	}
	return jobs, f.err
}

func (f fixed) Queue(ctx context.Context, all bool) ([]api.Job, error) { return f.Jobs(ctx, all) }

func (f fixed) Status(context.Context) (api.Status, error) {
	return api.Status{Nodes: 8, Cluster: "this"}, f.err
}

// Cluster has a stock job on a node, until its time limit.
func (f fixed) Cluster(context.Context) (api.Cluster, error) {
	return api.Cluster{Nodes: []api.Node{{Name: "n1"}, {Name: "n2"}, {Name: "n8"}}, Others: []api.OtherJob{{ID: 40, Name: "stock", User: "dave", Start: at(-time.Hour), End: at(12 * time.Hour), NodeList: "n8"}}}, f.err
}

// view runs evosqueue's view for a command line.
func view(t *testing.T, term display.Terminal, args ...string) (string, error) {
	t.Helper()
	return viewOf(t, fixed{jobs: example()}, term, args...)
}

func viewOf(t *testing.T, from source, term display.Terminal, args ...string) (string, error) {
	t.Helper()
	var o options
	cmd := newCommandOf(&o)
	words, err := canonical(cmd.Flags(), args)
	if err != nil {
		return "", err
	}
	if err := cmd.ParseFlags(words); err != nil {
		return "", err
	}
	if err := o.operands(cmd.Flags().Args()); err != nil {
		return "", err
	}
	if err := o.prepare(); err != nil {
		return "", err
	}
	return o.view(t.Context(), from, now, term)
}

func TestGolden(t *testing.T) {
	for name, args := range map[string]string{
		"default": "", "all": "-t all", "long": "-l -t all", "user": "-u alice,2002 -h", "states": "-t R,TO", "jobs": "-j 12,3", "partition": "-p debug", "name": "-n amr,ends",
		"none": "-u nobody", "gantt": "--gantt", "json": "--json=evoslurm -j 7", "ascii": "--ascii -t all",
	} {
		t.Run(name, func(t *testing.T) {
			got, err := view(t, display.Terminal{Width: 110}, strings.Fields(args)...)
			must.OK(t, err)
			file := filepath.Join("testdata", name+".txt")
			if *contribtest.Rewrite {
				must.OK(t, os.WriteFile(file, []byte(got), 0o644))
			}
			want := must.Read(t, file)
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("%s (-want +got; look, then rewrite with -rewrite):\n%s", file, diff)
			}
		})
	}
}

func TestBadFlags(t *testing.T) {
	for args, reason := range map[string]string{
		"-j x": "invalid job ID \"x\"", "-j 0": "invalid job ID \"0\"", "-t XX": "invalid job state: XX; there are PD, CF, R, WT, S, CD", "--gantt -l": "only one of --json, --yaml, --gantt and --long", "-i -1": "at least 0.1 seconds", "--what": "unrecognized option '--what'", "--st": "ambiguous", "job": "unrecognized option: job", "-j 1 2": "unrecognized option: 2",
		"-o %{nothing}": "no field is called {nothing}: there are bounds, claim, components", "-o %{step": "{ without }", "-o %i -O jobid": "incompatible", "-l -o %i": "mutually exclusive",
		"--federation": "no federated cluster", "-M a,b --json": "go with one cluster", "-w n[": "invalid entry for --nodelist", "-w n1,nosuch": "Invalid node name nosuch",
	} {
		if _, err := view(t, display.Terminal{}, strings.Fields(args)...); err == nil || !strings.Contains(err.Error(), reason) {
			t.Errorf("%s: %v, want %q", args, err, reason)
		}
	}
}

func TestClock(t *testing.T) {
	for seconds, want := range map[int64]string{0: "0:00", 20: "0:20", 250: "4:10", 3600: "1:00:00", 90061: "1-01:01:01"} {
		if got := clock(time.Duration(seconds) * time.Second); got != want {
			t.Errorf("%d s is %q, want %q", seconds, got, want)
		}
	}
}

// untilFull stops the iteration once it has written three times.
type untilFull struct {
	text   bytes.Buffer
	writes int
	cancel context.CancelFunc
}

func (w *untilFull) Write(p []byte) (int, error) {
	n, err := w.text.Write(p)
	if w.writes++; w.writes == 3 {
		w.cancel()
	}
	return n, err
}

func TestIterate(t *testing.T) {
	for _, bad := range []float64{math.NaN(), math.Inf(1), 1e300, 0.05, -1} { // no pause at all, some of them
		o := options{iterate: bad}
		if err := o.prepare(); err == nil {
			t.Errorf("--iterate=%v is taken", bad)
		}
	}
	for _, c := range []struct {
		o    options
		from source
		tty  bool
		want string
	}{
		{options{iterate: 0.1}, fixed{jobs: example()}, false, "JOBID"},
		{options{iterate: 0.1, gantt: true}, fixed{jobs: example()}, true, "\x1b[H"},
		{options{iterate: 0.1}, fixed{err: errors.New("away")}, false, "evosqueue: error: away\n"},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		out := &untilFull{cancel: cancel}
		if err := c.o.run(ctx, c.o.of(c.from), out, display.Terminal{TTY: c.tty, Width: 80, Height: 24}); err != nil {
			t.Error(err)
		}
		if n := strings.Count(out.text.String(), c.want); n != 3 {
			t.Errorf("%q was shown %d times:\n%s", c.want, n, out.text.String())
		}
	}
	var o options
	if err := o.run(t.Context(), o.of(fixed{err: errors.New("away")}), io.Discard, display.Terminal{}); err == nil || err.Error() != "away" {
		t.Errorf("without --iterate: %v", err)
	}
}

// backend serves the example.
type backend struct {
	fixed fixed
	drain *atomic.Pointer[api.Drain]
	api.Backend
}

func (b backend) Jobs(ctx context.Context, all bool) ([]api.Job, error) {
	return b.fixed.Jobs(ctx, all)
}
func (b backend) Cluster(ctx context.Context) (*api.Cluster, error) {
	c, err := b.fixed.Cluster(ctx)
	return &c, err
}
func (b backend) Status(ctx context.Context) (api.Status, error) {
	s, err := b.fixed.Status(ctx)
	s.Drain = b.drain.Load()
	return s, err
}

// TestScripts runs the program against a real server of the API.
func TestScripts(t *testing.T) {
	dir, err := os.MkdirTemp("", "evosqueue") // a short path, for the socket
	must.OK(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	log := logrus.New()
	log.SetOutput(io.Discard)
	drain := new(atomic.Pointer[api.Drain])
	server := &api.Server{Backend: backend{fixed: fixed{jobs: example()}, drain: drain}, Log: log, Socket: filepath.Join(dir, "api.sock"), Reading: func() api.Reading { return api.Anybody }}
	must.OK(t, server.Listen())
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- server.Serve(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	t.Run("scripts", func(t *testing.T) {
		testscript.Run(t, testscript.Params{
			Dir: "testdata/script",
			Setup: func(env *testscript.Env) error {
				env.Setenv("EVOSLURM_CONFIG", filepath.Join(env.WorkDir, "evoslurm.yaml"))
				env.Setenv("LC_ALL", "C.UTF-8")
				return os.WriteFile(filepath.Join(env.WorkDir, "evoslurm.yaml"), []byte("api: unix://"+filepath.Join(dir, "api.sock")+"\n"), 0o644)
			},
			Cmds: map[string]func(*testscript.TestScript, bool, []string){
				"drain": func(_ *testscript.TestScript, _ bool, args []string) { drain.Store(&api.Drain{Words: args[0]}) },
			},
		})
	})
}
