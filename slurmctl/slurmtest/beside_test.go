package slurmtest

import (
	"strings"
	"testing"
)

// TestBeside: three clusters share a slurmdbd, and each takes jobs from each, by name. One that is away takes none, and the others
// go on.
func TestBeside(t *testing.T) {
	a := Start(t, Options{Name: "a", Nodes: 2, Accounting: true})
	b := Start(t, Options{Name: "b", Nodes: 3, Beside: a})
	c := Start(t, Options{Name: "c", Nodes: 1, Beside: b})
	u := a.Users()[0]
	if got := run(t, a, Root, "sacctmgr", "-nP", "show", "cluster", "format=cluster"); got != "a\nb\nc" {
		t.Errorf("slurmdbd knows clusters %q", got)
	}
	for _, from := range []*Cluster{a, b, c} {
		for name, nodes := range map[string]string{"a": "2", "b": "3", "c": "1"} {
			if got := run(t, from, u, "sinfo", "-M", name, "-h", "-o", "%D"); got != nodes {
				t.Errorf("cluster %s has %q nodes from %s, want %s", name, got, from.Options().Name, nodes)
			}
			if got := run(t, from, u, "sbatch", "-M", name, "--wrap", "true"); !strings.HasSuffix(got, " on cluster "+name) {
				t.Errorf("from %s to %s: %q", from.Options().Name, name, got)
			}
		}
	}
	for _, of := range []*Cluster{a, b, c} {
		eventually(t, "three jobs end on "+of.Options().Name, func() bool {
			return run(t, of, Root, "squeue", "-h", "-t", "CD", "-o", "%A") != "" && lines(run(t, of, Root, "squeue", "-h", "-t", "CD", "-o", "%A")+"\n") == 3
		})
	}
	if err := b.KillController(t.Context()); err != nil {
		t.Fatal(err)
	}
	if out, err := a.Run(t.Context(), u, "sbatch", "-M", "b", "--wrap", "true"); err == nil {
		t.Errorf("a cluster that is away takes a job: %q", out)
	}
	run(t, a, u, "sbatch", "-M", "c", "--wrap", "true")
	if err := b.StartController(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// TestBesideNeeds: what cannot share a slurmdbd is refused.
func TestBesideNeeds(t *testing.T) {
	plain, booked := &Cluster{options: Options{Name: "a"}}, &Cluster{options: Options{Name: "a", Accounting: true}}
	for what, o := range map[string]Options{
		"no accounting": {Name: "b", Beside: plain},
		"the same name": {Name: "a", Beside: booked},
		"its own clock": {Name: "b", Beside: booked, OwnClock: true},
	} {
		if _, err := o.withDefaults(); err == nil {
			t.Errorf("%s: accepted", what)
		}
	}
}
