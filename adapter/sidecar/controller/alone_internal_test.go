package controller

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/internal/config"
	"github.com/evoslurm/evoslurm/adapter/sidecar/store"
	"github.com/evoslurm/evoslurm/slurmctl"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest/must"
)

// alone returns the configuration and the database of a sidecar without a Slurm.
func alone(t *testing.T) (config.Config, *store.Store) {
	t.Helper()
	dir := t.TempDir()
	cfg := config.Default()
	cfg.Database, cfg.Slurm.Bin, cfg.Recorder.MiB, cfg.Strategies.Dir = filepath.Join(dir, "db"), dir, 0, ""
	st, err := store.Open(t.Context(), cfg.Database)
	must.OK(t, err)
	t.Cleanup(func() { _ = st.Close() })
	return cfg, st
}

// live runs such a sidecar until f returns.
func live(t *testing.T, cfg config.Config, st *store.Store, f func(ctx context.Context, c *Controller)) {
	t.Helper()
	log, _ := quiet()
	c, err := New(cfg, &slurmctl.Client{Dir: cfg.Slurm.Bin, Timeout: time.Second}, st, log, "1")
	must.OK(t, err)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- c.Run(ctx) }()
	f(ctx, c)
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
