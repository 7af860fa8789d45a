package injob

import (
	"slices"
	"strings"
	"testing"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest/must"
)

// shrunk returns a job of one Slurm job that began on n[1-4] and has n[1-2].
func shrunk() api.Allocation {
	return api.Allocation{Ready: true, Job: 12, Step: 2, Steps: 3, Drive: "merge", Nodes: 2, Parts: []api.Part{
		{Job: 12, NodeList: []string{"n1", "n2"}, CPUs: []int{4, 4}},
	}}
}

// inside is the environment of its script, as Slurm made it.
var inside = []string{"SLURM_JOB_ID=12", "SLURM_JOB_NODELIST=n[1-4]", "SLURM_NNODES=4", "SLURM_STEPMGR=n1"}

// optionsOf returns the options of all sruns of a command, without the wrapped command.
func optionsOf(t *testing.T, a api.Allocation, environ []string, args string) ([]string, error) {
	t.Helper()
	parsed, err := parseSrun(strings.Fields(args))
	must.OK(t, err)
	c := Command{Allocation: a, Environ: environ}
	var runs []run
	if len(a.Parts) > 1 {
		runs, _, err = c.several(parsed)
	} else {
		runs = make([]run, 1)
		runs[0], err = c.single(parsed)
	}
	if err != nil {
		return nil, err
	}
	var all []string
	for _, r := range runs {
		options := slices.DeleteFunc(r.args[:slices.Index(r.args, "/bin/sh")], func(w string) bool { return strings.HasPrefix(w, "--job-name=") })
		all = append(all, strings.Join(options, " "))
	}
	return all, nil
}

// TestNothingRunsOnNodesGivenBack checks that evosrun gives srun the nodes to exclude or to use: a
// step manager treats all others as the job's own (measured on 24.11.5 and 26.05.5).
func TestNothingRunsOnNodesGivenBack(t *testing.T) {
	evaluated := append(slices.Clone(inside[:1]), "SLURM_JOB_NODELIST=n[1-2]", "EVO_JOB_ID=12", "EVO_GAVE_BACK=n[3-4]")
	for _, c := range []struct {
		name    string
		environ []string
		args    string
		want    string
	}{
		{"its first environment", inside, "x", "--exclude=n[3-4]"},
		{"the user excludes one, too", inside, "-x n2 -N1 x", "-N1 --exclude=n2,n[3-4]"},
		{"one that was evaluated", evaluated, "-n1 x", "-n1 --exclude=n[3-4]"},
		{"one that names no more than it has", []string{"SLURM_JOB_ID=12", "SLURM_JOB_NODELIST=n[1-2]"}, "-r1 x", "-r1"},
		{"of another job's evaluation", []string{"SLURM_JOB_ID=12", "SLURM_JOB_NODELIST=n[1-2]", "EVO_JOB_ID=11", "EVO_GAVE_BACK=n9"}, "x", ""},
		{"nodes of its own", inside, "-w n2 x", "-w n2 --exclude=n[3-4]"},
		{"from outside", nil, "x", "--nodes=2 --ntasks=2 --nodelist=n[1-2]"},
		{"from outside, a part", nil, "--pty -n1 x", "--pty --nodes=1 --ntasks=1 --nodelist=n1"},
		{"from another Slurm job", []string{"SLURM_JOB_ID=15", "SLURM_JOB_NODELIST=n[5-7]", "EVO_JOB_ID=12"}, "-x n1 x", "--nodes=1 --ntasks=1 --nodelist=n2"},
	} {
		got, err := optionsOf(t, shrunk(), c.environ, c.args)
		if err != nil || got[0] != c.want {
			t.Errorf("%s: %q, %v; want %q", c.name, got, err, c.want)
		}
	}
	for _, args := range []string{"-w n3 x", "-w n[1-3] x", "-r2 x", "-x ./file x"} {
		if got, err := optionsOf(t, shrunk(), inside, args); err == nil {
			t.Errorf("%s: %q, want an error", args, got)
		}
	}
	got, err := optionsOf(t, companions(), []string{"SLURM_JOB_ID=12", "SLURM_JOB_NODELIST=n[1-4]"}, "x")
	want := []string{"--jobid=12 --nodes=2 --ntasks=2 --nodelist=n[1-2]", "--jobid=15 --nodes=3 --ntasks=3 --nodelist=n[5-7]", "--jobid=16 --nodes=1 --ntasks=1 --nodelist=n9"}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("several Slurm jobs: %q, %v; want %q", got, err, want)
	}
}

