package pluginhost

import (
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/sirupsen/logrus"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/config"
)

// TestPolicies: which malleability policy is in use, and what is kept of that.
func TestPolicies(t *testing.T) {
	log := logrus.New()
	log.SetOutput(io.Discard)
	cfg := config.Default().Strategies
	cfg.Dir = ""
	m, err := New(cfg, "noX", nil, log)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if err := m.BeginPolicy("round-robin", nil); err == nil || !strings.Contains(err.Error(), `no malleability policy "round-robin"`) {
		t.Fatalf("%v", err)
	}
	if err := m.BeginPolicy("egs", &Chosen{Name: "gone"}); err != nil || m.Policy() != "egs" {
		t.Fatalf("a policy that is gone: %v, %s", err, m.Policy())
	}
	if err := m.BeginPolicy("egs", &Chosen{Name: "gain", By: "alice"}); err != nil || m.Policy() != "gain" {
		t.Fatalf("a policy that was kept: %v, %s", err, m.Policy())
	}
	inUse := func() api.Strategy {
		all := m.Policies()
		i := slices.IndexFunc(all, func(s api.Strategy) bool { return s.InUse })
		if i < 0 || len(all) != 5 {
			t.Fatalf("%+v", all)
		}
		return all[i]
	}
	if s := inUse(); s.Name != "gain" || s.By != "alice" || s.Instead != "egs" || s.Help == "" {
		t.Errorf("%+v", s)
	}
	for _, c := range []struct {
		name       string
		parameters map[string]string
		want       string
	}{{"none", nil, "no malleability policy"}, {"", nil, "no malleability policy"}, {"fpsma", map[string]string{"a": "b"}, "has no parameters"}} {
		if _, err := m.UsePolicy(c.name, c.parameters, "bob"); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v", c.name, err)
		}
	}
	for _, c := range []struct{ name, now, kept string }{{"fpsma", "fpsma", "fpsma"}, {api.Configured, "egs", ""}, {"egs", "egs", ""}, {"folding", "folding", "folding"}} {
		change, err := m.UsePolicy(c.name, nil, "bob")
		if err != nil {
			t.Fatal(err)
		}
		kept := ""
		if k := change.Kept(); k != nil {
			kept = k.Name
		}
		change.Swap()
		if s := inUse(); s.Name != c.now || s.By != "bob" || kept != c.kept {
			t.Errorf("%s: %+v, kept %q", c.name, s, kept)
		}
	}
	if change, err := m.ConfigurePolicy("egs"); change != nil || err != nil || m.Policy() != "folding" {
		t.Errorf("the same configuration: %v, %v", change, err)
	}
	change, err := m.ConfigurePolicy("equipartition")
	if err != nil || change.Kept() != nil {
		t.Fatal(change, err)
	}
	if change.Swap(); inUse().Name != "equipartition" || inUse().Instead != "" {
		t.Errorf("another configuration: %+v", inUse())
	}
}
