package injob

import (
	"slices"
	"strings"
	"testing"

	"github.com/evoslurm/evoslurm/slurmctl/slurmtest/must"
)

// With --cores, the steps overlap, Slurm binds nothing, and a task joins before it knows its rank.
func TestCoresOfSruns(t *testing.T) {
	want := []string{"/bin/sh", "-c", coresScript + rankScript, "evosrun", "/x/evosrun", "3"}
	check := func(what string, args []string) {
		t.Helper()
		at := slices.Index(args, "/bin/sh")
		if at < 0 || !slices.Equal(args[at:at+len(want)], want) || args[len(args)-1] != "true" {
			t.Fatalf("%s: %q", what, args)
		}
		for _, option := range []string{"--overlap", "--cpu-bind=none"} {
			if !slices.Contains(args[:at], option) {
				t.Errorf("%s: no %s in %q", what, option, args)
			}
		}
		if slices.Contains(args[:at], "--cores=3") {
			t.Errorf("%s: srun gets --cores: %q", what, args)
		}
	}
	parsed, err := parseSrun([]string{"--cores=3", "--mpi=none", "true"})
	must.OK(t, err)
	one := Command{Allocation: merged(), Evosrun: "/x/evosrun"}
	shared, err := one.sharing(parsed)
	must.OK(t, err)
	r, err := one.single(shared)
	must.OK(t, err)
	check("one Slurm job", r.args)
	several := Command{Allocation: companions()}
	runs, _, err := several.several(shared)
	must.OK(t, err)
	for _, r := range runs {
		check("several Slurm jobs", r.args)
	}
	f := &follower{Command: Command{Allocation: companions(), Evosrun: "/x/evosrun", Srun: "/bin/false", Args: []string{"--follow", "--cores=3", "true"}}, id: "1"}
	must.OK(t, f.prepare())
	want[2] = coresScript + followScript
	r = f.srun(&instance{node: "n1", part: 12}, 1, f.args)
	check("a follower's instance", r.args)
	r = f.srun(&instance{node: "n1", part: 12}, 1, srunArgs{options: f.args.options, command: []string{"true"}})
	if strings.Contains(strings.Join(r.args, " "), coresJoin) {
		t.Errorf("a drain command takes cores: %q", r.args)
	}
}

func TestCoresRefuse(t *testing.T) {
	for _, options := range []string{
		"--cores=0", "--cores=1001", "--cores=50%", "--cores=-1", "--cores=", "--cores=1 --cpu-bind=cores", "--cores=1 -c 2", "--cores=1 --exact",
		"--cores=1 --exclusive", "--cores=1 --multi-prog", "--cores=1 --hint=nomultithread", "--cores=1 --threads-per-core=1", "--cores=1 --bcast",
	} {
		args := append(strings.Fields(options), "true")
		c := Command{Allocation: merged(), Args: args, Srun: "/bin/false", Evosrun: "/x/evosrun"}
		if _, err := c.Run(t.Context(), nil); err == nil || !strings.Contains(err.Error(), "--cores") {
			t.Errorf("%q: %v", args, err)
		}
		c.Args = append([]string{"--follow"}, args...)
		if _, err := c.Follow(t.Context(), nil, "x", nil, nil); err == nil {
			t.Errorf("%q was accepted", c.Args)
		}
	}
}
