package controller

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/user"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/config"
	"github.com/evoslurm/evoslurm/adapter/spec"
	"github.com/evoslurm/evoslurm/adapter/store"
	"github.com/evoslurm/evoslurm/adapter/strategy"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// Controller is the sidecar's loop and what it knows. Its exported methods are
// safe for concurrent use; all other state belongs to the goroutine of Run.
type Controller struct {
	cfg     config.Config
	slurm   *slurmctl.Client
	store   *store.Store
	log     *logrus.Logger
	version string
	self    string // user that the sidecar runs as
	root    bool

	strategies *strategy.Manager
	planning   *strategy.Cycle // within plan

	ctx     context.Context // of Run
	mail    chan func()
	gone    chan struct{} // closed when Run has returned
	actions sync.WaitGroup

	slurmConfig slurmctl.Config
	slurmUser   uint32
	configRead  time.Time
	drive       spec.Drive // what Auto gets here
	driveReason string

	active       []*job                  // not ended, oldest first
	ended        []*job                  // the last ones
	byID         map[slurmctl.JobID]*job // by base jobs, companions and links of chains
	snapshot     *snapshot
	reservations map[string]slurmctl.Reservation // as of the snapshot, and what was done since
	suspect      map[string]time.Time            // nodes on which Slurm starts nothing, until when
	unsaved      map[*job]bool                   // whose plans are to be written
	heldSince    map[string]time.Time            // when a hold was made or got its nodes
	refused      map[slurmctl.JobID]api.Job      // jobs with a marker that are not adopted
	nextCycle    time.Time
	rest         time.Time            // no look at Slurm before
	mirrored     int                  // where mirror goes on
	leaks        map[string]time.Time // since when nodes are allocated to nobody
	leaked       []string             // those of them that were told of
	healed       time.Time            // when that was last tried
	cycleCalls   int
	lastErr      error
	refusal      error // the database's last one
	batched      bool  // within together
	started      time.Time

	view atomic.Pointer[view] // what the API shows
}

// New makes a controller. It acts on nothing before Run.
func New(cfg config.Config, slurm *slurmctl.Client, st *store.Store, log *logrus.Logger, version string) (*Controller, error) {
	c := &Controller{slurm: slurm, store: st, log: log, version: version, mail: make(chan func(), 64), gone: make(chan struct{}),
		byID: map[slurmctl.JobID]*job{}, reservations: map[string]slurmctl.Reservation{}, heldSince: map[string]time.Time{},
		refused: map[slurmctl.JobID]api.Job{}, unsaved: map[*job]bool{}, suspect: map[string]time.Time{}, leaks: map[string]time.Time{}, started: time.Now(), root: os.Geteuid() == 0}
	if u, err := user.Current(); err == nil {
		c.self = u.Username
	}
	c.cfg = cfg
	strategies, err := strategy.New(cfg.Strategies, cfg.Strategy, log)
	if err != nil {
		return nil, fmt.Errorf("strategy: %w", err)
	}
	c.strategies = strategies
	c.view.Store(&view{status: api.Status{Version: version, Started: c.started, Strategy: c.strategies.Name()}})
	return c, nil
}

// Run runs the loop until ctx is done. Actions that are under way are then let
// finish, for at most the deadline of a Slurm command. Jobs go on without it.
func (c *Controller) Run(ctx context.Context) error {
	defer close(c.gone)
	defer c.strategies.Close()
	work, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	c.ctx = work
	if err := c.load(); err != nil {
		return err
	}
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return c.finish(stop)
		case f := <-c.mail:
			f()
			c.drainMail()
			if c.snapshot != nil && time.Now().Before(c.nextCycle) {
				c.act(c.snapshot)
				c.savePlans()
				c.publish()
			}
		case <-timer.C:
		}
		if now := time.Now(); !now.Before(c.nextCycle) && !now.Before(c.rest) {
			c.cycle()
		}
		timer.Reset(max(time.Until(c.wakeAt()), time.Millisecond))
	}
}

