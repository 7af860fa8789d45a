package controller

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/internal/config"
	"github.com/evoslurm/evoslurm/adapter/sidecar/store"
)

// TestSettings: what an operator sets counts at once and outlives the sidecar, until he takes it back or
// the configuration's value changes. Half a change is none.
func TestSettings(t *testing.T) {
	cfg, st := alone(t)
	set := func(c *Controller, texts map[string]string) error {
		return c.change(t.Context(), "alice", func(config.Config, config.Config) (map[string]string, error) { return texts, nil })
	}
	fails := func(err error, text string) bool {
		return errors.Is(err, api.ErrInvalid) && strings.Contains(err.Error(), text)
	}
	other := cfg
	other.MaxDelay = 2 * time.Hour
	for _, s := range []struct {
		name         string
		cfg          config.Config
		do           func(c *Controller) error
		fails        string
		delay, holds string
		event        string // the latest
	}{
		{"set", cfg, func(c *Controller) error { return set(c, map[string]string{"max_delay": "30m", "max_holds": "7"}) }, "", "30m0s", "7",
			`{"by":"alice","from":"100","key":"max_holds","to":"7"}`},
		{"half", cfg, func(c *Controller) error { return set(c, map[string]string{"max_delay": "5m", "max_holds": "0"}) }, "max_holds: 0; want 1 or more", "30m0s", "7", ""},
		{"other key", cfg, func(c *Controller) error { return set(c, map[string]string{"database": "/x"}) }, `"database" is no key to set`, "30m0s", "7", ""},
		{"restart", cfg, func(*Controller) error { return nil }, "", "30m0s", "7", ""},
		{"configuration read again", cfg, func(c *Controller) error { return c.Configure(t.Context(), other) }, "", "2h0m0s", "7",
			`{"by":"configuration","from":"30m0s","key":"max_delay","to":"2h0m0s"}`},
		{"back", other, func(c *Controller) error { return set(c, map[string]string{"max_holds": "100"}) }, "", "2h0m0s", "100",
			`{"by":"alice","from":"7","key":"max_holds","to":"100"}`},
		{"nothing left", cfg, func(*Controller) error { return nil }, "", "1h0m0s", "100", ""},
	} {
		before := latest(t, st)
		delay, holds := "", ""
		live(t, s.cfg, st, func(ctx context.Context, c *Controller) {
			err := s.do(c)
			if (err != nil || s.fails != "") && !fails(err, s.fails) {
				t.Errorf("%s: %v, want %q", s.name, err, s.fails)
			}
			if err := c.change(ctx, "", func(now, _ config.Config) (map[string]string, error) {
				delay, holds = now.Text("max_delay"), now.Text("max_holds")
				return nil, nil
			}); err != nil {
				t.Error(err)
			}
		})
		if delay != s.delay || holds != s.holds {
			t.Errorf("%s: max_delay %s, max_holds %s, want %s and %s", s.name, delay, holds, s.delay, s.holds)
		}
		want := s.event
		if want == "" {
			want = before
		}
		if after := latest(t, st); after != want {
			t.Errorf("%s: event %s, want %s", s.name, after, want)
		}
	}
}

// latest returns the latest event of a setting.
func latest(t *testing.T, st *store.Store) (text string) {
	t.Helper()
	events, err := st.Events(t.Context(), 0, 0, 1000)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range events {
		if e.Kind == "setting" {
			text = string(e.Detail)
		}
	}
	return text
}
