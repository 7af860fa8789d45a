package simulate

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/planner"
)

// Checkpoint is a point of an experiment from which it can be resumed or continued differently. It
// holds no state of the model or the sidecar. Equal input gives equal output, so the run is
// replayed up to that point, and the outcome of the jobs until then must be the same.
type Checkpoint struct {
	Strategy string `json:"strategy"` // strategy until then
	Step     int    `json:"step"`     // of the simulation
	Second   int64  `json:"second"`   // of the experiment
	Jobs     string `json:"jobs"`     // SHA-256 of the jobs' outcome until then
}

// NotTheSame means that a checkpoint is from another experiment.
type NotTheSame struct{ Second int64 }

func (e NotTheSame) Error() string {
	return fmt.Sprintf("second %d: jobs fare otherwise than they did up to the checkpoint: it is of another workload, of other options, or of another version of evosim", e.Second)
}

// checkpoint returns the trial's current point.
func (t *trial) checkpoint(step int) Checkpoint {
	sum := sha256.New()
	out := json.NewEncoder(sum)
	for _, j := range t.jobs {
		r := &j.result
		_ = out.Encode([]any{r.ID, r.Submit, r.Start, r.End, r.State, r.Sizes}) // a hash returns no error
		if j.app != nil {
			_ = out.Encode(j.app.Steps)
		}
	}
	return Checkpoint{t.Strategy.Name(), step, int64(t.cluster.Elapsed().Seconds()), hex.EncodeToString(sum.Sum(nil))}
}

// resumed is called at every step. At the checkpoint's step, it checks that everything is as it
// was, and switches to the strategy for the rest.
func (t *trial) resumed(step int) error {
	c := t.Resume
	if c == nil || step != c.Step {
		return nil
	}
	if t.checkpoint(step) != *c {
		return NotTheSame{c.Second}
	}
	if t.Then != nil && t.sidecar != nil {
		t.Config.Strategy = t.Then.Name()
		t.sidecar.Use(t.Then)
	}
	return nil
}

// Use makes the sidecar plan by another strategy from now on, as evosctl strategy use does.
func (s *Sidecar) Use(strategy planner.Strategy) {
	s.Strategy, s.Config.Strategy = strategy, strategy.Name()
	cfg := s.Config
	s.give(msg.Configuration{Config: &cfg, Strategy: msg.Strategy{ExpandLimit: planner.ExpandLimitOf(strategy), Plugin: s.Policy != nil}})
}