// finish lets running actions post their outcome, then wakes whoever still waits.
func (c *Controller) finish(stop context.CancelFunc) error {
	done := make(chan struct{})
	go func() { c.actions.Wait(); close(done) }()
	late := time.After(c.cfg.Slurm.Timeout)
	for {
		select {
		case f := <-c.mail:
			f()
			continue
		case <-late:
			stop()
			continue
		case <-done:
		}
		break
	}
	c.drainMail()
	for _, j := range c.active {
		j.notify()
	}
	return nil
}

func (c *Controller) drainMail() {
	for {
		select {
		case f := <-c.mail:
			f()
		default:
			return
		}
	}
}

// post runs f on the loop's goroutine.
func (c *Controller) post(f func()) { c.mail <- f }

// call runs f on the loop's goroutine and waits for its answer.
func call[T any](ctx context.Context, c *Controller, f func() T) (answer T) {
	done := make(chan T, 1)
	select {
	case c.mail <- func() { done <- f() }:
	case <-c.gone:
		return answer
	case <-ctx.Done():
		return answer
	}
	select {
	case answer = <-done:
	case <-c.gone:
	case <-ctx.Done():
	}
	return answer
}

// fast is the time between two looks while an application waits for nodes, or a
// job that was let go is about to run.
const fast = 250 * time.Millisecond

// fastFor is for how long after a start or growth is due the loop looks more often.
const fastFor = 10 * time.Second

// cycle is one round of observe, adopt, follow, plan, hold and act.
func (c *Controller) cycle() {
	before, l := c.slurm.Calls(), newLaps()
	c.nextCycle = time.Now().Add(c.cfg.PollInterval)
	s, err := c.look()
	if err != nil {
		if c.lastErr == nil {
			c.log.WithError(err).Error("Slurm cannot be observed; nothing is changed until it can")
		}
		c.lastErr = err
		c.nextCycle = time.Now().Add(max(c.cfg.PollInterval, time.Second))
		c.publish()
		return
	}
	c.spare(time.Since(s.taken))
	if c.lastErr != nil {
		c.log.Info("Slurm can be observed again")
		c.lastErr = nil
	}
	c.snapshot = s
	c.reservations = maps.Clone(s.reservations)
	l.lap("observe")
	c.adopt(s)
	c.follow(s)
	c.followPlans(s)
	l.lap("follow")
	c.plan(s)
	l.lap("plan")
	c.syncHolds(c.ctx, s)
	l.lap("holds")
	c.mirror(s)
	l.lap("mirror")
	c.clean(s)
	c.watchLeaks(s)
	c.act(s)
	l.lap("act")
	c.savePlans()
	l.lap("save")
	for _, j := range c.active {
		if due := j.due(); !due.IsZero() && time.Since(due) >= 0 && time.Since(due) < fastFor {
			c.nextCycle = time.Now().Add(min(fast, c.cfg.PollInterval))
		}
	}
	c.cycleCalls = int(c.slurm.Calls() - before)
	c.publish()
	l.lap("publish")
	l.log(c.log)
}

// spare sees that looks at Slurm, which take long where there are many jobs, leave
// slurmctld most of its time: a tenth of it as a rule, a quarter while something is
// due.
func (c *Controller) spare(look time.Duration) {
	now := time.Now()
	c.rest = now.Add(3 * look)
	if next := now.Add(9 * look); next.After(c.nextCycle) {
		c.nextCycle = next
	}
}

// look observes the cluster, and every now and then Slurm's configuration.
func (c *Controller) look() (*snapshot, error) {
	if time.Since(c.configRead) > 5*time.Minute {
		cfg, err := c.slurm.Config(c.ctx)
		if err != nil {
			return nil, err
		}
		merge, reasons := slurmctl.Capabilities(cfg)
		c.slurmConfig, c.configRead = cfg, time.Now()
		if _, c.slurmUser, err = cfg.SlurmUser(); err != nil {
			return nil, err
		}
		before := c.drive
		c.drive, c.driveReason = spec.Companion, joinWords(reasons)
		if merge {
			c.drive = spec.Merge
		}
		if c.drive != before {
			c.log.WithField("drive", c.drive).WithField("slurm", cfg.Version).Info("drive mode chosen: " + c.driveReason)
		}
	}
	return c.observe(c.ctx)
}

