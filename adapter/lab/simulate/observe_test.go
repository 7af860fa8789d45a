package simulate

import (
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/internal/config"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/observed"
	"github.com/evoslurm/evoslurm/planner"
	"github.com/evoslurm/evoslurm/slurmctl/slurmsim"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest/must"
)

// TestObserve plays all histories with a sidecar that only observes. It asks for nothing that changes Slurm, adopts no
// job, reads no script, and answers no call with nodes.
func TestObserve(t *testing.T) {
	histories(t, func(t *testing.T, _, script, _ string) {
		h, polls := newHistory(io.Discard), 0
		set := setting{config: config.Default(), options: slurmsim.Options{Faults: h.faults}}
		must.OK(t, set.read(script))
		set.config.Mode, set.config.PollInterval = config.ModeObserve, 5*time.Second
		cluster := slurmsim.New(set.options)
		defer cluster.Close()
		noX, _ := planner.StrategyByName("noX")
		h.s = &Sidecar{Cluster: cluster, Database: NewDatabase(), Config: set.config, Strategy: noX, Watch: func(_ time.Time, inputs []msg.Input, effects []msg.Effect) {
			for _, in := range inputs {
				if o, ok := in.(msg.Observation); ok && o.Err == nil {
					polls++
				}
			}
			for _, e := range effects {
				observes(t, e)
			}
		}}
		h.s.Start()
		defer func() {
			if r := recover(); r != nil { // scripts of applications that never run
				t.Logf("left: %v", r)
			}
			if federated := set.options.Federation != ""; (polls == 0) != federated {
				t.Errorf("%d polls worked", polls)
			}
		}()
		if err := h.playAll(set.events); err != nil && !errors.Is(err, ErrScript) {
			t.Error(err)
		}
	})
}

// TestObserved checks what is recorded of a day in the model: stock jobs start when it was planned, although no evolving
// job is there, and an evolving job is named and stays as it is.
func TestObserved(t *testing.T) {
	starts, ended, parked, jobs := observe(t, "cluster nodes=2\n0s stock first 2 60m 60m\n1m stock second 1 30m 30m\n2m stock third 2 20m 20m\n3m submit amr 1@10m,2@10m\n3h end")
	if starts != 3 || ended != 3 || parked < 1 {
		t.Errorf("%d starts, %d jobs ended, %d parked", starts, ended, parked)
	}
	if len(jobs) != 1 || !strings.Contains(jobs[0].Reason, "mode: observe") {
		t.Errorf("%+v", jobs)
	}
}

// TestObservedInside does the same for jobs in a reservation of the site, which begins after half an hour, and for jobs with a licence.
func TestObservedInside(t *testing.T) {
	starts, ended, _, _ := observe(t, `cluster nodes=4 licenses=foo:1
0s stock all 4 20m 20m user=bob licenses=foo
1m reserve course n[3-4] in=29m for=60m users=alice
2m stock theirs 2 20m 20m user=alice in=course
3m stock next 2 15m 15m user=alice in=course
4m stock outside 3 30m 30m user=bob
5m stock one 1 30m 30m user=bob licenses=foo
6m stock two 1 10m 10m user=bob licenses=foo
3h end`)
	if starts != 6 || ended != 6 {
		t.Errorf("%d starts, %d jobs ended", starts, ended)
	}
}

// observe plays a day in the model with a sidecar that observes, and returns what it has recorded.
func observe(t *testing.T, script string) (starts, ended, parked int, jobs []api.Job) {
	h, set := newHistory(io.Discard), setting{config: config.Default()}
	must.OK(t, set.read(script))
	set.config.Mode, set.config.PollInterval, set.config.Observe.Dir = config.ModeObserve, 5*time.Second, t.TempDir()
	cluster := slurmsim.New(set.options)
	defer cluster.Close()
	w, err := observed.NewWatcher(set.config, "v1", cluster.Now())
	must.OK(t, err)
	noX, _ := planner.StrategyByName("noX")
	h.s = &Sidecar{Cluster: cluster, Database: NewDatabase(), Config: set.config, Strategy: noX, Watch: func(_ time.Time, inputs []msg.Input, _ []msg.Effect) {
		for _, in := range inputs {
			at := time.Time{}
			if o, ok := in.(msg.Observation); ok {
				at = o.Begun
			}
			w.See(at, 0, in)
		}
	}}
	rec := recording{dir: t.TempDir()}
	h.s.Record = rec.life(t)
	h.s.Start()
	must.OK(t, errors.Join(h.playAll(set.events), w.Close()))
	defer rec.replays(t)
	days, err := observed.Days(set.config.Observe.Dir)
	must.OK(t, err)
	starts, ended, parked = countObserved(t, days)
	return starts, ended, parked, h.s.View().Jobs
}

