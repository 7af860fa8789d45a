// Command mean is a malleability policy for tests: it decides well, until the parameter mode makes it do what
// no policy should.
package main

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/evoslurm/evoslurm/planner/malleable"
	"github.com/evoslurm/evoslurm/plugins/strategy"
)

type mean struct {
	malleable.FPSMA
	mode string
}

// Resize implements strategy.Resizer.
func (m mean) Resize(_ context.Context, r strategy.ResizeRequest) ([]int, error) {
	sizes := make([]int, len(r.Jobs))
	for i, j := range r.Jobs {
		sizes[i] = j.Nodes
	}
	for _, c := range malleable.Distribute(m.FPSMA, r.Jobs, r.Asked, malleable.Declared) {
		sizes[c.Job] = c.Size(r.Jobs[c.Job])
	}
	if len(r.Jobs) < 3 { // the first look at it
		return sizes, nil
	}
	switch m.mode {
	case "exit":
		os.Exit(3)
	case "late":
		time.Sleep(time.Minute)
	case "fails":
		return nil, errors.New("no idea")
	case "few":
		return sizes[1:], nil
	case "above":
		sizes[0] = r.Jobs[0].Max + 1
	case "below":
		sizes[0] = r.Jobs[0].Min - 1
	case "mixed":
		sizes[0], sizes[1] = r.Jobs[0].Nodes+1, r.Jobs[1].Nodes-1
	case "held":
		sizes[2]++
	case "too-many":
		sizes[0], sizes[1] = r.Jobs[0].Max, r.Jobs[1].Max
	}
	return sizes, nil
}

func main() {
	strategy.Serve(strategy.Definition{Name: "mean", Version: "1", Help: "Not for use.",
		Parameters: []strategy.Parameter{{Name: "mode", Type: strategy.String, Help: "what to do wrong"}},
		NewPolicy:  func(v strategy.Values) (malleable.Policy, error) { return mean{mode: v["mode"]}, nil }})
}
