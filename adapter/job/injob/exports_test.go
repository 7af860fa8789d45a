package injob

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest/must"
)

// env returns a getenv of NAME=value strings.
func env(entries ...string) func(string) string {
	return func(name string) string { return lookup(entries, name) }
}

func merged() api.Allocation {
	return api.Allocation{Ready: true, Job: 12, Step: 2, Steps: 3, Drive: "merge", Nodes: 5, Parts: []api.Part{
		{Job: 12, NodeList: []string{"n1", "n10", "n3", "n2", "n9"}, CPUs: []int{4, 8, 4, 4, 4}},
	}}
}

func companions() api.Allocation {
	return api.Allocation{Ready: true, Job: 12, Step: 2, Steps: 3, Drive: "companion", Nodes: 6, Parts: []api.Part{
		{Job: 12, NodeList: []string{"n1", "n2"}, CPUs: []int{4, 4}},
		{Job: 15, NodeList: []string{"n5", "n6", "n7"}, CPUs: []int{4, 4, 4}},
		{Job: 16, NodeList: []string{"n9"}, CPUs: []int{8}},
	}}
}

// values returns the variables that exports set.
func values(t *testing.T, a api.Allocation, getenv func(string) string) map[string]string {
	t.Helper()
	e, err := ExportsOf(a, getenv)
	must.OK(t, err)
	set := make(map[string]string)
	for _, v := range e.Set {
		set[v.Name] = v.Value
	}
	return set
}

func TestExportsOfMerged(t *testing.T) {
	want := map[string]string{
		"EVO_JOB_ID": "12", "EVO_STEP": "2", "EVO_STEPS": "3", "EVO_NODES": "5", "EVO_NODELIST": "n[1-3,9-10]",
		"EVO_DRIVE": "merge", "EVO_DONE": "", "EVO_LOST": "", "EVO_RESTARTS": "0",
		"SLURM_JOB_NODELIST": "n[1-3,9-10]", "SLURM_NODELIST": "n[1-3,9-10]", "SLURM_JOB_NUM_NODES": "5", "SLURM_NNODES": "5",
		// in the order of the list, not of the allocation: n10 is last
		"SLURM_TASKS_PER_NODE": "4(x4),8", "SLURM_JOB_CPUS_PER_NODE": "4(x4),8",
	}
	if d := cmp.Diff(want, values(t, merged(), env())); d != "" {
		t.Error(d)
	}
	if got := values(t, merged(), env("SLURM_NTASKS_PER_NODE=2", "SLURM_CPUS_PER_TASK=4"))["SLURM_TASKS_PER_NODE"]; got != "2(x5)" {
		t.Errorf("with --ntasks-per-node=2: %s", got)
	}
	if got := values(t, merged(), env("SLURM_CPUS_PER_TASK=3"))["SLURM_TASKS_PER_NODE"]; got != "1(x4),2" {
		t.Errorf("with --cpus-per-task=3: %s", got)
	}
	if got := values(t, merged(), env("SLURM_CPUS_PER_TASK=99"))["SLURM_TASKS_PER_NODE"]; got != "1(x5)" {
		t.Errorf("with --cpus-per-task=99: %s", got)
	}
}

func TestExportsOfCompanions(t *testing.T) {
	v := values(t, companions(), env())
	for name, want := range map[string]string{"EVO_NODES": "6", "EVO_NODELIST": "n[1-2,5-7,9]", "SLURM_JOB_NODELIST": "n[1-2]", "SLURM_NNODES": "2", "SLURM_TASKS_PER_NODE": "4(x2)"} {
		if v[name] != want {
			t.Errorf("%s=%s, want %s", name, v[name], want)
		}
	}
}

func TestExportsOfTheEnd(t *testing.T) {
	v := values(t, api.Allocation{Job: 12, Step: 3, Steps: 3, Done: true}, env())
	if v["EVO_DONE"] != "1" || v["EVO_NODES"] != "0" {
		t.Errorf("got %v", v)
	}
	if _, set := v["SLURM_JOB_NODELIST"]; set {
		t.Error("a node list without nodes")
	}
}

