package controller

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/user"
	"slices"
	"strings"
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
	host    string // on which it runs, without its domain
	root    bool

	strategies *strategy.Manager
	planning   *strategy.Cycle // within plan

	ctx      context.Context // of changes: goes on for a while when Run is to end
	lookCtx  context.Context // of looks: ends at once then
	stopping bool

	stopLooks context.CancelFunc

	mail chan func()
	gone chan struct{} // closed when Run has returned
	work work
	pace pace

	backfill backfill

	slurmConfig slurmctl.Config
	slurmUser   uint32
	configRead  time.Time
	ageing      slurmctl.Ageing
	calculated  time.Time  // Slurm's priorities, as far as was seen
	accrualRead time.Time  // see readAccrual
	drive       spec.Drive // what Auto gets here
	driveReason string

	active       []*job                    // not ended, oldest first
	ended        []*job                    // the last ones
	byID         map[slurmctl.JobID]*job   // by base jobs, companions and links of chains
	coming       map[slurmctl.JobID]uint32 // users of jobs that are to be adopted, or are by now
	snapshot     *snapshot
	reservations map[string]slurmctl.Reservation // as of the snapshot, and what was done since
	suspect      map[string]time.Time            // nodes on which Slurm starts nothing, until when
	unsaved      map[*job]bool                   // whose plans are to be written
	heldSince    map[string]time.Time            // when a hold was made or got its nodes
	refused      map[slurmctl.JobID]api.Job      // jobs with a marker that are not adopted
	holdNames    map[holdKey]string              // of reservations
	holdChanged  map[string]time.Time            // when a hold was last made, changed or given up here
	unwilling    map[string]bool                 // holds that Slurm refuses to change: made anew
	holdsOpen    bool                            // see cannotClose
	intruders    map[slurmctl.JobID]intrusion    // jobs in holds that are for others
	scripts      map[slurmctl.JobID]*script      // read, or being read, for adopt
	asked        map[slurmctl.JobID]*asked       // the same of requests
	rules        ruleBook                        // limits of accounts, QOS and partitions
	parksIn      map[string]bool                 // partitions and QOS whose plugins want expanders parked
	nextCycle    time.Time                       // the next look at Slurm is wanted then
	mirrored     int                             // where mirror goes on
	leaks        map[string]time.Time            // since when nodes are allocated to nobody
	leaked       []string                        // those of them that were told of
	healed       time.Time                       // when that was last tried
	calls        uint64                          // of Slurm's commands, until the last cycle
	cycleCalls   int                             // in it and since the one before
	laps         *laps                           // of the cycle under way
	lastErr      error
	batch        *[]entry  // within together
	kept         [][]entry // what the database has not taken yet
	refusing     bool      // the database
	started      time.Time
	tick         time.Time // when watchClock was last called
	awake        time.Time // since when the loop goes on without a pause
	stepped      time.Time // when the clock was, last
	countsFrom   time.Time // see countsStand

	power power
	view  atomic.Pointer[view] // what the API shows
}

