package controller

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/internal/config"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/drive"
	"github.com/evoslurm/evoslurm/adapter/sidecar/store"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// TestModeStays: a SIGHUP changes everything but the mode, and the driver of a sidecar that observes refuses changes.
func TestModeStays(t *testing.T) {
	for _, mode := range []config.Mode{config.ModeAct, config.ModeObserve} {
		dir := t.TempDir()
		cfg := config.Default()
		cfg.Database, cfg.Slurm.Bin, cfg.Recorder.MiB, cfg.Strategies.Dir, cfg.Mode = filepath.Join(dir, "db"), dir, 0, "", mode
		log, _ := quiet()
		st, err := store.Open(t.Context(), cfg.Database)
		if err != nil {
			t.Fatal(err)
		}
		c, err := New(cfg, &slurmctl.Client{Dir: dir, Timeout: time.Second}, st, log, "1")
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- c.Run(ctx) }()
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
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		st.Close()
	}
}
