package controller

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/internal/config"
	"github.com/evoslurm/evoslurm/adapter/sidecar/store"
)

const drainKey = "drain"

// Drain implements api.Backend.
func (c *Controller) Drain(ctx context.Context, req *api.DrainRequest, caller string) (api.Drain, error) {
	if c.cfg.Observes() {
		return api.Drain{}, api.Errorf(api.ErrConflict, "the sidecar observes: it drives nothing, and gives nothing up (evosctl release-all --direct does)")
	}
	text, err := drainText(req, caller, time.Now())
	if err != nil {
		return api.Drain{}, api.Errorf(api.ErrInvalid, "%v", err)
	}
	if err := c.change(ctx, caller, func(_, configured config.Config) (map[string]string, error) {
		if req == nil && configured.Drain != "" {
			return nil, api.Errorf(api.ErrConflict, "the configuration has drain: %q; change it there, and have it read again (systemctl reload evoslurmd)", configured.Drain)
		}
		return map[string]string{drainKey: string(text)}, nil
	}); err != nil {
		return api.Drain{}, err
	}
	s := c.view.Load().Status
	if s.Drain == nil {
		return api.Drain{}, nil
	}
	return *s.Drain, nil
}

// drainText returns the setting for a request; nil resumes.
func drainText(req *api.DrainRequest, caller string, now time.Time) (config.Drain, error) {
	if req == nil {
		return "", nil
	}
	text := "drain"
	if req.Release {
		text = "release"
	}
	for key, value := range map[string]string{"queued": req.Queued, "as": req.As, "running": req.Running} {
		if value != "" {
			text += " " + key + "=" + value
		}
	}
	d, err := config.Drain(text).Parse()
	d.By, d.At = caller, now
	return d.Text(), err
}

// takeDrain takes over that evosctl drained the sidecar while it was not running (--direct): the file says how.
func takeDrain(ctx context.Context, st *store.Store, cfg config.Config, log *logrus.Logger) error {
	file := config.DrainFile(cfg.Database)
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	var d config.Drained
	if err == nil {
		d, err = config.Drain(text).Parse()
	}
	if err != nil {
		log.WithError(err).WithField("file", file).Warn("cannot read how the sidecar was drained; it is drained")
		d.Release = false
	}
	value, err := json.Marshal(d.Text())
	if err == nil {
		err = st.SetSetting(ctx, store.Setting{Key: drainKey, Value: value, By: d.By, At: time.Now().Truncate(time.Second), Instead: string(cfg.Drain)})
	}
	if err != nil {
		return err
	}
	return os.Remove(file)
}