// New makes a controller. It acts on nothing before Run.
func New(cfg config.Config, slurm *slurmctl.Client, st *store.Store, log *logrus.Logger, version string) (*Controller, error) {
	c := &Controller{slurm: slurm, store: st, log: log, version: version, mail: make(chan func(), 64), gone: make(chan struct{}),
		byID: map[slurmctl.JobID]*job{}, coming: map[slurmctl.JobID]uint32{}, reservations: map[string]slurmctl.Reservation{}, heldSince: map[string]time.Time{},
		holdNames: map[holdKey]string{}, holdChanged: map[string]time.Time{}, unwilling: map[string]bool{}, intruders: map[slurmctl.JobID]intrusion{}, scripts: map[slurmctl.JobID]*script{},
		asked: map[slurmctl.JobID]*asked{}, parksIn: map[string]bool{},
		refused: map[slurmctl.JobID]api.Job{}, unsaved: map[*job]bool{}, suspect: map[string]time.Time{}, leaks: map[string]time.Time{}, started: time.Now(), root: os.Geteuid() == 0}
	c.power.setSaving(slurmctl.Config{})
	c.work.keys, c.work.retry = map[string]bool{}, map[string]time.Time{}
	if u, err := user.Current(); err == nil {
		c.self = u.Username
	}
	if host, err := os.Hostname(); err == nil {
		c.host, _, _ = strings.Cut(host, ".")
	}
	c.cfg = cfg
	chosen, err := kept(st, cfg, log)
	if err != nil {
		return nil, err
	}
	strategies, err := strategy.New(cfg.Strategies, cfg.Strategy, chosen, log)
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
	c.lookCtx, c.stopLooks = context.WithCancel(ctx)
	defer c.stopLooks()
	if err := c.load(); err != nil {
		return err
	}
	timer := time.NewTimer(0)
	defer timer.Stop()
	wait := time.Duration(0)
	for {
		var f func()
		select {
		case <-ctx.Done():
			return c.finish(stop)
		case f = <-c.mail:
		case <-timer.C:
		}
		c.watchClock(time.Now(), wait)
		if f != nil {
			f()
			c.drainMail()
		}
		if err := c.store.Lost(); err != nil {
			// started again, the sidecar makes a new one of what Slurm knows
			return errors.Join(err, c.finish(stop))
		}
		c.advance()
		c.startLooks()
		wait = max(time.Until(c.wakeAt()), time.Millisecond)
		timer.Reset(wait)
	}
}

// finish lets running actions post their outcome, then wakes whoever still waits.
func (c *Controller) finish(stop context.CancelFunc) error {
	c.stopping = true
	c.stopLooks()
	done := make(chan struct{})
	go func() { c.work.all.Wait(); close(done) }()
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
func (c *Controller) post(f func()) {
	select {
	case c.mail <- f:
	case <-c.gone:
	}
}

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

// cycle is one round of observe, adopt, follow and plan; what comes of it is done by
// advance, which follows.
func (c *Controller) cycle(s *snapshot) {
	if c.lastErr != nil {
		c.log.Info("Slurm can be observed again")
		c.lastErr = nil
	}
	c.watchPriorities(c.snapshot, s)
	c.snapshot = s
	c.takeReservations(s)
	c.watchPower(s)
	c.adopt(s)
	c.learnAll(s)
	c.follow(s)
	c.followKept(s)
	c.followPlans(s)
	c.laps.lap("follow")
	c.plan(s)
	c.laps.lap("plan")
	c.clean(s)
	c.watchIntruders(s)
	c.watchLeaks(s)
	c.readAccrual()
	calls := c.slurm.Calls()
	c.calls, c.cycleCalls = calls, int(calls-c.calls)
}

// advance does what is due by the present state: the end of a cycle, and after
// everything that happens between two.
func (c *Controller) advance() {
	c.pace.urgent, c.pace.waiting, c.pace.growing = false, -1, false
	if c.snapshot != nil && c.lastErr == nil {
		c.act(c.snapshot)
		c.laps.lap("act")
		c.syncHolds(c.snapshot)
		c.switchNodes(c.snapshot)
		c.laps.lap("holds")
		c.mirror(c.snapshot)
		c.laps.lap("mirror")
	}
	c.savePlans()
	c.laps.lap("save")
	c.publish()
	c.laps.lap("publish")
	c.laps.log(c.log)
	c.laps = nil
}

// takeConfig is called when Slurm's configuration was read.
func (c *Controller) takeConfig(cfg slurmctl.Config) (err error) {
	merge, reasons := slurmctl.Capabilities(cfg)
	if cfg.Boot() != c.slurmConfig.Boot() {
		c.countsFrom = time.Time{}
	}
	c.slurmConfig, c.configRead, c.ageing = cfg, time.Now(), cfg.Ageing()
	c.backfill.setInterval(cfg.BackfillInterval())
	c.power.setSaving(cfg)
	if _, c.slurmUser, err = cfg.SlurmUser(); err != nil {
		return err
	}
	before := c.drive
	c.drive, c.driveReason = spec.Companion, joinWords(reasons)
	if merge {
		c.drive = spec.Merge
	}
	if c.drive != before {
		c.log.WithField("drive", c.drive).WithField("slurm", cfg.Version).Info("drive mode chosen: " + c.driveReason)
	}
	return nil
}

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
