package pluginhost

import (
	"context"
	"io"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/internal/config"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/planner/malleable"
	sdk "github.com/evoslurm/evoslurm/plugins/strategy"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest/must"
)

// TestPolicies checks which malleability policy is in use, and what is kept of it.
func TestPolicies(t *testing.T) {
	log := logrus.New()
	log.SetOutput(io.Discard)
	cfg := config.Default().Strategies
	cfg.Dir = ""
	m, err := New(cfg, "noX", nil, log)
	must.OK(t, err)
	defer m.Close()
	if err := m.Resizing.Take("round-robin", nil, nil); err == nil || !strings.Contains(err.Error(), `no malleability policy "round-robin"`) {
		t.Fatalf("%v", err)
	}
	if err := m.Resizing.Take("egs", nil, &Chosen{Name: "gone"}); err != nil || m.Resizing.Name() != "egs" {
		t.Fatalf("a policy that is gone: %v, %s", err, m.Resizing.Name())
	}
	if err := m.Resizing.Take("egs", nil, &Chosen{Name: "gain", By: "alice"}); err != nil || m.Resizing.Name() != "gain" {
		t.Fatalf("a policy that was kept: %v, %s", err, m.Resizing.Name())
	}
	inUse := func() api.Strategy {
		all := m.Resizing.List()
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
		if _, err := m.Resizing.Use(context.Background(), c.name, c.parameters, "bob"); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v", c.name, err)
		}
	}
	for _, c := range []struct{ name, now, kept string }{{"fpsma", "fpsma", "fpsma"}, {api.Configured, "egs", ""}, {"egs", "egs", ""}, {"folding", "folding", "folding"}} {
		change, err := m.Resizing.Use(context.Background(), c.name, nil, "bob")
		must.OK(t, err)
		kept := ""
		if k := change.Kept(); k != nil {
			kept = k.Name
		}
		change.Swap()
		if s := inUse(); s.Name != c.now || s.By != "bob" || kept != c.kept {
			t.Errorf("%s: %+v, kept %q", c.name, s, kept)
		}
	}
	configure := func(policy string) *Change {
		changes, err := m.Configure(context.Background(), cfg, "noX", policy)
		if err != nil || len(changes) != 2 || changes[0].Event() != nil {
			t.Fatal(changes, err)
		}
		return changes[1]
	}
	change := configure("egs")
	if change.Swap(); change.Event() != nil || m.Resizing.Name() != "folding" {
		t.Errorf("the same configuration: %+v", change)
	}
	if change = configure("equipartition"); change.Kept() != nil {
		t.Fatal(change)
	}
	if change.Swap(); inUse().Name != "equipartition" || inUse().Instead != "" {
		t.Errorf("another configuration: %+v", inUse())
	}
}

// usePolicy puts a policy in use as the controller does, with its event.
func (r *rig) usePolicy(name string, parameters map[string]string) {
	r.t.Helper()
	change, err := r.Resizing.Use(context.Background(), name, parameters, "tester")
	r.must(err)
	r.swap(change)
}

func (r *rig) listed(name string) api.Strategy {
	r.t.Helper()
	for _, s := range r.Resizing.List() {
		if s.Name == name {
			return s
		}
	}
	r.t.Fatalf("there is no %s in the list", name)
	return api.Strategy{}
}

// three returns three malleable jobs. The last one must not be asked.
func three(asked malleable.Request) msg.Question {
	return msg.Question{Asked: asked, Nodes: 12, Free: 2, Jobs: []malleable.Job{
		{ID: "1", Start: 1, Nodes: 3, Min: 1, Max: 8, Speedup: malleable.Amdahl(.9)}, {ID: "2", Start: 2, Nodes: 4, Min: 2, Max: 8}, {ID: "3", Start: 3, Nodes: 3, Min: 1, Max: 8, Held: true}}}
}

