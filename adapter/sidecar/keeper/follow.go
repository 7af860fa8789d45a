package keeper

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/google/renameio/v2"
	"github.com/sirupsen/logrus"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/sidecar/store"
)

const (
	followEvery = 2 * time.Second
	followLimit = 20 * time.Second // of a request
	copyEvery   = time.Minute
	copyShare   = 20 // a copy takes at most this part of the time
)

// Follower fetches what only the database of the sidecar that acts knows. While it runs, no process may have the
// database open.
type Follower struct {
	Client   *api.Client
	Database string
	Host     string
	Version  string
	Log      *logrus.Logger

	settings []byte
	told     string
}

// Run fetches the settings every other second and the database every minute, until ctx ends.
func (f *Follower) Run(ctx context.Context) {
	next := time.Now()
	for ctx.Err() == nil {
		err := f.fetchSettings(ctx)
		if err == nil && !time.Now().Before(next) {
			began := time.Now()
			err = f.fetchDatabase(ctx)
			next = time.Now().Add(max(copyEvery, copyShare*time.Since(began)))
		}
		if ctx.Err() != nil {
			return
		}
		f.tell(err)
		select {
		case <-ctx.Done():
		case <-time.After(followEvery):
		}
	}
}

// tell logs a failure, unless it is the same as before.
func (f *Follower) tell(err error) {
	text := ""
	if err != nil {
		text = err.Error()
	}
	switch {
	case text == f.told:
		return
	case err == nil:
		f.Log.Info("following the sidecar that acts: its settings and its database are copied")
	default:
		f.Log.WithError(err).Warn("the sidecar that acts cannot be followed: if this one takes over now, it finds all jobs in Slurm, but misses the latest settings and history")
	}
	f.told = text
}

// ship asks the sidecar that acts, and keeps its settings, which are in each answer.
func (f *Follower) ship(ctx context.Context, r api.ShipRequest) (api.Shipment, error) {
	ctx, done := context.WithTimeout(ctx, followLimit)
	defer done()
	if name := f.Client.ClusterName; name != nil {
		var err error
		if r.Cluster, err = name(ctx); err != nil {
			return api.Shipment{}, err
		}
	}
	r.Host, r.Version, r.Settings = f.Host, f.Version, api.SettingsSum(f.settings)
	s, err := f.Client.Ship(ctx, r)
	if err != nil || bytes.Equal(s.Settings, f.settings) {
		return s, err
	}
	if err := json.Unmarshal(s.Settings, &[]store.Setting{}); err != nil {
		return s, fmt.Errorf("the settings of the sidecar that acts: %w", err)
	}
	if err := renameio.WriteFile(settingsFile(f.Database), s.Settings, 0o600); err != nil {
		return s, err
	}
	f.settings = s.Settings
	return s, nil
}

// settingsFile holds the settings of the sidecar that acts, until this one takes over.
func settingsFile(database string) string { return database + ".settings" }

// fetchSettings fetches the settings until the sidecar that acts knows that this one has them.
func (f *Follower) fetchSettings(ctx context.Context) error {
	for {
		had := f.settings
		if _, err := f.ship(ctx, api.ShipRequest{Copy: -1}); err != nil || bytes.Equal(had, f.settings) {
			return err
		}
	}
}

// fetchDatabase replaces the database by a copy.
func (f *Follower) fetchDatabase(ctx context.Context) error {
	path := f.Database + ".next"
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	defer file.Close()
	var at, number int64
	for {
		s, err := f.ship(ctx, api.ShipRequest{Copy: number, Offset: at})
		if err != nil {
			return err
		}
		if number = s.Copy; len(s.Piece) == 0 && at < s.Size {
			return errors.New("the copy of the database ended early")
		}
		if _, err := file.WriteAt(s.Piece, at); err != nil {
			return err
		}
		if at += int64(len(s.Piece)); at >= s.Size {
			break
		}
	}
	if err := errors.Join(file.Sync(), file.Close()); err != nil {
		return err
	}
	return store.Install(ctx, path, f.Database)
}

// Apply puts the settings that a Follower has seen in the place of those in the database.
func Apply(ctx context.Context, st *store.Store, database string) error {
	text, err := os.ReadFile(settingsFile(database))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	var settings []store.Setting
	if err == nil {
		err = json.Unmarshal(text, &settings)
	}
	if err == nil {
		err = st.Together(ctx, func(tx *store.Store) error {
			old, err := tx.Settings(ctx)
			errs := []error{err}
			for _, set := range old {
				errs = append(errs, tx.SetSetting(ctx, store.Setting{Key: set.Key}))
			}
			for _, set := range settings {
				errs = append(errs, tx.SetSetting(ctx, set))
			}
			return errors.Join(errs...)
		})
	}
	if err != nil {
		return fmt.Errorf("the settings of the sidecar that acted before: %w", err)
	}
	return os.Remove(settingsFile(database))
}
