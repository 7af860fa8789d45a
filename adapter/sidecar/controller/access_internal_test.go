package controller

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/internal/config"
)

func TestWanted(t *testing.T) {
	configured := config.Default()
	configured.Allow.Users = []string{"ann"}
	now := configured
	now.Allow.Users, now.Deny.Users, now.MaxHolds = []string{"ann", "bob"}, []string{"eve"}, 7
	type lists = map[string][]string
	for name, c := range map[string]struct {
		r     api.SettingsRequest
		want  map[string]string
		fails string
	}{
		"a value":                  {api.SettingsRequest{Set: map[string]string{"max_holds": "9"}}, map[string]string{"max_holds": "9"}, ""},
		"the configured value":     {api.SettingsRequest{Configured: []string{"max_holds", "allow.users"}}, map[string]string{"max_holds": "100", "allow.users": "ann"}, ""},
		"more names":               {api.SettingsRequest{Add: lists{"allow.users": {"eve", "bob"}}}, map[string]string{"allow.users": "ann,bob,eve"}, ""},
		"fewer names":              {api.SettingsRequest{Remove: lists{"allow.users": {"ann", "eve"}, "deny.users": {"eve"}}}, map[string]string{"allow.users": "bob", "deny.users": ""}, ""},
		"moved":                    {api.SettingsRequest{Add: lists{"allow.users": {"eve"}}, Remove: lists{"deny.users": {"eve"}}}, map[string]string{"allow.users": "ann,bob,eve", "deny.users": ""}, ""},
		"configured, and one more": {api.SettingsRequest{Configured: []string{"allow.users"}, Add: lists{"allow.users": {"eve"}}}, map[string]string{"allow.users": "ann,eve"}, ""},
		"no list":                  {api.SettingsRequest{Add: lists{"max_holds": {"1"}}}, nil, "max_holds is no list"},
	} {
		got, err := wanted(c.r, now, configured)
		if (err == nil) != (c.fails == "") || err != nil && !strings.Contains(err.Error(), c.fails) || !cmp.Equal(got, c.want) {
			t.Errorf("%s: %v, %v; want %v, %q", name, got, err, c.want, c.fails)
		}
	}
}

// TestAccessIsBounded: no question has the sidecar compare thousands of names with its lists.
func TestAccessIsBounded(t *testing.T) {
	cfg, st := alone(t)
	cfg.Deny.Accounts = []string{"x"}
	live(t, cfg, st, func(ctx context.Context, c *Controller) {
		for n, fails := range map[int]bool{1: false, mostAsked: false, mostAsked + 1: true} {
			a, err := c.Access(ctx, 0, api.AccessQuery{Account: strings.Repeat("y,", n-1) + "x"})
			if (err != nil) != fails || err == nil && a.Allowed {
				t.Errorf("%d names: %+v, %v", n, a, err)
			}
		}
	})
}
