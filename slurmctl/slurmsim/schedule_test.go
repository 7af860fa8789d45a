package slurmsim_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/slurmctl"
	"github.com/evoslurm/evoslurm/slurmctl/slurmsim"
)

// TestSubmittedAtEachLook checks that jobs submitted exactly when slurmctld's loop looks do not
// delay the look. The loop looks once a second, and traces have whole seconds.
func TestSubmittedAtEachLook(t *testing.T) {
	c := slurmsim.New(slurmsim.Options{Nodes: 4})
	defer c.Close()
	for s := range 30 {
		c.After(time.Duration(s)*time.Second, func() {
			must[slurmctl.JobID](t)(c.Submit(slurmsim.Job{Script: "#!", Nodes: 1, TimeLimit: time.Hour, Program: slurmsim.Func(func(p *slurmsim.Process) { p.Sleep(time.Hour) })}))
		})
	}
	c.Sleep(20 * time.Second)
	running := 0
	for _, j := range c.Queue() {
		if j.State == slurmctl.Running {
			running++
		}
	}
	if running != 4 {
		t.Errorf("%d jobs run on 4 free nodes, 20 s after the first came and with one more a second", running)
	}
}

// TestPlainQueue checks a shortcut: if all jobs wait only for nodes, the model need not visit each
// to know when time alone lets one start, and which. The outcome must equal that of a run without
// the shortcut, where each job has a begin time in the past.
func TestPlainQueue(t *testing.T) {
	play := func(begin bool, seed uint64) (events []slurmsim.Event) {
		chance := rand.New(rand.NewPCG(seed, 0))
		c := slurmsim.New(slurmsim.Options{Nodes: 16, CPUs: 1, Events: func(e slurmsim.Event) { events = append(events, e) }})
		defer c.Close()
		for range 60 {
			lasts := time.Duration(1+chance.IntN(900)) * time.Second
			job := slurmsim.Job{Script: "#!", Nodes: 1 + chance.IntN(12), Lasts: lasts, TimeLimit: lasts + time.Duration(chance.IntN(20))*time.Minute}
			if begin {
				job.Begin = c.Now().Add(-time.Hour)
			}
			c.After(time.Duration(chance.IntN(600))*time.Second, func() { must[slurmctl.JobID](t)(c.Submit(job)) })
		}
		c.Sleep(100 * time.Hour)
		return events
	}
	for range 20 {
		seed := rand.Uint64()
		if plain, gone := play(false, seed), play(true, seed); len(plain) != 120 || !slices.Equal(plain, gone) {
			t.Fatalf("seed %d: %d and %d events\n%v\n%v", seed, len(plain), len(gone), plain, gone)
		}
	}
}
