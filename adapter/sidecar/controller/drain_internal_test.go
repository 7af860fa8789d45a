package controller

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/internal/config"
)

// TestDrain: what evosctl said of a sidecar that was down counts when it starts, and a damaged file drains it; what an
// operator sets outlives it, until it is resumed. What the configuration says is changed there.
func TestDrain(t *testing.T) {
	cfg, st := alone(t)
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
		words := ""
		live(t, s.cfg, st, func(ctx context.Context, c *Controller) {
			if s.do != nil {
				if err := s.do(c); err != nil {
					t.Errorf("%s: %v", s.name, err)
				}
			}
			if got, _ := c.Status(ctx); got.Drain != nil {
				words = got.Drain.Words
			}
		})
		if !strings.HasPrefix(words, s.want) || (words == "") != (s.want == "") {
			t.Errorf("%s: %q, want %q", s.name, words, s.want)
		}
		if _, err := os.Stat(config.DrainFile(cfg.Database)); err == nil {
			t.Errorf("%s: the file is left", s.name)
		}
	}
}
