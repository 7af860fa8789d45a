package slurmsim_test

import (
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/slurmctl"
	"github.com/evoslurm/evoslurm/slurmctl/slurmsim"
)

// TestSubmittedAtEachLook: jobs that come just as slurmctld's loop is to look do not put the look off. It
// looks once a second, and traces have whole seconds.
func TestSubmittedAtEachLook(t *testing.T) {
	c := slurmsim.New(slurmsim.Options{Nodes: 4})
	defer c.Close()
	for s := range 30 {
		c.After(time.Duration(s)*time.Second, func() {
			must[slurmctl.JobID](t)(c.Submit(slurmsim.Job{Script: "#!", Nodes: 1, TimeLimit: time.Hour, Program: func(p *slurmsim.Process) { p.Sleep(time.Hour) }}))
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
