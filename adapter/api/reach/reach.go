// Package reach makes clients of the configured sidecar. It gives them what they must know without
// asking the sidecar: the cluster, and the users that the sidecar may run as.
package reach

import (
	"context"
	"os"
	"os/user"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/internal/certs"
	"github.com/evoslurm/evoslurm/adapter/internal/config"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// Client makes a client of the configured sidecar.
func Client(site config.Config) (*api.Client, error) {
	k := &knowledge{account: site.SidecarUser, slurm: &slurmctl.Client{Dir: site.Slurm.Bin, Timeout: site.Slurm.Timeout}}
	return k.client(site)
}

// client makes a client of a sidecar.
func (k *knowledge) client(site config.Config) (*api.Client, error) {
	client, err := api.NewClient(site.API, api.Munge{Socket: site.Munge.Socket})
	if err != nil {
		return nil, err
	}
	if strings.Contains(site.API, "https://") {
		cfg, err := certs.Client(site.TLS).Config()
		if err != nil {
			return nil, err
		}
		client.UseTLS(cfg)
	}
	client.ClusterName, client.Trusts = k.cluster, k.trusts
	if site.Auth == config.AuthJWT {
		client.Token = Tokens(k.slurm).Get
	}
	return client, nil
}

// tokenLife is how long a token is asked for. A command needs it for a moment; one that waits asks again.
const tokenLife = 30 * time.Minute

// Tokens returns the caller's tokens: SLURM_JWT while it is good, else slurmctld makes them.
func Tokens(slurm *slurmctl.Client) *api.Tokens {
	return &api.Tokens{Given: os.Getenv("SLURM_JWT"), Make: func(ctx context.Context) (string, error) { return slurm.Token(ctx, tokenLife) }}
}

// RefusedToken returns why slurmctld refuses SLURM_JWT, and so each of Slurm's own commands that have it, and what to do; "" if it
// does not, or does not answer otherwise.
func RefusedToken(ctx context.Context, slurm *slurmctl.Client) string {
	token := os.Getenv("SLURM_JWT")
	if token == "" || slurm.TryToken(ctx, token) == nil {
		return ""
	}
	why := "it is not of this cluster"
	if ends, err := api.TokenExpires(token); err == nil && !time.Now().Before(ends) {
		why = "it expired at " + ends.Format(time.DateTime)
	} else if _, err := slurm.Config(ctx); err != nil {
		return ""
	}
	return "slurmctld refuses SLURM_JWT, with which all commands of Slurm then fail: " + why + "; unset it, or replace it by what \"env -u SLURM_JWT scontrol token\" prints"
}

// knowledge is looked up on first use and then kept.
type knowledge struct {
	account string // of the sidecar, as configured
	slurm   *slurmctl.Client

	mu        sync.Mutex
	name      string
	slurmUser *uint32
}

// cluster names the cluster.
func (k *knowledge) cluster(ctx context.Context) (string, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.name != "" {
		return k.name, nil
	}
	var err error
	k.name, err = k.slurm.ClusterName(ctx, os.Getenv)
	return k.name, err
}

// trusts reports whether the sidecar may run as a user: the configured account or SlurmUser.
func (k *knowledge) trusts(ctx context.Context, uid uint32) (bool, error) {
	if k.account != "" {
		u, err := user.Lookup(k.account)
		if err == nil && u.Uid == strconv.FormatUint(uint64(uid), 10) {
			return true, nil
		}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.slurmUser == nil {
		cfg, err := k.slurm.Config(ctx)
		if err != nil {
			return false, err
		}
		_, slurmUser, err := cfg.SlurmUser()
		if err != nil {
			return false, err
		}
		k.slurmUser = &slurmUser
	}
	return uid == *k.slurmUser, nil
}
