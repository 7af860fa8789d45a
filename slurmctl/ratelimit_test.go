package slurmctl

import (
	"testing"
	"time"
)

func TestRateLimit(t *testing.T) {
	for text, want := range map[string]struct {
		limit RateLimit
		on    bool
		poll  time.Duration // for the requests of three commands
	}{
		"(null)":         {RateLimit{30, 2, time.Second}, false, 3 * time.Second},
		"enable_stepmgr": {RateLimit{30, 2, time.Second}, false, 3 * time.Second},
		"rl_enable":      {RateLimit{30, 2, time.Second}, true, 3 * time.Second},
		"enable_stepmgr, RL_ENABLE,rl_bucket_size=50":                     {RateLimit{50, 2, time.Second}, true, 3 * time.Second},
		"rl_refill_rate=6,rl_enable,rl_refill_period=10":                  {RateLimit{30, 6, 10 * time.Second}, true, 10 * time.Second},
		"rl_enable,rl_refill_rate=0,rl_bucket_size=-3,rl_refill_period=x": {RateLimit{30, 2, time.Second}, true, 3 * time.Second},
	} {
		c, err := parseConfig("SLURM_VERSION = 24.11.5\nSlurmUser = slurm(64030)\nSlurmctldParameters = " + text + "\n")
		if err != nil {
			t.Fatal(err)
		}
		got, on := c.RateLimit()
		if got != want.limit || on != want.on || got.Time(3) != want.poll {
			t.Errorf("%q: %+v, %v, %v for a poll; want %+v", text, got, on, got.Time(3), want)
		}
		for user, limits := range map[string]bool{"root": false, "slurm": false, "evoslurm": want.on} {
			if c.Limits(user) != limits {
				t.Errorf("%q: limits %s: %v", text, user, !limits)
			}
		}
	}
}

func TestParseFederation(t *testing.T) {
	for out, want := range map[string]string{
		"": "",
		"Federation: north\nSelf:       a:127.0.0.1:6817 ID:1 FedState:ACTIVE Features:\nSibling:    b:: ID:2 FedState:ACTIVE Features: PersistConnSend/Recv:No/No\n": "north",
		"Warning: something\nFederation:  x\n": "x",
		"Self: a\n":                            "",
	} {
		if got := parseFederation(out); got != want {
			t.Errorf("%q: %q, want %q", out, got, want)
		}
	}
}
