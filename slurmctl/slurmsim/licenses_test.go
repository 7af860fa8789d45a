package slurmsim_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/slurmctl"
	"github.com/evoslurm/evoslurm/slurmctl/slurmsim"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest"
)

var licenseModel = slurmsim.Options{Licenses: []slurmctl.License{{Name: "foo", Count: 2}, {Name: "bar@srv", Count: 3}}}

func licenseCluster(t *testing.T) *slurmtest.Cluster {
	return slurmtest.Start(t, slurmtest.Options{ExtraConf: "Licenses=foo:2,bar@srv:3"})
}

var licenseFeatures = []feature{
	{"licences are shown", func(w *world) {
		all, err := w.Licenses(w.ctx)
		w.must(err)
		if fmt.Sprint(all) != "[{{bar@srv 3} 0 false} {{foo 2} 0 false}]" {
			w.Errorf("%v", all)
		}
	}},
	{"a job waits for licences, and others pass it", func(w *world) {
		first := w.start(slurmsim.Job{Nodes: 1, Licenses: "foo"})
		if j := w.until(first, slurmctl.Running); j.Licenses != "foo" && j.Licenses != "foo:1" {
			w.Errorf("%q", j.Licenses)
		}
		both := w.start(slurmsim.Job{Nodes: 1, Licenses: "foo;foo,bar@srv:3"})
		w.until(both, slurmctl.Pending, "Licenses")
		w.until(w.start(slurmsim.Job{Nodes: 2}), slurmctl.Running)
		second := w.start(slurmsim.Job{Nodes: 1, Licenses: "foo:1,bar@srv:1"})
		w.until(second, slurmctl.Running)
		w.must(w.Cancel(w.ctx, first))
		w.sleep(3 * time.Second)
		w.until(both, slurmctl.Pending, "Licenses")
		w.must(w.Cancel(w.ctx, second))
		w.until(both, slurmctl.Running)
	}},
	{"a suspended job keeps its licences", func(w *world) {
		has := w.start(slurmsim.Job{Nodes: 1, Licenses: "foo:2"})
		w.until(has, slurmctl.Running)
		w.must(w.suspend(has))
		waits := w.start(slurmsim.Job{Nodes: 1, Licenses: "foo"})
		w.until(waits, slurmctl.Pending, "Licenses")
		w.must(w.resume(has))
		w.must(w.Cancel(w.ctx, has))
		w.until(waits, slurmctl.Running)
	}},
	{"what brings nodes to a job takes no licence", func(w *world) {
		base := w.start(slurmsim.Job{Nodes: 1, Licenses: "foo:2"})
		w.until(base, slurmctl.Running)
		asked, err := w.Request(w.ctx, base, slurmctl.Config{})
		w.must(err)
		if asked.Licenses != "foo:2" {
			w.Errorf("%q", asked.Licenses)
		}
		more := asked.More(2, nil)
		more.User, more.Name = &w.user, "more"
		k, err := w.Allocate(w.ctx, more)
		w.must(err)
		w.until(k.ID, slurmctl.Running)
	}},
	{"a running job gets licences that are in use", func(w *world) {
		has := w.start(slurmsim.Job{Nodes: 1, Licenses: "foo:2"})
		w.until(has, slurmctl.Running)
		more := w.start(slurmsim.Job{Nodes: 1})
		w.until(more, slurmctl.Running)
		w.must(w.relicense(more, "foo"))
		if j := w.job(more); j.Licenses != "foo" && j.Licenses != "foo:1" {
			w.Errorf("%q", j.Licenses)
		}
		waits := w.start(slurmsim.Job{Nodes: 1, Licenses: "foo:2"})
		w.until(waits, slurmctl.Pending, "Licenses")
		w.must(w.Cancel(w.ctx, has))
		w.stays(waits, slurmctl.Pending)
		w.must(w.relicense(more, "bar@srv"))
		w.until(waits, slurmctl.Running)
	}},
	{"licences that are not there are refused", func(w *world) {
		for _, asked := range []string{"foo:3", "foo:2,foo", "nope", "bar"} {
			if _, err := w.submit(slurmsim.Job{Nodes: 1, Licenses: asked}); err == nil {
				w.Errorf("%s is accepted", asked)
			}
		}
	}},
}

// TestLicensesVanish checks that a job waits for licences that vanished, in the model.
func TestLicensesVanish(t *testing.T) {
	c := slurmsim.New(licenseModel)
	t.Cleanup(c.Close)
	k := c.Client(slurmsim.Root)
	has, err := k.Submit(t.Context(), slurmsim.Job{User: slurmsim.User{Name: "alice", UID: 1001}, Nodes: 1, Licenses: "foo:2", Lasts: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	waits, err := k.Submit(t.Context(), slurmsim.Job{User: slurmsim.User{Name: "alice", UID: 1001}, Nodes: 1, Licenses: "foo:2"})
	if err != nil {
		t.Fatal(err)
	}
	c.Sleep(10 * time.Second)
	c.SetLicenses()
	c.Sleep(4 * time.Minute)
	if j, _ := c.Record(waits); j.State != slurmctl.Pending || j.Reason != "Licenses" {
		t.Errorf("%s (%s)", j.State, j.Reason)
	}
	if j, _ := c.Record(has); j.State != slurmctl.Completed {
		t.Errorf("the job with licences is %s", j.State)
	}
	c.SetLicenses(slurmctl.License{Name: "foo", Count: 2})
	c.Sleep(5 * time.Minute)
	if j, _ := c.Record(waits); j.State != slurmctl.Running {
		t.Errorf("%s (%s)", j.State, j.Reason)
	}
}
