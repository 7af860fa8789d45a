package strategy_test

import (
	"context"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/planner"
	"github.com/evoslurm/evoslurm/plugins/builtin"
	"github.com/evoslurm/evoslurm/plugins/strategy"
	"github.com/evoslurm/evoslurm/plugins/strategytest"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest/must"
)

// BenchmarkPlan plans 10,000 jobs of 5 steps on 1,000 nodes with noX: in this process, in a
// plugin's, and in a plugin that knows the answer, which measures only the call.
func BenchmarkPlan(b *testing.B) {
	request := strategytest.TenThousand()
	b.Run("here", func(b *testing.B) {
		s, err := planner.StrategyByName("noX")
		must.OK(b, err)
		for b.Loop() {
			if _, err := strategy.Run(context.Background(), s, request); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("plugin", func(b *testing.B) {
		benchmarkPlugin(b, request, "../cmd/klein", map[string]string{"expand_limit": "1", "compact": "false"})
	})
	for _, d := range builtin.Plugins() { // as on a site without settings
		b.Run("shipped/"+d.Name, func(b *testing.B) {
			own := request // jobs without settings as well
			own.Jobs = slices.Clone(request.Jobs)
			for i := range own.Jobs {
				own.Jobs[i].ExpandLimit = 0
			}
			benchmarkPlugin(b, own, "../cmd/"+d.Name, nil)
		})
	}
	b.Run("call alone", func(b *testing.B) { benchmarkPlugin(b, request, "./internal/known", nil) })
	b.Run("check", func(b *testing.B) {
		s, err := planner.StrategyByName("noX")
		must.OK(b, err)
		a, err := strategy.Run(context.Background(), s, request)
		must.OK(b, err)
		for b.Loop() {
			must.OK(b, strategy.Check(request, false, 1, a))
		}
	})
}

func benchmarkPlugin(b *testing.B, request strategy.Request, source string, parameters map[string]string) {
	path := filepath.Join(b.TempDir(), "plugin")
	if out, err := exec.Command("go", "build", "-o", path, source).CombinedOutput(); err != nil {
		b.Fatalf("%v\n%s", err, out)
	}
	c, err := strategy.Start(strategy.Launch{Command: exec.Command(path)})
	must.OK(b, err)
	defer c.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	d, err := c.Describe(ctx, parameters)
	must.OK(b, err)
	if _, err := c.Plan(ctx, parameters, d, request); err != nil { // the first one is not typical
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := c.Plan(ctx, parameters, d, request); err != nil {
			b.Fatal(err)
		}
	}
}
