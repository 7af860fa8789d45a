package injob

import (
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/api"
)

// coupledCodes is an allocation of two components and one that is over.
func coupledCodes() api.Allocation {
	return api.Allocation{Ready: true, Job: 12, Step: 2, Steps: 3, Drive: "companion", Nodes: 5,
		Parts:      []api.Part{{Job: 12, NodeList: []string{"n1", "n2", "n3"}, CPUs: []int{4, 4, 4}}, {Job: 20, NodeList: []string{"n4", "n5"}, CPUs: []int{2, 2}}},
		Components: []api.Component{{Name: "ocean", NodeList: []string{"n1", "n4"}}, {Name: "atm", NodeList: []string{"n2", "n3", "n5"}}, {Name: "ice"}},
		Coming:     &api.Coming{Step: 3, Nodes: 4, Leaving: []string{"n5"}, Handing: []string{"n3"}}}
}

func TestHostfileOfComponent(t *testing.T) {
	if got, err := Hostfile(coupledCodes(), "ocean", "mpich", 0, env()); err != nil || got != "n1:4\nn4:2\n" {
		t.Errorf("%q %v", got, err)
	}
	for name, want := range map[string]string{"land": "no such component, but ocean, atm, ice", "ice": "it has no nodes in step 2"} {
		if _, err := Hostfile(coupledCodes(), name, "plain", 0, env()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestExportsOfComponents(t *testing.T) {
	e, err := ExportsOf(coupledCodes(), env())
	for _, want := range []Var{{"EVO_NODELIST", "n[1-5]"}, {"EVO_NODELIST_ocean", "n[1,4]"}, {"EVO_NODELIST_atm", "n[2-3,5]"}, {"EVO_NODELIST_ice", ""}} {
		if err != nil || !slices.Contains(e.Set, want) {
			t.Errorf("%v is missing: %v %v", want, e.Set, err)
		}
	}
	for name, change := range map[string]func(c []api.Component){
		"a name for the shell": func(c []api.Component) { c[0].Name = "x;reboot" },
		"a node for the shell": func(c []api.Component) { c[0].NodeList[0] = "n1;reboot" },
		"a node twice":         func(c []api.Component) { c[1].NodeList[0] = "n1" },
	} {
		a := coupledCodes()
		change(a.Components)
		if _, err := ExportsOf(a, env()); err == nil {
			t.Error(name, "was taken")
		}
	}
}

func TestRunComponent(t *testing.T) {
	args, err := parseSrun([]string{"--component=atm", "-n4", "./atm"})
	if err != nil {
		t.Fatal(err)
	}
	c := Command{Args: nil, Environ: []string{"SLURM_JOB_NUM_NODES=5"}}
	if c.Allocation, err = presentOf(coupledCodes(), "atm"); err != nil {
		t.Fatal(err)
	}
	runs, _, err := c.several(args)
	if err != nil || len(runs) != 2 {
		t.Fatalf("%v %v", runs, err)
	}
	for i, want := range []string{"--jobid=12 --nodes=2 --ntasks=2 --nodelist=n[2-3]", "--jobid=20 --nodes=1 --ntasks=2 --nodelist=n5"} {
		if got := strings.Join(runs[i].args, " "); !strings.Contains(got, want) || strings.Contains(got, "component") {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

func TestGoing(t *testing.T) {
	a := coupledCodes()
	if got := Going(a, Leaving(a, nil, "n1")); !slices.Equal(got, []string{"n5", "n3"}) {
		t.Error(got)
	}
}

// TestFollowComponent: a follower of a component takes a node over once another code is off it, and starts nothing again
// where its component stays.
func TestFollowComponent(t *testing.T) {
	with := func(step int, ocean, atm []string) api.Allocation {
		a := allocation(step, nil, slices.Concat(ocean, atm)...)
		a.Components = []api.Component{{Name: "ocean", NodeList: ocean}, {Name: "atm", NodeList: atm}}
		return a
	}
	f := &fake{has: with(1, []string{"n1", "n2"}, []string{"n3"})}
	address, signals, end := following(t, f, "--component=ocean", "--follow=script", "--on-nodes=echo arrived $EVO_ARRIVED, left $EVO_LEFT", "--", "sh", "-c", worker)
	f.eventually("two run", func() bool { return f.on() == "n1 n2" })
	change := func(going []string, has api.Allocation) {
		t.Helper()
		m := MeetFollowers(t.Context(), address, 12, going, false, time.Time{}, noisy(t))
		if on := f.on(); slices.ContainsFunc(going, func(n string) bool { return strings.Contains(on, n) }) {
			t.Errorf("%v is not drained: %s", going, on)
		}
		f.mu.Lock()
		f.has = has
		f.mu.Unlock()
		m.End(&has)
	}
	change([]string{"n2"}, with(2, []string{"n1"}, []string{"n3", "n2"}))
	f.eventually("a node was handed over", func() bool { return f.on() == "n1" && strings.Contains(f.out.String(), "arrived , left n2") })
	change(nil, with(3, []string{"n1"}, []string{"n3", "n2", "n4"})) // the other grows
	change([]string{"n3"}, with(4, []string{"n1", "n3"}, []string{"n2", "n4"}))
	f.eventually("a node was taken over", func() bool { return f.on() == "n1 n3" })
	if n := f.launched(); n != 3 {
		t.Errorf("%d instances were started", n)
	}
	signals <- syscall.SIGTERM
	end()
}
