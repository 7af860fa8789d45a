package controller

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/internal/config"
	"github.com/evoslurm/evoslurm/adapter/sidecar/store"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// TestDrain: what evosctl said of a sidecar that was down counts when it starts, and a damaged file drains it; what an
// operator sets outlives it, until it is resumed. What the configuration says is changed there.
func TestDrain(t *testing.T) {
	dir := t.TempDir()
	cfg := config.Default()
	cfg.Database, cfg.Slurm.Bin, cfg.Recorder.MiB, cfg.Strategies.Dir = filepath.Join(dir, "db"), dir, 0, ""
	log, _ := quiet()
	st, err := store.Open(t.Context(), cfg.Database)
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	inFile := cfg
	inFile.Drain = "drain"
	for _, s := range []struct {
		name, file string
		cfg        config.Config
		do         func(c *Controller) error
		want       string
	}{
		{"as it is", "", cfg, nil, ""},
		{"by a file", "release queued=hold by=root", cfg, nil, "everything was released by root"},
		{"another life", "", cfg, nil, "everything was released by root"},
		{"resumed", "", cfg, func(c *Controller) error { _, err := c.Drain(t.Context(), nil, "op"); return err }, ""},
		{"drained", "", cfg, func(c *Controller) error {
			_, err := c.Drain(t.Context(), &api.DrainRequest{}, "op")
			_, bad := c.Drain(t.Context(), &api.DrainRequest{Release: true, Queued: "no"}, "op")
			if !errors.Is(bad, api.ErrInvalid) {
				t.Errorf("a wrong request: %v", bad)
			}
			return err
		}, "the sidecar is drained by op"},
		{"by a damaged file", "x", cfg, nil, "the sidecar is drained by the configuration (drain)"},
		{"by the configuration", "", inFile, func(c *Controller) error {
			if _, err := c.Drain(t.Context(), nil, "op"); !errors.Is(err, api.ErrConflict) {
				t.Errorf("resumed: %v", err)
			}
			return nil
		}, "the sidecar is drained by the configuration (drain)"},
	} {
		if s.file != "" {
			if err := os.WriteFile(config.DrainFile(cfg.Database), []byte(s.file), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		c, err := New(s.cfg, &slurmctl.Client{Dir: dir, Timeout: time.Second}, st, log, "1")
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- c.Run(ctx) }()
		if s.do != nil {
			if err := s.do(c); err != nil {
				t.Errorf("%s: %v", s.name, err)
			}
		}
		words := ""
		if got, _ := c.Status(ctx); got.Drain != nil {
			words = got.Drain.Words
		}
		if !strings.HasPrefix(words, s.want) || (words == "") != (s.want == "") {
			t.Errorf("%s: %q, want %q", s.name, words, s.want)
		}
		if _, err := os.Stat(config.DrainFile(cfg.Database)); err == nil {
			t.Errorf("%s: the file is left", s.name)
		}
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}