// TestRestarts checks that Slurm's own count goes if it is higher, and only in the job that it is about.
func TestRestarts(t *testing.T) {
	chain := api.Allocation{Job: 12, Restarts: 2, Parts: []api.Part{{Job: 14}}}
	for _, c := range []struct {
		env  []string
		want int
	}{
		{nil, 2}, {[]string{"SLURM_JOB_ID=12", "SLURM_RESTART_COUNT=3"}, 3}, {[]string{"SLURM_JOB_ID=14", "SLURM_RESTART_COUNT=3"}, 3},
		{[]string{"SLURM_JOB_ID=14", "SLURM_RESTART_COUNT=1"}, 2}, {[]string{"SLURM_JOB_ID=15", "SLURM_RESTART_COUNT=3"}, 2},
		{[]string{"SLURM_JOB_ID=12", "SLURM_RESTART_COUNT=-3"}, 2}, {[]string{"SLURM_RESTART_COUNT=3"}, 2},
	} {
		if got := Restarts(chain, env(c.env...)); got != c.want {
			t.Errorf("%v: %d, want %d", c.env, got, c.want)
		}
	}
}

func TestFalseAllocationsAreRefused(t *testing.T) {
	for name, change := range map[string]func(*api.Allocation){
		"no parts":         func(a *api.Allocation) { a.Parts = nil },
		"no nodes":         func(a *api.Allocation) { a.Parts[0].NodeList, a.Parts[0].CPUs = nil, nil },
		"too few CPUs":     func(a *api.Allocation) { a.Parts[0].CPUs = a.Parts[0].CPUs[1:] },
		"no CPU":           func(a *api.Allocation) { a.Parts[0].CPUs[0] = 0 },
		"no job":           func(a *api.Allocation) { a.Parts[0].Job = 0 },
		"a command":        func(a *api.Allocation) { a.Parts[0].NodeList[0] = "n1;reboot" },
		"a substitution":   func(a *api.Allocation) { a.Parts[0].NodeList[0] = "$(reboot)" },
		"an option":        func(a *api.Allocation) { a.Parts[0].NodeList[0] = "-n1" },
		"a quote":          func(a *api.Allocation) { a.Parts[0].NodeList[0] = "n'1" },
		"a newline":        func(a *api.Allocation) { a.Parts[0].NodeList[0] = "n1\nn2" },
		"no name":          func(a *api.Allocation) { a.Parts[0].NodeList[0] = "" },
		"a node twice":     func(a *api.Allocation) { a.Parts[0].NodeList[0] = "n2" },
		"no frequency":     func(a *api.Allocation) { a.CPUFreq = "low\nreboot" },
		"no drive mode":    func(a *api.Allocation) { a.Drive = "$(reboot)" },
		"a lost command":   func(a *api.Allocation) { a.Lost = []string{"n1", "$(reboot)"} },
		"a long node name": func(a *api.Allocation) { a.Parts[0].NodeList[0] = strings.Repeat("n", 256) },
	} {
		a := merged()
		change(&a)
		if _, err := ExportsOf(a, env()); err == nil {
			t.Errorf("%s: exports", name)
		}
		if _, err := Hostfile(a, "", "plain", 0, env()); err == nil {
			t.Errorf("%s: host file", name)
		}
		if _, _, err := Launch(a, []string{"n1", "true"}, nil); err == nil {
			t.Errorf("%s: launch", name)
		}
		if _, err := (Command{Allocation: a, Args: []string{"true"}}).Run(t.Context(), nil); err == nil {
			t.Errorf("%s: run", name)
		}
	}
}

func TestExportsWithoutSlurm(t *testing.T) {
	e, err := ExportsOf(companions(), env())
	must.OK(t, err)
	w := e.WithoutSlurm([]string{"SLURM_CONF=/c", "SLURM_JOB_ID=12", "SLURMD_NODENAME=n1", "SLURMTEST=1", "HOME=/h"})
	if want := []string{"EVO_ERROR", "SLURM_JOB_ID", "SLURMD_NODENAME"}; !slices.Equal(w.Unset, want) {
		t.Errorf("unset %q, want %q", w.Unset, want)
	}
	for _, v := range w.Set {
		if !strings.HasPrefix(v.Name, "EVO_") {
			t.Errorf("%s is set", v.Name)
		}
	}
	if len(w.Set) != 9 {
		t.Errorf("set %q", w.Set)
	}
}

