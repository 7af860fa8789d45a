package reach

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/evoslurm/evoslurm/adapter/internal/config"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// TestTrusts: the sidecar runs as the configured account or as SlurmUser, and Slurm is asked once, and
// only about others.
func TestTrusts(t *testing.T) {
	site := config.Default()
	site.Slurm.Bin = t.TempDir()
	scontrol := filepath.Join(site.Slurm.Bin, "scontrol")
	asked := filepath.Join(site.Slurm.Bin, "asked")
	script := "#!/bin/sh\necho >>" + asked + "\necho 'SLURM_VERSION = 22.05.8'\necho 'SlurmUser = slurm(64030)'\n"
	if err := os.WriteFile(scontrol, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	site.SidecarUser = "nobody"
	c, err := Client(site)
	if err != nil {
		t.Fatal(err)
	}
	if ok, err := c.Trusts(t.Context(), 65534); !ok || err != nil {
		t.Errorf("the configured account: %v, %v", ok, err)
	}
	if _, err := os.Stat(asked); err == nil {
		t.Error("Slurm was asked about the configured account")
	}
	for uid, want := range map[uint32]bool{64030: true, 1000: false, 64031: false} {
		if ok, err := c.Trusts(t.Context(), uid); ok != want || err != nil {
			t.Errorf("uid %d: %v, %v", uid, ok, err)
		}
	}
	if text, err := os.ReadFile(asked); len(text) != 1 || err != nil {
		t.Errorf("Slurm was asked %d times (%v)", len(text), err)
	}
	site.SidecarUser = ""
	if c, err = Client(site); err != nil {
		t.Fatal(err)
	}
	if ok, err := c.Trusts(t.Context(), 65534); ok || err != nil {
		t.Errorf("another account: %v, %v", ok, err)
	}
	if err := os.Remove(scontrol); err != nil {
		t.Fatal(err)
	}
	if c, err = Client(site); err != nil {
		t.Fatal(err)
	}
	if ok, err := c.Trusts(t.Context(), 64030); ok || err == nil {
		t.Errorf("without Slurm: %v, %v", ok, err)
	}
}

// TestAuth: MUNGE proves who is calling, unless the site says that tokens do; slurmctld makes one if the environment has none, and
// one that slurmctld refuses is named.
func TestAuth(t *testing.T) {
	t.Setenv("SLURM_JWT", "expired")
	site := config.Default()
	if c, err := Client(site); err != nil || c.Token != nil {
		t.Errorf("by MUNGE: %v", err)
	}
	site.Auth, site.Slurm.Bin = config.AuthJWT, t.TempDir()
	if err := os.WriteFile(filepath.Join(site.Slurm.Bin, "scontrol"), []byte("#!/bin/sh\necho SLURM_JWT=a.b.c\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	c, err := Client(site)
	if err != nil {
		t.Fatal(err)
	}
	if token, err := c.Token(t.Context()); err != nil || token != "a.b.c" {
		t.Errorf("by token: %q, %v", token, err)
	}
	for jwt, want := range map[string]string{"": "", "good": "", "bad": ": it is not of this cluster; unset", "down": "",
		"eyJhbGciOiJIUzI1NiJ9.eyJleHAiOjEsInN1biI6ImEifQ." + strings.Repeat("A", 43): ": it expired at "} {
		t.Setenv("SLURM_JWT", jwt)
		script := "#!/bin/sh\n[ ${SLURM_JWT:-good} = good ] && [ '" + jwt + "' != down ] && echo 'SLURM_VERSION = 22.05.8'\n"
		if err := os.WriteFile(filepath.Join(site.Slurm.Bin, "scontrol"), []byte(script), 0o700); err != nil {
			t.Fatal(err)
		}
		if got := RefusedToken(t.Context(), &slurmctl.Client{Dir: site.Slurm.Bin}); !strings.Contains(got, want) || want == "" && got != "" {
			t.Errorf("%q: %q, want %q", jwt, got, want)
		}
	}
	site.API = "https://head"
	site.TLS.CA = site.Slurm.Bin + "/none"
	if _, err := Client(site); err == nil {
		t.Error("the authority's file is missing")
	}
}
