package controller

import (
	"context"
	"errors"
	"time"

	"github.com/evoslurm/evoslurm/adapter/store"
)

// The database may refuse for a while: the disk is full, or the file system was made
// read-only. Slurm has the nodes, so the loop goes on and jobs do. What could not be
// written is kept, in order, and written once it can be; until then no change is asked
// of Slurm, since none could be written down before.

// entry is one write.
type entry func(*store.Store) error

// mostKept bounds the batches of entries that wait for the database.
const mostKept = 100_000

// write writes an entry, within together with all that belongs to it.
func (c *Controller) write(e entry) {
	if c.batch == nil {
		c.writeOut([]entry{e})
		return
	}
	*c.batch = append(*c.batch, e)
}

// together makes all that f writes one transaction, so that no crash leaves the books
// half kept.
func (c *Controller) together(f func()) {
	if c.batch != nil {
		f() // part of a larger one
		return
	}
	var batch []entry
	c.batch = &batch
	defer func() { c.batch = nil }()
	f()
	c.writeOut(batch)
}

// writeOut writes what was kept, then a new batch. It says whether the books are up
// to date.
func (c *Controller) writeOut(batch []entry) bool {
	if len(batch) > 0 {
		c.kept = append(c.kept, batch)
	}
	for len(c.kept) > 0 {
		err := c.store.Together(c.ctx, func(tx *store.Store) error {
			for _, e := range c.kept[0] {
				if err := e(tx); err != nil {
					return err
				}
			}
			return nil
		})
		if store.Refuses(err) {
			c.check(err)
			c.kept = c.kept[max(len(c.kept)-mostKept, 0):]
			return false
		}
		c.check(err) // it would be no better the next time
		c.kept = c.kept[1:]
	}
	if c.refusing {
		c.refusing = false
		c.log.Info("the database takes entries again; the books are up to date")
	}
	return true
}

// check reports an error of the store; one that lasts, once.
func (c *Controller) check(err error) {
	if err == nil || errors.Is(err, context.Canceled) {
		return
	}
	if store.Refuses(err) {
		if c.refusing {
			return
		}
		c.refusing = true
	}
	c.log.WithError(err).Error("the database refuses")
}

// intend writes down what is to be asked of Slurm; false if it cannot be.
func (c *Controller) intend(j *job, action, detail string) (intent int64, ok bool) {
	if c.writeOut(nil) {
		var err error
		if intent, err = c.store.Intend(c.ctx, j.ID, time.Now(), action, detail); err == nil {
			return intent, true
		}
		c.check(err)
	}
	j.retryAt = time.Now().Add(time.Second)
	j.reason = "waits for the sidecar's database, which cannot be written at present"
	return 0, false
}

// settle writes what became of an intent.
func (c *Controller) settle(intent int64, err error) {
	now := time.Now()
	c.write(func(tx *store.Store) error { return tx.Settle(c.ctx, intent, now, err) })
}

// event appends to the event log.
func (c *Controller) event(j *job, kind string, detail any) {
	id, now := int64(0), time.Now()
	if j != nil {
		id = j.ID
	}
	c.write(func(tx *store.Store) error { return tx.AddEvent(c.ctx, id, now, kind, detail) })
}

// save writes a job as it is now.
func (c *Controller) save(j *job) {
	row := *j.Job
	c.write(func(tx *store.Store) error { return tx.UpdateJob(c.ctx, &row) })
}

// saveParts writes which Slurm jobs the job consists of.
func (c *Controller) saveParts(j *job) {
	id, parts := j.ID, j.parts()
	c.write(func(tx *store.Store) error { return tx.SetParts(c.ctx, id, parts) })
}

// saveAllocation writes what the job holds from then on.
func (c *Controller) saveAllocation(j *job, at time.Time, nodes int, list string) {
	id, step := j.ID, j.Step
	c.write(func(tx *store.Store) error { return tx.SetAllocation(c.ctx, id, step, at, nodes, list) })
}

// addJob writes a new job, or again one that was taken for ended, with all that is
// known of it.
func (c *Controller) addJob(j *job, detail map[string]any) error {
	return c.store.Together(c.ctx, func(tx *store.Store) error {
		kind, row := "adopted", j.Job
		known, err := tx.JobBySlurmID(c.ctx, row.SlurmID)
		if err == nil && known.Submitted.Equal(row.Submitted) {
			row.ID, kind = known.ID, "adopted again"
			err = tx.UpdateJob(c.ctx, row)
		} else {
			err = tx.AddJob(c.ctx, row)
		}
		if err == nil {
			err = tx.SetParts(c.ctx, row.ID, j.parts())
		}
		if err == nil && j.bound != "" {
			err = tx.SetBound(c.ctx, row.ID, j.bound)
		}
		if err == nil {
			err = tx.AddEvent(c.ctx, row.ID, time.Now(), kind, detail)
		}
		return err
	})
}
