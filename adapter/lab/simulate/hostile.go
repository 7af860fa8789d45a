package simulate

import (
	"fmt"
	"math"
	"strings"
	"time"
)

// numbers lists what a hostile user writes as a number of nodes or seconds.
var numbers = []int64{0, 1, 2, 3, 9, 1000, 10_000_000, math.MaxInt32, math.MaxInt64}

// hostile has mallory attack: running jobs whose comments are markers, an evolving job that
// asks for far too much and stops the commands that run in mallory's name, and jobs that are
// named like the expanders of others. At the end mallory's jobs are cancelled.
func (g *storming) hostile(apps []string) {
	for i := range 1 + g.IntN(4) {
		g.at(g.when(storm), "stock evil%d %d 10m %dm user=mallory comment=evo:v2;%s;;", i, 1+g.IntN(g.nodes), 1+g.IntN(10), g.marker())
		g.hostiles = append(g.hostiles, fmt.Sprintf("evil%d", i))
	}
	for i := range g.IntN(3) {
		g.at(g.when(storm), "forge forged%d %s", i, apps[g.IntN(len(apps))])
	}
	if g.IntN(2) == 0 {
		return
	}
	begun := g.when(storm)
	g.at(begun, "submit greedy %s user=mallory limit=90m", g.insatiable())
	g.hostiles = append(g.hostiles, "greedy")
	for range g.IntN(4) {
		g.at(begun+g.when(storm-begun), "change greedy %+d", numbers[g.IntN(len(numbers))])
	}
	if g.IntN(2) == 0 {
		g.at(begun+time.Second, "stop mallory")
	}
}

// marker makes what stands between the ends of a marker, mostly wrong.
func (g *storming) marker() string {
	n := func() int64 { return numbers[g.IntN(len(numbers))] }
	fields := []string{fmt.Sprintf("p=%d@%d", n(), n())}
	switch g.IntN(4) {
	case 0:
		fields[0] = fmt.Sprintf("p=1@1m,%d@%d,%d@%d", n(), n(), n(), n())
	case 1:
		fields[0] = fmt.Sprintf("p=%d-%d@%d", n(), n(), n())
	case 2:
		fields[0] = fmt.Sprintf("p=%d@%d|%d@%d", n(), n(), n(), n())
	}
	for _, letter := range []string{"x", "t", "g", "i", "f"} {
		if g.IntN(4) == 0 {
			fields = append(fields, fmt.Sprintf("%s=%d", letter, n()))
		}
	}
	if g.IntN(4) == 0 {
		fields = append(fields, fmt.Sprintf("n=n[1-%d]", n()))
	}
	if g.IntN(4) == 0 {
		fields = append(fields, fmt.Sprintf("s=%d@%d@%d@%d@%d", n(), n(), n(), n(), n()))
	}
	return strings.Join(fields, ";")
}

// insatiable makes a profile that wants most of the cluster held, again and again.
func (g *storming) insatiable() string {
	steps := []string{"1@30s"}
	for range 2 + g.IntN(20) {
		steps = append(steps, fmt.Sprintf("%d@%ds,1@30s", g.nodes, 1+g.IntN(60)))
	}
	return strings.Join(steps, ",")
}