func TestApply(t *testing.T) {
	e := Exports{Unset: []string{"GONE"}, Set: []Var{{"NEW", "1"}, {"OLD", "2"}}}
	got := e.Apply([]string{"GONE=x", "OLD=x", "KEPT=a=b", "OLD=y"})
	if want := []string{"KEPT=a=b", "NEW=1", "OLD=2"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// sh evaluates text as a script's eval does and prints variables.
func sh(t *testing.T, text, script string, environ ...string) string {
	t.Helper()
	cmd := exec.Command("/bin/sh", "-c", "eval \"$1\"\n"+script, "sh", text)
	cmd.Env = append(environ, "PATH="+os.Getenv("PATH"))
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("sh: %v: %s", err, out)
	}
	return string(out)
}

func TestShellTakesTheExports(t *testing.T) {
	posix, err := ParseShell("bash")
	must.OK(t, err)
	e, err := ExportsOf(merged(), env())
	must.OK(t, err)
	got := sh(t, posix.Exports(e), `echo "$EVO_NODELIST,$SLURM_NNODES,${EVO_DONE-unset},${SLURM_NTASKS-unset},${EVO_ERROR-unset}"; env | grep -c ^SLURM_`, "SLURM_NTASKS=2", "SLURM_NNODES=2", "EVO_ERROR=x")
	if want := "n[1-3,9-10],5,,unset,unset\n6\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	for final, want := range map[bool]string{true: "failed, it's\tgone, 1", false: "failed, it's\tgone, "} {
		got := sh(t, "true", `if eval "$F"; then echo "went well"; else echo "failed, $EVO_ERROR, $EVO_DONE"; fi`, "F="+posix.Failure("it's\tgone", final))
		if got != strings.ReplaceAll(want, "\t", " ")+"\n" {
			t.Errorf("final %v: %q, want %q", final, got, want)
		}
	}
}

// Whatever the text, the shell sees it as it is.
func TestQuoting(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		text := rapid.StringOfN(rapid.RuneFrom([]rune("a' \"\\$`!*?[]{}();&|<>#~\n\té")), 0, 12, -1).Draw(r, "text")
		if got := sh(t, "X="+quotePOSIX(text), `printf %s. "$X"`); got != text+"." {
			r.Fatalf("%q became %q", text, got)
		}
	})
}