// TestObserveBetween: a sidecar that observes leaves the jobs of an earlier run as they are, in Slurm and in the database. The
// next one that acts drives them to their end.
func TestObserveBetween(t *testing.T) {
	h, set := newHistory(io.Discard), setting{config: config.Default()}
	must.OK(t, set.read("cluster nodes=4\n0s submit amr 1@10m,3@10m\n30m end"))
	set.config.PollInterval = time.Second
	cluster := slurmsim.New(set.options)
	defer cluster.Close()
	noX, _ := planner.StrategyByName("noX")
	h.s = &Sidecar{Cluster: cluster, Database: NewDatabase(), Config: set.config, Strategy: noX}
	observed := func(_ time.Time, _ []msg.Input, effects []msg.Effect) {
		for _, e := range effects {
			observes(t, e)
		}
	}
	restart := func(mode config.Mode) {
		h.s.Config.Mode, h.s.Watch = mode, nil
		if mode == config.ModeObserve {
			h.s.Watch = observed
		}
		h.s.Start()
	}
	h.s.Start()
	must.OK(t, h.happens(set.events[0].words))
	h.s.Sleep(5 * time.Minute)
	restart(config.ModeObserve)
	h.s.Sleep(7 * time.Minute) // the script calls next meanwhile
	if jobs := h.s.View().Jobs; len(jobs) != 1 || !strings.Contains(jobs[0].Reason, "mode: observe") {
		t.Errorf("while observing: %+v", jobs)
	}
	restart(config.ModeAct)
	h.s.Sleep(30 * time.Minute)
	if a := h.apps["amr"]; a.Err != nil || len(a.Steps) != 2 || a.Steps[1].Nodes != 3 || a.Steps[1].At < 12*time.Minute {
		t.Errorf("%v: %+v", a.Err, a.Steps)
	}
}

// countObserved counts what was recorded, and checks what was planned.
func countObserved(t *testing.T, days []observed.Day) (starts, ended, parked int) {
	for _, d := range days {
		r, err := observed.Open(d.Files[0])
		must.OK(t, err)
		for one, err := r.Next(); err == nil; one, err = r.Next() {
			switch j, s := one.Job, one.Start; {
			case j != nil && j.Evolving && j.Standing && j.Start == 0:
				parked++
			case j != nil && j.End > 0 && j.Start > 0:
				ended++
			case s != nil:
				starts++
				startsAsPlanned(t, s)
			}
		}
		r.Close()
	}
	return starts, ended, parked
}

// startsAsPlanned checks that a job started within a minute of each of its planned starts.
func startsAsPlanned(t *testing.T, s *observed.Start) {
	for _, l := range s.Before {
		if off := s.Start - l.Ours; off < -60 || off > 60 {
			t.Errorf("job %d started %d s later than planned %d s before", s.Job, off, l.Lead)
		}
	}
	if len(s.Before) == 0 && s.Start-s.Submit > 600 {
		t.Errorf("nothing was planned: %+v", s)
	}
}

// observes checks an effect of a sidecar that only observes.
func observes(t *testing.T, e msg.Effect) {
	switch e := e.(type) {
	case msg.Task:
		switch e.Command.(type) {
		case msg.ReadLicenses, msg.ReadLimits:
		default:
			t.Errorf("it asks for %s", e)
		}
	case msg.AddJob, msg.SaveJob, msg.SavePlan, msg.SaveParts, msg.SaveAllocation, msg.SaveProfile, msg.Resize:
		t.Errorf("it does %T", e)
	case msg.Reply:
		if !errors.Is(e.Err, api.ErrUnavailable) {
			t.Errorf("it answers %+v", e)
		}
	}
}
