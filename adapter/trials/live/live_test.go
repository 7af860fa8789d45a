package live_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/lab/trace"
	"github.com/evoslurm/evoslurm/adapter/trials/rig"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest"
)

var bin string

func TestMain(m *testing.M) {
	rig.Main(func(dir string) int {
		bin = dir
		return m.Run()
	})
}

// site is a real cluster with a sidecar.
type site struct {
	*testing.T
	*rig.Rig
	ctx context.Context
}

func newSite(t *testing.T, nodes int, most time.Duration, more ...string) *site {
	ctx, stop := context.WithTimeout(t.Context(), most)
	t.Cleanup(stop)
	s := &site{T: t, ctx: ctx}
	s.Rig = rig.In(t, slurmtest.Options{Nodes: nodes, Accounting: true, PermitJobExpansion: true}, bin, "strategy: noX\n"+strings.Join(more, ""))
	s.StartIn(t, rig.Account{})
	return s
}

func (s *site) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

// evosim runs evosim as a user of the cluster.
func (s *site) evosim(args ...string) string {
	s.Helper()
	cmd := s.Cluster.Command(s.ctx, s.Cluster.Users()[0], bin+"/evosim", args...)
	cmd.Env, cmd.Dir = append(cmd.Env, s.Env()...), s.Dir+"/out"
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		s.Fatalf("evosim %q: %v\n%s", args, err, errs.String())
	}
	return out.String()
}

// write writes a file that all users may read.
func (s *site) write(name, text string) (path string) {
	s.Helper()
	path = filepath.Join(s.Dir, "out", name)
	s.must(os.WriteFile(path, []byte(text), 0o644))
	return path
}

// extracted waits until so many jobs that were injected have completed, and gives them by number.
func (s *site) extracted(path string, n int) map[int64]trace.Job {
	s.Helper()
	for {
		s.evosim("trace", "extract", "--injected", fmt.Sprintf("--nodes=%d", s.Cluster.Options().Nodes), "-o", path)
		f, err := os.Open(path)
		s.must(err)
		t, err := trace.Read(f)
		f.Close()
		s.must(err)
		jobs := map[int64]trace.Job{}
		for _, j := range t.Jobs {
			switch {
			case j.Status == 0, j.Status == 5:
				s.Fatalf("job %d did not complete: %+v", j.Number, j)
			case j.Status == 1:
				jobs[j.Number] = j
			}
		}
		if len(jobs) == n {
			return jobs
		}
		select {
		case <-s.ctx.Done():
			s.Fatalf("%d of %d jobs have completed", len(jobs), n)
		case <-time.After(2 * time.Second):
		}
	}
}

// played is a workload on the real Slurm and on the model.
type played struct {
	real  map[int64]trace.Job
	diff  trace.Difference
	table string
}

// play injects a workload file, extracts what became of it, and compares it with what the model makes of it.
func (s *site) play(text string) (p played) {
	s.Helper()
	file := s.write("workload.json", text)
	s.Log(strings.TrimSpace(s.evosim("trace", "inject", file)))
	var w struct{ Jobs []json.RawMessage }
	s.must(json.Unmarshal([]byte(text), &w))
	real := filepath.Join(s.Dir, "out", "real.swf")
	p.real = s.extracted(real, len(w.Jobs))
	model := s.write("model.json", s.evosim("run", "--slurm-conf="+s.Cluster.Dir()+"/slurm.conf", "--leave-out=all", "--strategy=noX", "--format=json", file))
	s.must(json.Unmarshal([]byte(s.evosim("trace", "diff", "--list=-1", "--format=json", model, real)), &p.diff))
	p.table = s.evosim("trace", "diff", "--list=-1", model, real)
	return p
}

// TestLive: a small workload of stock and evolving jobs goes through the sidecar of a real Slurm and comes out of its
// accounting with every job, on the nodes and for the time that it asked for, and is compared with the model's outcome.
func TestLive(t *testing.T) {
	const text = `{"nodes":4,"jobs":[
{"id":"1","submit":0,"profile":[{"duration":15,"nodes":2}]},
{"id":"2","submit":1,"profile":[{"duration":5,"nodes":1},{"duration":10,"nodes":2},{"duration":5,"nodes":1}]},
{"id":"3","submit":2,"profile":[{"duration":10,"nodes":3}]},
{"id":"4","submit":3,"profile":[{"duration":6,"nodes":3},{"duration":6,"nodes":1}]},
{"id":"5","submit":4,"profile":[{"duration":10,"nodes":1}]}
]}`
	s := newSite(t, 4, 10*time.Minute)
	p := s.play(text)
	for number, seconds := range map[int64]float64{1: 15, 2: 20, 3: 10, 4: 12, 5: 10} {
		if j := p.real[number]; j.Run < seconds-1 || j.Wait < 0 {
			t.Errorf("job %d: %+v, want %g s", number, j, seconds)
		}
	}
	for number, nodes := range map[int64]int64{1: 2, 3: 3, 5: 1} {
		if j := p.real[number]; j.Processors != nodes {
			t.Errorf("job %d: %+v, want %d nodes", number, j, nodes)
		}
	}
	evolved := map[string][]int{}
	jobs, err := s.Jobs(0)
	s.must(err)
	for _, j := range jobs {
		for _, span := range j.Past {
			if had := evolved[j.Name]; len(had) == 0 || had[len(had)-1] != span.Nodes {
				evolved[j.Name] = append(had, span.Nodes)
			}
		}
	}
	for name, want := range map[string][]int{"evotrace-2": {1, 2, 1}, "evotrace-4": {3, 1}} {
		if !slices.Equal(evolved[name], want) {
			t.Errorf("%s had %v nodes, want %v", name, evolved[name], want)
		}
	}
	if p.diff.Both != 5 || p.diff.OnlyA != 0 || p.diff.OnlyB != 0 {
		t.Errorf("%+v", p.diff)
	}
	t.Log(p.table)
}
