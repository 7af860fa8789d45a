package e2e_test

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/slurmctl"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest"
)

// TestTokens: on a site with MUNGE, tokens of slurmctld prove who is calling.
func TestTokens(t *testing.T) {
	t.Parallel()
	byTokens(t, slurmtest.Options{Nodes: 4}, nil)
}

// TestAuthSlurm: so they do without MUNGE. Slurm's own authentication has its sockets at fixed places, so it needs a root.
func TestAuthSlurm(t *testing.T) {
	if *built == "" {
		t.Skip("TestNewerSlurm runs it")
	}
	byTokens(t, slurmtest.Options{Nodes: 4, AuthSlurm: true}, account(t, "slurm"))
}

// byTokens has a job evolve on a site with auth: jwt, while others come with tokens that expired or are of another cluster.
func byTokens(t *testing.T, o slurmtest.Options, sidecar *slurmctl.User) {
	key := rand.Text() + rand.Text()
	o.ExtraConf, o.Secrets = "AuthAltTypes=auth/jwt\nAuthAltParameters=jwt_key=@DIR@/jwt.key", map[string]string{"jwt.key": key}
	file, err := os.CreateTemp("", "jwt.key") // not of the test: other users do not get there
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.Remove(file.Name()) })
	_, err = file.WriteString(key)
	if sidecar != nil {
		err = errors.Join(err, file.Chown(int(sidecar.UID), int(sidecar.GID)))
	}
	if err := errors.Join(err, file.Close()); err != nil {
		t.Fatal(err)
	}
	s := newSite(t, o, sidecar, "auth: jwt", "jwt:\n  key: "+file.Name())
	if _, err := os.Stat(s.Cluster.MungeSocket()); (err != nil) != o.AuthSlurm {
		t.Fatal("munged:", err)
	}
	id := s.submit(s.script("evolve.sh", evolve))
	token := func(lifespan string) string {
		out, errs, err := s.As(0, "scontrol", "token", "lifespan="+lifespan)
		if err != nil {
			t.Fatal(errs)
		}
		return strings.TrimPrefix(strings.TrimSpace(out), "SLURM_JWT=")
	}
	expired, good := token("1"), token("1000")
	public := good[:strings.LastIndexByte(good, '.')]
	mac := hmac.New(sha256.New, []byte("another key"))
	mac.Write([]byte(public))
	foreign := public + "." + base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
	time.Sleep(2 * time.Second) // Slurm counts whole seconds

	const noted = "evosbatch: slurmctld refuses SLURM_JWT"
	const submit = "; evosbatch --profile=1@2s,2@2s --wrap=true"
	for _, c := range []struct {
		token, command string
		want           []string
	}{
		{"", "evosctl doctor", []string{"auth: jwt; slurmctld makes one"}},
		{good, "evosctl doctor", []string{"auth: jwt; SLURM_JWT is used"}},
		{expired, "evosctl doctor" + submit, []string{"auth: jwt; slurmctld makes one", "SLURM_JWT  ", noted, ": it expired at ", "; unset it"}},
		{foreign, "evosctl doctor" + submit, []string{"SLURM_JWT is of another cluster (then unset it)", noted, ": it is not of this cluster; unset it"}},
	} {
		out, errs, _ := s.As(0, "sh", "-c", "export SLURM_JWT="+c.token+"; "+c.command)
		for _, want := range c.want {
			if !strings.Contains(out+errs, want) {
				t.Errorf("%q is not said with %q:\n%s%s", want, c.token, out, errs)
			}
		}
	}
	late, err := api.NewClient(s.Address, api.Munge{})
	s.must(err)
	late.ClusterName = func(context.Context) (string, error) { return "slurmtest", nil }
	late.Token = func(context.Context) (string, error) { return expired, nil }
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if _, err := late.Status(ctx); err == nil || !strings.Contains(err.Error(), "the token of games expired at") || !strings.Contains(err.Error(), "unset SLURM_JWT") {
		t.Errorf("with a token that expired: %v", err)
	}
	if got := messages(s.output(id)); !slices.Equal(got, evolved) {
		t.Errorf("the job printed %q", got)
	}
	s.stop(syscall.SIGTERM)
}
