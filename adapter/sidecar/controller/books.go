package controller

import (
	"context"
	"errors"
	"fmt"

	"github.com/sirupsen/logrus"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/store"
	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// The database may refuse for a while: the disk is full, or the file system became read-only. Slurm
// has the nodes, so the loop and the jobs continue. What could not be written is kept, in order,
// and written later. Until then, no change is requested from Slurm, because none could be recorded
// first.

// books writes the core's rows to the database.
type books struct {
	store    *store.Store
	log      *logrus.Logger
	ctx      context.Context
	kept     [][]msg.Effect // effects not yet written
	alive    func()         // called while many rows are written, if set
	refusing bool
	broken   error // the database is malformed
}

// mostKept bounds the steps whose rows wait for the database.
const mostKept = 100_000

// write writes the rows and intents of a step, after everything that was kept, in one transaction.
// It reports whether intents could not be written.
func (b *books) write(effects []msg.Effect) (unwritten bool) {
	var rows, intents []msg.Effect
	for _, e := range effects {
		switch e := e.(type) {
		case msg.Write:
			rows = append(rows, e)
		case msg.Task:
			if e.Intent != nil {
				intents = append(intents, e)
			}
		}
	}
	if !b.catchUp() {
		b.keep(rows)
		return len(intents) > 0
	}
	if len(rows)+len(intents) == 0 {
		return false
	}
	err := b.transact(append(rows[:len(rows):len(rows)], intents...))
	switch {
	case err == nil:
		return false
	case store.Refuses(err):
		b.keep(rows)
		return len(intents) > 0
	}
	// one of them is refused for good: the others are not to suffer
	for _, e := range append(rows, intents...) {
		if err := b.transact([]msg.Effect{e}); err != nil {
			_, task := e.(msg.Task)
			unwritten = unwritten || task
		}
	}
	return unwritten
}

// catchUp writes what was kept. It reports whether the books are up to date.
func (b *books) catchUp() bool {
	for len(b.kept) > 0 {
		if err := b.transact(b.kept[0]); store.Refuses(err) {
			return false
		}
		b.kept = b.kept[1:] // it would be no better the next time
		if b.alive != nil {
			b.alive()
		}
	}
	if b.refusing {
		b.refusing = false
		b.log.Info("the database takes entries again; the books are up to date")
	}
	return true
}

// keep keeps the rows of a step.
func (b *books) keep(rows []msg.Effect) {
	if len(rows) > 0 {
		b.kept = append(b.kept, rows)
		b.kept = b.kept[max(len(b.kept)-mostKept, 0):]
	}
}

// transact writes all of a list or nothing.
func (b *books) transact(list []msg.Effect) error {
	err := b.store.Together(b.ctx, func(tx *store.Store) error {
		plans := map[int64][]store.Span{}
		for _, e := range list {
			if p, ok := e.(msg.SavePlan); ok {
				plans[p.Job] = p.Plan
				continue
			}
			if err := b.writeOne(tx, e); err != nil {
				return err
			}
		}
		if len(plans) == 0 {
			return nil
		}
		return tx.SetPlans(b.ctx, plans)
	})
	b.check(err)
	return err
}

func (b *books) writeOne(tx *store.Store, e msg.Effect) error {
	ctx := b.ctx
	switch e := e.(type) {
	case msg.AddJob:
		return addJob(ctx, tx, e)
	case msg.SaveJob:
		return tx.UpdateJob(ctx, &e.Job)
	case msg.SaveProfile:
		return tx.SetProfile(ctx, e.Job, e.Profile)
	case msg.SaveParts:
		return tx.SetParts(ctx, e.Job, e.Parts)
	case msg.SaveAllocation:
		return tx.SetAllocation(ctx, e.Job, e.Step, e.At, e.Nodes, e.NodeList)
	case msg.AddEvent:
		return tx.AddEvent(ctx, e.Job, e.At, e.Kind, e.Detail)
	case msg.SaveHold:
		return tx.SaveHold(ctx, e.Hold)
	case msg.SavePromise:
		return tx.SavePromise(ctx, e.Promise)
	case msg.SaveDelay:
		return tx.SaveDelay(ctx, e.Delay)
	case msg.SaveGrowDelay:
		return tx.SaveGrowDelay(ctx, e.Row)
	case msg.SaveEpilog:
		return tx.SaveEpilog(ctx, e.Row)
	case msg.SaveArrivals:
		return tx.SaveArrivals(ctx, e.Row)
	case msg.Settle:
		return tx.Settle(ctx, e.Intent, e.At, e.Err)
	case msg.Task:
		_, err := tx.Intend(ctx, *e.Intent)
		return err
	}
	return fmt.Errorf("database: unknown entry %T", e)
}

// addJob writes a new job, or one that was considered ended.
func addJob(ctx context.Context, tx *store.Store, e msg.AddJob) error {
	job := e.Job
	err := tx.UpdateJob(ctx, &job)
	if !e.Again {
		err = tx.AddJob(ctx, &job)
	}
	if err == nil {
		err = tx.SetParts(ctx, job.ID, e.Parts)
	}
	if err == nil && e.Bound != "" {
		err = tx.SetBound(ctx, job.ID, e.Bound)
	}
	return err
}

// check reports an error of the store; one that lasts, once.
func (b *books) check(err error) {
	if err == nil || errors.Is(err, context.Canceled) {
		return
	}
	if store.Refuses(err) {
		if b.refusing {
			return
		}
		b.refusing = true
	}
	if store.Malformed(err) && b.broken == nil {
		b.broken = err
	}
	b.log.WithError(err).Error("the database refuses")
}

// read reads all that the core starts from.
func (b *books) read() (all msg.Books, err error) {
	ctx, st := b.ctx, b.store
	active, err := st.ActiveJobs(ctx)
	if err != nil {
		return all, err
	}
	if all.Active, err = b.readJobs(active); err != nil {
		return all, err
	}
	for i, j := range all.Active {
		if all.Active[i].Open, err = b.open(j.Job); err != nil {
			return all, err
		}
	}
	ended, err := st.EndedJobs(ctx, msg.MostEnded)
	if err != nil {
		return all, err
	}
	if all.Ended, err = b.readJobs(ended); err != nil {
		return all, err
	}
	if all.Known, all.LastRow, err = st.Known(ctx); err != nil {
		return all, err
	}
	if all.Holds, all.LastHold, err = st.OpenHolds(ctx); err != nil {
		return all, err
	}
	if all.Delays, err = st.OpenDelays(ctx); err != nil {
		return all, err
	}
	if all.Epilogs, err = st.Epilogs(ctx); err != nil {
		return all, err
	}
	if all.Arrivals, err = st.Arrivals(ctx); err != nil {
		return all, err
	}
	if all.GrowDelays, err = st.GrowDelays(ctx); err != nil {
		return all, err
	}
	if all.Intents, err = st.OpenIntents(ctx); err != nil {
		return all, err
	}
	all.LastIntent, err = st.LastIntent(ctx)
	return all, err
}

// open returns the open promise of a job's next growth.
func (b *books) open(j store.Job) (row.Promise, error) {
	promises, err := b.store.Promises(b.ctx, j.ID)
	for _, p := range promises {
		if p.Outcome == "" && p.Step == j.Step+1 {
			return p, err
		}
	}
	return row.Promise{}, err
}

// readJobs reads the database's jobs.
func (b *books) readJobs(rows []*store.Job) ([]msg.BookedJob, error) {
	all := make([]msg.BookedJob, len(rows))
	for i, r := range rows {
		j := msg.BookedJob{Job: *r}
		var err error
		if j.Plan, err = b.store.Plan(b.ctx, r.ID); err != nil {
			return nil, err
		}
		if j.Past, err = b.store.Allocations(b.ctx, r.ID); err != nil {
			return nil, err
		}
		if j.Parts, err = b.store.Parts(b.ctx, r.ID); err != nil {
			return nil, err
		}
		if j.Bound, err = b.store.Bound(b.ctx, r.ID); err != nil {
			return nil, err
		}
		for _, p := range j.Plan {
			if _, err := slurmctl.ExpandNodes(p.NodeList); err != nil {
				return nil, fmt.Errorf("plan of job %d: %w", r.SlurmID, err)
			}
		}
		for _, p := range j.Parts {
			if _, err := slurmctl.ExpandNodes(p.NodeList); err != nil {
				return nil, fmt.Errorf("parts of job %d: %w", r.SlurmID, err)
			}
		}
		all[i] = j
	}
	return all, nil
}
