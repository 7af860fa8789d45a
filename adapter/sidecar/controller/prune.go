package controller

import (
	"context"
	"time"
)

const (
	// pruneEvery is how often rows that are too old or too many are deleted.
	pruneEvery = 6 * time.Hour
	// pruneShare is how many times as long as a piece takes it is waited before the next one.
	pruneShare = 4
)

// prune keeps the database within its bounds until ctx ends, beside the loop.
func (c *Controller) prune(ctx context.Context) {
	ticker := time.NewTicker(pruneEvery)
	defer ticker.Stop()
	for {
		_, now := c.settings.current()
		var before time.Time
		if now.Retention > 0 {
			before = time.Now().Add(-now.Retention)
		}
		deleted, last := 0, time.Now()
		err := c.store.Prune(ctx, before, func(rows int) error {
			deleted += rows
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(pruneShare * time.Since(last)):
			}
			last = time.Now()
			return nil
		})
		if err != nil && ctx.Err() == nil {
			c.log.WithError(err).Warn("cannot delete old rows of the database")
		}
		if deleted > 0 {
			c.log.WithField("rows", deleted).Info("old rows of the database deleted")
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}
