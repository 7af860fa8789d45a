package controller

import (
	"context"
	"testing"

	"github.com/evoslurm/evoslurm/adapter/internal/config"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/drive"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// TestModeStays: a SIGHUP changes everything but the mode, and the driver of a sidecar that observes refuses changes.
func TestModeStays(t *testing.T) {
	for _, mode := range []config.Mode{config.ModeAct, config.ModeObserve} {
		cfg, st := alone(t)
		cfg.Mode = mode
		live(t, cfg, st, func(ctx context.Context, c *Controller) {
			cfg.Mode, cfg.MaxHolds = config.ModeObserve, 7
			if mode == config.ModeObserve {
				cfg.Mode = config.ModeAct
			}
			if err := c.Configure(ctx, cfg); err != nil {
				t.Error(err)
			}
			status, err := c.Status(ctx)
			if err != nil || status.Mode != string(mode) || !c.onLoop(ctx, func() {
				if c.cfg.Mode != mode || c.cfg.MaxHolds != 7 {
					t.Errorf("%s: %+v", mode, c.cfg)
				}
			}) {
				t.Errorf("%s: %+v, %v", mode, status, err)
			}
			_, err = c.driver.Run(ctx, ctx, msg.Task{Command: msg.Cancel{Jobs: []slurmctl.JobID{1}}})
			if refused := err != nil && err.Error() == drive.ErrReadOnly.Error(); refused != (mode == config.ModeObserve) {
				t.Errorf("%s: %v", mode, err)
			}
		})
		st.Close()
	}
}