func TestOtherShells(t *testing.T) {
	e := Exports{Unset: []string{"A"}, Set: []Var{{"B", `it's! \`}, {"C", "n[1-2]"}}}
	for name, want := range map[string]string{
		"tcsh": `unsetenv A; setenv B 'it'\''s\! \'; setenv C 'n[1-2]'` + "\n",
		"fish": "set -e A; or true\nset -gx B 'it\\'s! \\\\'\nset -gx C 'n[1-2]'\n",
	} {
		s, err := ParseShell(name)
		must.OK(t, err)
		if d := cmp.Diff(want, s.Exports(e)); d != "" {
			t.Errorf("%s: %s", name, d)
		}
		if text := s.Failure("x", true); !strings.HasSuffix(strings.TrimSpace(text), "false") || strings.Count(text, "\n") > 3 {
			t.Errorf("%s: failure is %q", name, text)
		}
	}
	if _, err := ParseShell("cmd.exe"); err == nil {
		t.Error("cmd.exe was taken")
	}
}

func TestHostfile(t *testing.T) {
	for _, c := range []struct {
		format string
		slots  int
		env    string
		want   string
	}{
		{"plain", 0, "", "n1\nn2\nn5\nn6\nn7\nn9\n"},
		{"mpich", 0, "", "n1:4\nn2:4\nn5:4\nn6:4\nn7:4\nn9:8\n"},
		{"openmpi", 0, "SLURM_NTASKS_PER_NODE=2", "n1 slots=2\nn2 slots=2\nn5 slots=2\nn6 slots=2\nn7 slots=2\nn9 slots=2\n"},
		{"mpich", 1, "SLURM_NTASKS_PER_NODE=2", "n1:1\nn2:1\nn5:1\nn6:1\nn7:1\nn9:1\n"},
	} {
		if got, err := Hostfile(companions(), "", c.format, c.slots, env(c.env)); err != nil || got != c.want {
			t.Errorf("%s: %q, %v; want %q", c.format, got, err, c.want)
		}
	}
	if _, err := Hostfile(companions(), "", "xml", 0, env()); err == nil {
		t.Error("xml was taken")
	}
}

func TestJobID(t *testing.T) {
	for _, c := range []struct {
		given string
		env   []string
		want  uint32
	}{
		{"7", []string{"SLURM_JOB_ID=12", "EVO_JOB_ID=12"}, 7},
		{"", []string{"SLURM_JOB_ID=12"}, 12},
		{"", []string{"EVO_JOB_ID=12"}, 12},
		{"", []string{"SLURM_JOB_ID=12", "EVO_JOB_ID=12"}, 12},
		{"", []string{"SLURM_JOB_ID=15", "EVO_JOB_ID=12", "EVO_PART_ID=15"}, 12}, // a task on a companion
		{"", []string{"SLURM_JOB_ID=20", "EVO_JOB_ID=12", "EVO_PART_ID=15"}, 20}, // submitted from such a task
		{"", []string{"SLURM_JOB_ID=20", "EVO_JOB_ID=12"}, 20},                   // submitted from an evolving job
		{"", nil, 0},
		{"x", nil, 0},
		{"0", nil, 0},
		{"", []string{"SLURM_JOB_ID=-1"}, 0},
		{"", []string{"SLURM_JOB_ID=4294967296"}, 0},
	} {
		got, err := JobID(c.given, env(c.env...))
		if got != c.want || (err == nil) != (c.want != 0) {
			t.Errorf("%q %v: %d, %v; want %d", c.given, c.env, got, err, c.want)
		}
	}
}

func TestPresentStep(t *testing.T) {
	for entries, want := range map[string]int{"EVO_STEP=2 EVO_JOB_ID=12": 2, "EVO_STEP=2 EVO_JOB_ID=11": 0, "EVO_STEP=2": 0, "EVO_JOB_ID=12": 0, "EVO_STEP=x EVO_JOB_ID=12": 0, "EVO_STEP=0 EVO_JOB_ID=12": 0} {
		if got := PresentStep(12, env(strings.Fields(entries)...)); got != want {
			t.Errorf("%s: %d, want %d", entries, got, want)
		}
	}
}

func TestLaunch(t *testing.T) {
	environ := []string{"SLURM_JOB_ID=12", "SLURM_CONF=/c", "SLURM_NTASKS_PER_NODE=2", "SLURMD_NODENAME=n1", "PMI_RANK=0", "PMIX_X=1", "HYDRA_X=1", "HYDI_X=1", "HOME=/h", "EVO_JOB_ID=12"}
	for _, c := range []struct {
		args          []string
		job, on, text string
	}{
		{[]string{"-x", "n6", `"/usr/bin/hydra_pmi_proxy"`, "--control-port", "n1:5"}, "15", "n6", `"/usr/bin/hydra_pmi_proxy" --control-port n1:5`},
		{[]string{"n1", "orted"}, "12", "n1", "orted"},
		{[]string{"-q", "-l", "me", "me@n9", "a  b"}, "16", "n9", "a  b"},
		{[]string{"n9", "--", "exec", "perl", "--", "a"}, "16", "n9", "exec perl -- a"},
	} {
		argv, env, err := Launch(companions(), c.args, environ)
		if err != nil {
			t.Errorf("%q: %v", c.args, err)
			continue
		}
		if !slices.Contains(argv, "--jobid="+c.job) || !slices.Contains(argv, "--nodelist="+c.on) || argv[len(argv)-1] != c.text {
			t.Errorf("%q: %q", c.args, argv)
		}
		if want := []string{"SLURM_CONF=/c", "HOME=/h", "EVO_JOB_ID=12"}; !slices.Equal(env, want) {
			t.Errorf("%q: environment %q, want %q", c.args, env, want)
		}
	}
	for _, args := range [][]string{nil, {"n1"}, {"-x"}, {"-l"}, {"n3", "true"}, {"--jobid=1", "-n1", "true"}} {
		if argv, _, err := Launch(companions(), args, environ); err == nil {
			t.Errorf("%q: %q", args, argv)
		}
	}
}