func TestStale(t *testing.T) {
	for _, c := range []struct{ environ, want string }{
		{"SLURM_JOB_ID=12 SLURM_JOB_NODELIST=n[1-4]", "n[3-4]"},
		{"SLURM_JOB_ID=12 SLURM_JOB_NODELIST=n[1-2]", ""},
		{"SLURM_JOB_ID=12 SLURM_JOB_NODELIST=n[1-2] EVO_JOB_ID=12 EVO_NODELIST=n[1-2,9]", "n9"}, // a companion's
		{"SLURM_JOB_ID=13 SLURM_JOB_NODELIST=n[1-4]", ""},
		{"EVO_JOB_ID=13 EVO_NODELIST=n[1-4]", ""},
		{"SLURM_JOB_ID=12 SLURM_JOB_NODELIST=n[1-4", ""},
	} {
		got := Stale(shrunk(), env(strings.Fields(c.environ)...))
		if (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, want %q", c.environ, got, c.want)
		}
	}
	if got := Stale(api.Allocation{Job: 12, Done: true}, env(inside...)); got != "" {
		t.Errorf("after the last step: %q", got)
	}
}

// The nodes that were given back stay known from one evaluation to the next.
func TestExportsRememberNodesGivenBack(t *testing.T) {
	environ := inside
	apply := func(a api.Allocation) (left string) {
		e, err := ExportsOf(a, env(environ...))
		must.OK(t, err)
		environ = e.Apply(environ)
		return lookup(environ, VarGaveBack)
	}
	a := shrunk()
	if got := apply(a); got != "n[3-4]" {
		t.Errorf("after the first shrink: %q", got)
	}
	a.Parts[0].NodeList, a.Parts[0].CPUs = []string{"n1"}, []int{4}
	if got := apply(a); got != "n[2-4]" {
		t.Errorf("after the second: %q", got)
	}
	if lookup(environ, "SLURM_STEPMGR") != "n1" {
		t.Error("SLURM_STEPMGR is unset though the job is one Slurm job")
	}
	a.Parts[0].NodeList, a.Parts[0].CPUs = []string{"n1", "n2", "n3", "n4"}, []int{4, 4, 4, 4}
	if got := apply(a); got != "" {
		t.Errorf("with all of them again: %q", got)
	}
}

// srun --jobid of a companion fails while SLURM_STEPMGR names the base job's step manager (24.11.5: measured).
func TestExportsUnsetTheStepManager(t *testing.T) {
	for _, c := range []struct {
		a    api.Allocation
		env  []string
		want bool
	}{
		{companions(), []string{"SLURM_JOB_ID=12", "SLURM_STEPMGR=n1"}, true},
		{companions(), []string{"SLURM_JOB_ID=12"}, false},
		{shrunk(), inside, false},
		{shrunk(), []string{"SLURM_JOB_ID=15", "SLURM_STEPMGR=n5"}, true}, // a task's on a companion
	} {
		e, err := ExportsOf(c.a, env(c.env...))
		if err != nil || slices.Contains(e.Unset, "SLURM_STEPMGR") != c.want {
			t.Errorf("%v: unset %q, %v; want SLURM_STEPMGR: %v", c.env, e.Unset, err, c.want)
		}
	}
}