// TestPolicyPlugins checks that a plugin decides on the sizes of malleable jobs while it answers in
// time with valid sizes. Otherwise its answer is ignored and reported, and it is restarted.
func TestPolicyPlugins(t *testing.T) {
	r := newRig(t, "noX", "mean", "gain", "klein")
	r.cfg.Timeout = 2 * time.Second
	_, err := r.Configure(context.Background(), r.cfg, "noX", "egs")
	r.must(err)
	r.must(r.Resizing.Take("egs", nil, nil))
	r.eventually("the policies are known", func() bool {
		return slices.ContainsFunc(r.Resizing.List(), func(s api.Strategy) bool { return s.Name == "mean" }) && r.listed("gain").Kind == "plugin"
	})
	if _, err := r.Resizing.Use(context.Background(), "klein", nil, "tester"); err == nil || !strings.Contains(err.Error(), sdk.ErrNoResize.Error()) {
		t.Errorf("a strategy as a policy: %v", err)
	}
	if _, err := r.Resizing.Use(context.Background(), "mean", map[string]string{"mood": "bad"}, "tester"); err == nil || r.Resizing.Name() != "egs" {
		t.Errorf("a parameter that there is not: %v; %s is in use", err, r.Resizing.Name())
	}

	r.usePolicy("mean", nil)
	if !r.Resizing.Plugin() || !happened(r.Events(), "malleability policy", "to:mean") {
		t.Error("it is not in use")
	}
	grow, shrink := malleable.Request{Kind: malleable.Grow, Nodes: 2}, malleable.Request{Kind: malleable.Shrink, Nodes: 3, Mandatory: true}
	for _, c := range []struct {
		asked malleable.Request
		sizes []int
	}{{grow, []int{5, 4, 3}}, {shrink, []int{2, 2, 3}}} { // FPSMA
		got := []int{3, 4, 3}
		changes, err := r.Resize(three(c.asked))
		for _, change := range changes {
			got[change.Job] = change.Size(three(c.asked).Jobs[change.Job])
		}
		if err != nil || !slices.Equal(got, c.sizes) {
			t.Errorf("%v: %v, %v; want %v", c.asked, got, err, c.sizes)
		}
	}
	if s := r.listed("mean"); !s.InUse || s.State != "in use" || s.Plans != 2 || s.Instead != "egs" || r.Resizing.Note() != "" {
		t.Errorf("listed as %+v; %q", s, r.Resizing.Note())
	}

	for mode, want := range map[string]string{"exit": "status 3|connection broke", "late": "no answer in time", "fails": "no idea", "few": "2 sizes for 3 jobs", "above": "not within 1-8",
		"below": "is to shrink", "mixed": "is to shrink", "held": "may not be asked", "too-many": "jobs grow by"} {
		r.usePolicy("mean", map[string]string{"mode": mode})
		r.Events()
		before := r.listed("mean").Faults
		changes, err := r.Resize(three(grow))
		if err == nil || changes != nil || !slices.ContainsFunc(strings.Split(want, "|"), func(w string) bool { return strings.Contains(err.Error(), w) }) {
			t.Errorf("%s: %v, %v; want %q", mode, changes, err, want)
		}
		if !happened(r.Events(), "malleability policy fault", "instead:egs") || r.listed("mean").Faults <= before {
			t.Errorf("%s: no event, or no fault counted", mode)
		}
	}
	r.eventually("it is put aside, or back", func() bool {
		_, _ = r.Resize(three(grow))
		return r.listed("mean").State == "put aside" && strings.HasPrefix(r.Resizing.Note(), "egs decides in its place until ")
	})

	changes, err := r.Reload(context.Background(), "tester") // it is forgiven
	r.must(err)
	change := changes[1]
	if e := change.Event(); e.Kind != "malleability policy reloaded" || change.Stale() {
		t.Errorf("%+v", e)
	}
	r.usePolicy("gain", nil)
	if !change.Stale() {
		t.Error("a change of what is not in use any more is not known to be that")
	}
	change.Discard()
	if _, err := r.Resize(three(shrink)); err != nil || r.listed("gain").Plans != 1 {
		t.Errorf("gain: %v", err)
	}
	r.usePolicy(api.Configured, nil)
	if r.Resizing.Plugin() || r.Resizing.Name() != "egs" {
		t.Errorf("%s is in use", r.Resizing.Name())
	}
	r.eventually("all plugins are gone", func() bool { return len(descendants(os.Getpid())) == 0 })
}
