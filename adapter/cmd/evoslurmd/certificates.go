package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/internal/certs"
	"github.com/evoslurm/evoslurm/adapter/internal/config"
	"github.com/evoslurm/evoslurm/adapter/internal/strict"
)

// pairs holds the files of the addresses that have TLS, by section of the configuration.
type pairs map[string]*certs.Files

func certificates(cfg config.Config) pairs {
	all := pairs{}
	if cfg.Listen.Certificate != "" {
		all["listen"] = &certs.Files{Certificate: cfg.Listen.Certificate, Key: cfg.Listen.Key, Authority: cfg.Listen.ClientCA}
	}
	if cfg.Web.Certificate != "" {
		all["web"] = &certs.Files{Certificate: cfg.Web.Certificate, Key: cfg.Web.Key}
	}
	return all
}

// tokens returns the key of callers by token; nil if there are none. Whether its owner is SlurmUser is known only once slurmctld
// has answered: until then the file may belong to another user.
func tokens(cfg config.Config, slurmUser func() uint32) (*api.Keys, error) {
	if cfg.JWT.Key == "" {
		return nil, nil
	}
	keys := &api.Keys{File: cfg.JWT.Key, SlurmUser: slurmUser}
	if _, err := keys.Key(); err != nil && !errors.As(err, new(strict.OwnerError)) {
		return nil, fmt.Errorf("jwt.key: %w", err)
	}
	return keys, nil
}

// trouble lists what an administrator must do.
func (p pairs) trouble() (all []error) {
	for _, section := range []string{"listen", "web"} {
		if files := p[section]; files != nil {
			if err := files.Trouble(time.Now()); err != nil {
				all = append(all, fmt.Errorf("%s.certificate: %w", section, err))
			}
		}
	}
	return all
}

// How often certificates are looked at, and how often the same trouble is logged.
const (
	lookEvery = time.Minute
	tellEvery = 24 * time.Hour
)

// watch logs trouble when it begins, and once a day.
func (p pairs) watch(ctx context.Context, log logrus.FieldLogger) error {
	if len(p) == 0 {
		return nil
	}
	told := map[string]time.Time{}
	for {
		for _, err := range p.trouble() {
			if text := err.Error(); time.Since(told[text]) >= tellEvery {
				told[text] = time.Now()
				log.WithError(err).Warn("renew a certificate")
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(lookEvery):
		}
	}
}
