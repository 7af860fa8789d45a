package builtin

import (
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/evoslurm/evoslurm/planner/malleable"
	"github.com/evoslurm/evoslurm/plugins/strategy"
	"github.com/evoslurm/evoslurm/plugins/strategytest"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest/must"
)

// bin is the folder of the plugins, built once.
var bin string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "evoslurm-plugins-")
	if err != nil {
		panic(err)
	}
	if out, err := exec.Command("go", "build", "-o", dir, "../cmd/...").CombinedOutput(); err != nil {
		os.Stderr.Write(out)
		os.Exit(1)
	}
	bin = dir
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

func TestBuiltIn(t *testing.T) {
	for _, d := range All() {
		t.Run(d.Name, func(t *testing.T) { strategytest.Run(t, strategytest.Built(d)) })
	}
}

func TestPlugins(t *testing.T) {
	for _, d := range Plugins() {
		t.Run(d.Name, func(t *testing.T) { strategytest.Run(t, strategytest.Process(filepath.Join(bin, d.Name))) })
	}
}

func TestPolicies(t *testing.T) {
	for _, name := range malleable.Policies() {
		t.Run(name, func(t *testing.T) { strategytest.Run(t, strategytest.Built(Policy(name))) })
	}
	t.Run("gain as a plugin", func(t *testing.T) { strategytest.Run(t, strategytest.Process(filepath.Join(bin, "gain"))) })
}

// TestSamePolicy checks that gain answers the same, speed-ups included, built in or as a plugin.
func TestSamePolicy(t *testing.T) {
	p, err := malleable.PolicyByName("gain")
	must.OK(t, err)
	c, err := strategy.Start(strategy.Launch{Command: exec.Command(filepath.Join(bin, "gain"))})
	must.OK(t, err)
	defer c.Close()
	description, err := c.Describe(t.Context(), nil)
	if own := strategy.Describe(Policy("gain"), nil); err != nil || !reflect.DeepEqual(description, own) {
		t.Errorf("as a plugin it is %+v (%v), built in %+v", description, err, own)
	}
	if _, err := c.Plan(t.Context(), nil, description, strategytest.TenThousand()); err == nil {
		t.Error("it plans")
	}
	for seed := range uint64(50) {
		r := strategytest.Malleables(seed, 12)
		want, err := strategy.Resize(t.Context(), p, r)
		must.OK(t, err)
		got, err := c.Resize(t.Context(), nil, r)
		must.OK(t, err)
		sizes := func(changes []malleable.Change) map[int]int {
			all := map[int]int{}
			for _, c := range changes {
				all[c.Job] = c.Size(r.Jobs[c.Job])
			}
			return all
		}
		if !reflect.DeepEqual(sizes(want), sizes(got)) {
			t.Errorf("%+v: as a plugin %v, built in %v", r.Asked, sizes(got), sizes(want))
		}
	}
}

// TestSameCode checks that a strategy answers the same, built in or as a plugin.
func TestSameCode(t *testing.T) {
	q := strategytest.TenThousand()
	q.Jobs = q.Jobs[:200]
	for i := range q.Jobs {
		q.Jobs[i].ExpandLimit = 0
	}
	for _, d := range Plugins() {
		t.Run(d.Name, func(t *testing.T) {
			set := map[string]string{}
			if d.Name == "search" { // it must stop by effort: time limits differ each time
				set["time"], set["effort"] = "1m", "20000"
			}
			v, err := d.Values(set)
			must.OK(t, err)
			s, err := d.New(v)
			must.OK(t, err)
			want, err := strategy.Run(t.Context(), s, q)
			must.OK(t, err)
			c, err := strategy.Start(strategy.Launch{Command: exec.Command(filepath.Join(bin, d.Name))})
			must.OK(t, err)
			defer c.Close()
			description, err := c.Describe(t.Context(), set)
			must.OK(t, err)
			if own := strategy.Describe(d, s); !reflect.DeepEqual(description, own) {
				t.Errorf("as a plugin it is %+v, built in %+v", description, own)
			}
			got, err := c.Plan(t.Context(), set, description, q)
			must.OK(t, err)
			if !reflect.DeepEqual(got.Schedule, want.Schedule) {
				t.Error("as a plugin it plans otherwise than built in")
			}
		})
	}
}
