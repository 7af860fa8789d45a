package core

import (
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/internal/config"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state/statetest"
)

// TestStill: a sidecar that was stopped for a minute while it waited for a plan knows that: nobody has overrun meanwhile.
func TestStill(t *testing.T) {
	for away, want := range map[time.Duration]bool{time.Minute: true, 5 * time.Second: false} {
		now := time.Unix(1_800_000_000, 0)
		core := statetest.NewCore(config.Default(), now)
		step(core, now)
		observation, _ := statetest.LargeSite(now)
		if step(core, now, observation); !core.Planning {
			t.Fatal("it does not plan")
		}
		stood := false
		for _, e := range step(core, now.Add(away)) {
			event, is := e.(msg.AddEvent)
			stood = stood || is && event.Kind == "stood still"
		}
		if stood != want || stood != core.Awake.Equal(now.Add(away)) {
			t.Errorf("away for %v: %v", away, stood)
		}
	}
}