// wakeAt is when the loop has something to do, if nobody calls before.
func (c *Controller) wakeAt() time.Time {
	at := c.nextCycle
	now := time.Now()
	for _, j := range c.active {
		if due := j.due(); due.After(now) && due.Before(at) {
			at = due
			c.nextCycle = due
		}
	}
	if at.Before(c.rest) {
		return c.rest
	}
	return at
}

// do runs one action on a job beside the loop. The intent is written before, and
// settled with the outcome after; then result runs on the loop's goroutine. A
// failed action is tried again later, less and less often.
func (c *Controller) do(j *job, action, detail string, run func(context.Context) error, result func(error)) {
	intent, err := c.store.Intend(c.ctx, j.ID, time.Now(), action, detail)
	if err != nil {
		c.check(err)
		j.retryAt = time.Now().Add(time.Second)
		return // what cannot be written down is not done
	}
	j.busy = true
	c.actions.Add(1)
	go func() {
		defer c.actions.Done()
		begun := time.Now()
		err := run(c.ctx)
		c.post(func() {
			j.busy, j.touched = false, time.Now()
			entry := c.logJob(j).WithField("action", action).WithField("seconds", time.Since(begun).Seconds())
			c.together(func() {
				c.check(c.store.Settle(c.ctx, intent, time.Now(), err))
				if err != nil {
					j.failures++
					j.retryAt = time.Now().Add(min(250*time.Millisecond<<min(j.failures, 7), 30*time.Second))
					j.reason = action + " failed: " + err.Error()
					c.event(j, "failed", map[string]any{"action": action, "detail": detail, "error": err.Error()})
					entry.WithError(err).Warn("an action failed; it will be tried again")
				} else {
					j.failures, j.retryAt = 0, time.Time{}
					entry.Debug(detail)
				}
				result(err)
			})
			c.nextCycle = time.Now() // see what came of it
		})
	}()
}

// event appends to the event log.
func (c *Controller) event(j *job, kind string, detail any) {
	id := int64(0)
	if j != nil {
		id = j.ID
	}
	c.check(c.store.AddEvent(c.ctx, id, time.Now(), kind, detail))
}

// check reports an error of the store. Slurm holds the nodes, so the loop goes on.
func (c *Controller) check(err error) {
	if err == nil {
		return
	}
	c.refusal = err
	if !errors.Is(err, context.Canceled) {
		c.log.WithError(err).Error("the database refuses")
	}
}

// together writes all that f writes in one transaction, so that no crash leaves the
// books half kept. f must run no command.
func (c *Controller) together(f func()) {
	outer := c.store
	if c.batched {
		f() // part of a larger one
		return
	}
	c.batched = true
	defer func() { c.store, c.batched = outer, false }()
	c.check(outer.Together(c.ctx, func(tx *store.Store) error {
		c.store, c.refusal = tx, nil
		f()
		return c.refusal
	}))
}

func (c *Controller) save(j *job) { c.check(c.store.UpdateJob(c.ctx, j.Job)) }

func (c *Controller) logJob(j *job) *logrus.Entry {
	return c.log.WithFields(logrus.Fields{"job": j.SlurmID, "user": j.User, "step": j.Step})
}

// owner is the evolving job that a Slurm job belongs to, nil for a stock job.
func (c *Controller) owner(id slurmctl.JobID) *job { return c.byID[id] }

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

func joinWords(reasons []string) string {
	text := ""
	for i, r := range reasons {
		if i > 0 {
			text += "; "
		}
		text += r
	}
	return text
}
