package slurmsim_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/slurmctl"
	"github.com/evoslurm/evoslurm/slurmctl/slurmsim"
)

// must returns a value that came without an error.
func must[T any](t *testing.T) func(v T, err error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// TestProcesses checks that commands of several processes run in parallel, and that a blocking call
// delays no other process.
func TestProcesses(t *testing.T) {
	c := slurmsim.New(slurmsim.Options{Latency: slurmsim.Latency{Look: 100 * time.Millisecond, Salloc: time.Millisecond, Lost: time.Second}})
	defer c.Close()
	var log []string
	for i := range 3 {
		k := c.Client(slurmsim.Root)
		c.Go(func(p *slurmsim.Process) {
			p.Sleep(time.Duration(i) * 10 * time.Millisecond)
			_, err := k.Jobs(t.Context())
			log = append(log, fmt.Sprintf("%d %v %v", i, c.Elapsed(), err))
		})
	}
	c.Sleep(time.Second)
	if want := []string{"0 100ms <nil>", "1 110ms <nil>", "2 120ms <nil>"}; !slices.Equal(log, want) {
		t.Errorf("%q, want %q", log, want)
	}
}

// TestPrograms runs programs in virtual time as job scripts.
func TestPrograms(t *testing.T) {
	c := slurmsim.New(slurmsim.Options{SchedDelay: time.Second})
	defer c.Close()
	var log []string
	note := func(p *slurmsim.Process, what string) {
		log = append(log, fmt.Sprintf("%s after %v", what, p.Now().Sub(p.Job().StartTime).Round(5*time.Second)))
	}
	var wake func()
	id := must[slurmctl.JobID](t)(c.Submit(slurmsim.Job{Script: "#!", Nodes: 2, TimeLimit: time.Hour, Program: slurmsim.Func(func(p *slurmsim.Process) {
		p.Sleep(10 * time.Minute)
		note(p, "slept")
		p.Await(func(w func()) { wake = w }) // as evosctl next waits for its answer
		note(p, "answered")
		note(p, p.Wait(time.Hour))
		p.Exit(3)
	})}))
	k := c.Client(slurmsim.Root)
	c.Sleep(5 * time.Minute)
	if err := k.Suspend(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	c.Sleep(time.Minute)
	if err := k.Resume(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	c.Sleep(7 * time.Minute)
	wake()
	c.Sleep(time.Minute)
	if _, err := k.Signal(t.Context(), "USR1", slurmctl.SignalOptions{Full: true}, id); err != nil {
		t.Fatal(err)
	}
	c.Sleep(time.Minute)
	if want := []string{"slept after 11m0s", "answered after 13m0s", "USR1 after 14m0s"}; !slices.Equal(log, want) {
		t.Errorf("%q, want %q", log, want)
	}
	if j := must[[]slurmctl.Job](t)(k.JobsByID(t.Context(), id))[0]; j.State != slurmctl.Failed || j.ExitCode != 3 {
		t.Errorf("%+v", j)
	}
	gone := false
	long := must[slurmctl.JobID](t)(c.Submit(slurmsim.Job{Script: "#!", Nodes: 1, TimeLimit: time.Minute, Program: slurmsim.Func(func(p *slurmsim.Process) {
		defer func() { gone = true }()
		p.Sleep(time.Hour)
		t.Error("it outlives its limit")
	})}))
	c.Sleep(3 * time.Minute)
	if j := must[[]slurmctl.Job](t)(k.JobsByID(t.Context(), long))[0]; j.State != slurmctl.TimedOut || !gone {
		t.Errorf("%+v, its script gone: %v", j, gone)
	}
}

// TestFaults checks the faults of commands, and that the commands still take effect.
func TestFaults(t *testing.T) {
	for _, tc := range []struct {
		name  string
		fault slurmsim.Fault
		is    error
		lasts time.Duration // at least
		done  bool
	}{
		{"none", slurmsim.Fault{}, nil, 0, true},
		{"fails before it took effect", slurmsim.Fault{Drop: true}, slurmctl.ErrUnreachable, 0, false},
		{"is refused", slurmsim.Fault{Drop: true, Err: slurmsim.Refusal("Access/permission denied")}, slurmctl.ErrAccessDenied, 0, false},
		{"fails after it took effect", slurmsim.Fault{Err: slurmsim.Refusal("Socket timed out on send/recv operation")}, slurmctl.ErrUnreachable, 0, true},
		{"hangs", slurmsim.Fault{Drop: true, After: time.Hour}, slurmctl.ErrUnreachable, 5 * time.Second, false},
		{"hangs after it took effect", slurmsim.Fault{After: time.Hour}, slurmctl.ErrUnreachable, 5 * time.Second, true},
		{"answers late", slurmsim.Fault{After: 2 * time.Second}, nil, 2 * time.Second, true},
		{"takes effect late", slurmsim.Fault{Before: 2 * time.Second}, nil, 2 * time.Second, true},
		{"takes effect when nobody waits any more", slurmsim.Fault{Before: 8 * time.Second}, slurmctl.ErrUnreachable, 5 * time.Second, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := slurmsim.New(slurmsim.Options{Faults: func(q slurmsim.Command) slurmsim.Fault {
				if q.Changes() && q.Name == "UpdateJob" {
					return tc.fault
				}
				return slurmsim.Fault{}
			}})
			id := must[slurmctl.JobID](t)(c.Submit(slurmsim.Job{Script: "#!", Nodes: 1, Held: true}))
			k := c.Client(slurmsim.Root)
			text, begun := "changed", c.Elapsed()
			ctx, cancel := c.WithTimeout(t.Context(), 5*time.Second)
			defer cancel()
			err := k.UpdateJob(ctx, id, slurmctl.JobUpdate{Comment: &text})
			if tc.is == nil && err != nil || !errors.Is(err, tc.is) {
				t.Errorf("%v, want %v", err, tc.is)
			}
			if d := c.Elapsed() - begun; d < tc.lasts || d > tc.lasts+time.Second {
				t.Errorf("it lasts %v, want %v", d, tc.lasts)
			}
			c.Sleep(10 * time.Second)
			if j := must[[]slurmctl.Job](t)(k.JobsByID(t.Context(), id))[0]; (j.Comment == text) != tc.done {
				t.Errorf("comment %q", j.Comment)
			}
		})
	}
}

// TestControllerDown checks that without slurmctld commands fail and jobs run on, and that
// slurmctld does not know what it had not saved.
func TestControllerDown(t *testing.T) {
	c := slurmsim.New(slurmsim.Options{SchedDelay: time.Second})
	defer c.Close()
	k := c.Client(slurmsim.Root)
	ended := false
	script := slurmsim.Func(func(p *slurmsim.Process) { p.Sleep(time.Minute); ended = true })
	first := must[slurmctl.JobID](t)(c.Submit(slurmsim.Job{Script: "#!", Nodes: 2, TimeLimit: time.Hour, Program: script}))
	c.Sleep(20 * time.Second)
	lost := must[slurmctl.JobID](t)(c.Submit(slurmsim.Job{Script: "#!", Nodes: 1, TimeLimit: time.Hour, Program: slurmsim.Func(func(p *slurmsim.Process) { p.Sleep(time.Hour) })}))
	c.Sleep(2 * time.Second)
	c.StopController(true)
	if _, err := k.Jobs(t.Context()); !errors.Is(err, slurmctl.ErrUnreachable) {
		t.Errorf("Jobs: %v", err)
	}
	c.Sleep(time.Minute)
	if !ended {
		t.Error("the script did not run on")
	}
	c.StartController()
	c.Sleep(5 * time.Second)
	jobs := must[[]slurmctl.Job](t)(k.JobsByID(t.Context(), first, lost))
	if len(jobs) != 1 || jobs[0].State != slurmctl.Completed {
		t.Errorf("%+v", jobs)
	}
	nodes, _ := c.Sinfo()
	for _, n := range nodes {
		if n.State != "idle" {
			t.Errorf("%+v", n)
		}
	}
}

// TestRequeueForgotten checks a job that was requeued and started again right before a crash.
// Afterwards slurmctld believes that it is in its first run, which the nodes no longer know.
func TestRequeueForgotten(t *testing.T) {
	c := slurmsim.New(slurmsim.Options{SchedDelay: time.Millisecond})
	defer c.Close()
	k := c.Client(slurmsim.Root)
	begun, ended := 0, 0
	script := slurmsim.Func(func(p *slurmsim.Process) { begun++; p.Sleep(time.Minute); ended++ })
	id := must[slurmctl.JobID](t)(c.Submit(slurmsim.Job{Script: "#!", Nodes: 2, TimeLimit: time.Hour, Program: script}))
	c.Sleep(20 * time.Second)
	if err := k.Requeue(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	c.Sleep(time.Second)
	if err := k.UpdateJob(t.Context(), id, slurmctl.JobUpdate{StartNow: true}); err != nil {
		t.Fatal(err)
	}
	c.Sleep(2 * time.Second)
	c.Crash()
	c.Sleep(2 * time.Minute)
	jobs := must[[]slurmctl.Job](t)(k.JobsByID(t.Context(), id))
	if begun != 2 || ended != 0 || len(jobs) != 1 || jobs[0].State != slurmctl.Completed {
		t.Errorf("%d runs begun, %d ended, and the job is %+v", begun, ended, jobs)
	}
}

// TestClockStep checks that a clock change does not wake sleepers but triggers events at clock
// times.
func TestClockStep(t *testing.T) {
	c := slurmsim.New(slurmsim.Options{SchedDelay: time.Second, SchedInterval: time.Second})
	k := c.Client(slurmsim.Root)
	runs := must[slurmctl.JobID](t)(c.Submit(slurmsim.Job{Script: "#!", Nodes: 1, TimeLimit: 3 * time.Hour, Lasts: 2 * time.Hour}))
	waits := must[slurmctl.JobID](t)(c.Submit(slurmsim.Job{Script: "#!", Nodes: 1, TimeLimit: time.Hour, Begin: c.Now().Add(time.Hour)}))
	c.Sleep(time.Minute)
	c.StepClock(time.Hour)
	c.Sleep(time.Minute)
	for _, j := range must[[]slurmctl.Job](t)(k.JobsByID(t.Context(), runs, waits)) {
		if j.State != slurmctl.Running {
			t.Errorf("%+v", j)
		}
	}
}

// TestAllocateTimeout checks that an allocation that is not granted in time says why, and is gone.
func TestAllocateTimeout(t *testing.T) {
	c := slurmsim.New(slurmsim.Options{})
	k := c.Client(slurmsim.Root)
	if _, err := k.Allocate(t.Context(), slurmctl.AllocateRequest{Nodes: 8, Name: "first", Exclusive: true}); err != nil {
		t.Fatal(err)
	}
	begun := c.Elapsed()
	ctx, cancel := c.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	j, err := k.Allocate(ctx, slurmctl.AllocateRequest{Nodes: 1, Name: "second", Exclusive: true})
	var pending *slurmctl.PendingError
	if !errors.As(err, &pending) || pending.Reason != "Resources" || errors.Is(err, slurmctl.ErrUnreachable) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}
	if d := c.Elapsed() - begun; d < 3*time.Second || d > 4*time.Second {
		t.Errorf("it lasts %v", d)
	}
	if j := must[[]slurmctl.Job](t)(k.JobsByID(t.Context(), j.ID))[0]; j.State != slurmctl.Cancelled {
		t.Errorf("%+v", j)
	}
}

// TestEqualSeeds checks that equal seeds give equal runs, with random latencies and many processes,
// on one processor and on several.
func TestEqualSeeds(t *testing.T) {
	run := func(seed uint64) (log []string) {
		c := slurmsim.New(slurmsim.Options{Seed: seed, Latency: slurmsim.Latency{Spread: 0.5}, SchedDelay: time.Second})
		defer c.Close()
		k := c.Client(slurmsim.Root)
		for i := range 30 {
			c.Go(func(p *slurmsim.Process) {
				p.Sleep(time.Duration(i%7) * time.Second)
				id, err := k.Submit(t.Context(), slurmsim.Job{Nodes: 1 + i%5, TimeLimit: time.Minute, Program: slurmsim.Func(func(p *slurmsim.Process) {
					p.Sleep(time.Duration(i) * time.Second)
				})})
				log = append(log, fmt.Sprint(c.Elapsed(), id, err))
			})
		}
		c.Sleep(10 * time.Minute)
		for id := slurmctl.JobID(1); id <= 30; id++ {
			for _, j := range must[[]slurmctl.Job](t)(k.JobsByID(t.Context(), id)) {
				log = append(log, fmt.Sprintf("%+v", j))
			}
		}
		return log
	}
	first := run(1)
	before := runtime.GOMAXPROCS(1)
	again := run(1)
	runtime.GOMAXPROCS(before)
	if !slices.Equal(first, again) {
		t.Error("equal seeds, different runs")
	}
	if slices.Equal(first, run(2)) {
		t.Error("the seed does not matter")
	}
}
