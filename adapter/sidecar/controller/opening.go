package controller

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/evoslurm/evoslurm/adapter/sidecar/store"
)

// OpenStore opens the database and reads what a Controller starts from. It moves a malformed
// database aside and keeps it; the new one begins empty, and the core adopts all jobs from Slurm.
func OpenStore(ctx context.Context, path string, log *logrus.Logger) (*store.Store, error) {
	st, err := openSound(ctx, path, log)
	if !store.Malformed(err) {
		return st, err
	}
	why, now := err.Error(), time.Now()
	aside, failed := store.SetAside(path, now)
	if failed != nil {
		return nil, errors.Join(err, failed)
	}
	log.WithError(err).WithFields(logrus.Fields{"database": path, "kept": aside}).
		Error("THE DATABASE IS MALFORMED: it was moved aside, and a new one begins; jobs are adopted from Slurm, the history before is only in the old file")
	if st, err = openSound(ctx, path, log); err != nil {
		return nil, err
	}
	detail := map[string]string{"why": why, "kept": aside}
	if err := st.AddEvent(ctx, 0, now, "database replaced", detail); err != nil {
		st.Close()
		return nil, err
	}
	return st, nil
}

// openSound opens the database and reads all of its rows that a start needs.
func openSound(ctx context.Context, path string, log *logrus.Logger) (*store.Store, error) {
	st, err := store.Open(ctx, path)
	if err != nil {
		return nil, err
	}
	b := books{store: st, log: log, ctx: ctx}
	_, err = b.read()
	if err == nil {
		_, err = st.Settings(ctx)
	}
	if err != nil {
		st.Close()
		return nil, fmt.Errorf("database %s: %w", path, store.MarkMalformed(ctx, err))
	}
	return st, nil
}
