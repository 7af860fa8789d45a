//go:build live

package live_test

import (
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/internal/config"
	"github.com/evoslurm/evoslurm/adapter/lab/simulate"
	"github.com/evoslurm/evoslurm/adapter/lab/workload"
	"github.com/evoslurm/evoslurm/adapter/trials/rig"
	"github.com/evoslurm/evoslurm/planner"
	"github.com/evoslurm/evoslurm/slurmctl/slurmsim"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest"
)

var (
	factor = flag.Float64("live.time", 40, "TestESP runs the benchmark so many times as fast")
	seed   = flag.Uint64("live.seed", 1, "order of its jobs")
)

// TestESP runs the benchmark ESP on the real Slurm and on the model, time scaled alike.
func TestESP(t *testing.T) {
	for _, one := range []struct {
		name string
		simulate.ESP
	}{
		{"full", simulate.ESP{Cores: 64, Full: true}},
		{"dynamic", simulate.ESP{Cores: 120, Dynamic: true}},
		{"static", simulate.ESP{Cores: 120}},
	} {
		t.Run(one.name, func(t *testing.T) {
			b := one.ESP
			b.Burst, b.Seed, b.Time = true, *seed, *factor
			s := newSite(t, b.Cores, time.Hour)
			before := rig.Load()
			real := s.esp(b)
			e := simulate.Experiment{Config: config.Default()}
			conf, err := os.Open(s.Cluster.Dir() + "/slurm.conf")
			s.must(err)
			defer conf.Close()
			e.Cluster, err = slurmsim.ReadConf(conf, "all")
			s.must(err)
			e.Strategy, err = planner.StrategyByName("noX")
			s.must(err)
			model, err := b.Run(s.ctx, e, false)
			s.must(err)
			for _, r := range []struct {
				who string
				simulate.ESPResult
			}{{"real", real}, {"model", model}} {
				t.Logf("%s: %d s, efficiency %.1f %% by what is printed, %.1f %% by what it adds up to, %.3f jobs a minute of the benchmark's", r.who, r.Elapsed, r.Printed, r.Efficiency, r.Throughput / *factor)
			}
			t.Logf("%g times as fast, load %s, %s", *factor, before, rig.Load())
		})
	}
}

// esp runs the benchmark on the real Slurm. Jobs of a higher priority are submitted by root.
func (s *site) esp(b simulate.ESP) simulate.ESPResult {
	jobs := b.Jobs()
	w := planner.Problem{Nodes: b.Cores}
	var group sync.WaitGroup
	for i, j := range jobs {
		number := strconv.Itoa(i + 1)
		if !j.First {
			w.Jobs = append(w.Jobs, planner.Job{ID: number, Submit: j.Submit, Profile: j.Profile})
			continue
		}
		group.Go(func() {
			time.Sleep(time.Duration(j.Submit) * time.Second)
			_, err := s.Cluster.Run(s.ctx, slurmtest.Root, "sbatch", "--job-name=evotrace-"+number, "--nice=-10000", "--exclusive", "--chdir=/", "--output=/dev/null",
				fmt.Sprintf("--nodes=%d", b.Cores), fmt.Sprintf("--time=%d", (j.Limit+59)/60), fmt.Sprintf("--wrap=sleep %d", j.Profile.Duration()))
			if err != nil {
				s.Error(err)
			}
		})
	}
	var text strings.Builder
	s.must(workload.Write(&text, w))
	s.Log(strings.TrimSpace(s.evosim("trace", "inject", s.write("esp.json", text.String()))))
	group.Wait()
	first, last := 0., 0.
	for _, j := range s.extracted(s.Dir+"/out/esp.swf", len(jobs)) {
		if first == 0 || j.Submit < first {
			first = j.Submit
		}
		last = max(last, j.Start()+j.Run)
	}
	return b.Result(int64(last-first), len(jobs))
}
