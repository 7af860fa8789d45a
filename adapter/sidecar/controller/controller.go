package controller

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/user"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/internal/config"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/drive"
	"github.com/evoslurm/evoslurm/adapter/sidecar/metrics"
	"github.com/evoslurm/evoslurm/adapter/sidecar/observed"
	"github.com/evoslurm/evoslurm/adapter/sidecar/pluginhost"
	"github.com/evoslurm/evoslurm/adapter/sidecar/recorder"
	"github.com/evoslurm/evoslurm/adapter/sidecar/store"
	"github.com/evoslurm/evoslurm/adapter/sidecar/systemd"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// Controller is the shell around the decision core. Its exported methods are safe for concurrent
// use; the core belongs to Run's goroutine.
type Controller struct {
	core       *core.Core
	recorder   *recorder.Recorder // nil: nothing is recorded
	watcher    *observed.Watcher  // nil: the sidecar acts
	hidden     bool               // said what PrivateData hides from it
	clock      *clock
	driver     *drive.Driver
	slurm      *slurmctl.Client
	privileges remembered[slurmctl.Privileges]
	visible    remembered[slurmctl.Visible]
	budget     remembered[api.Budget]
	store      *store.Store
	strategies *pluginhost.Manager
	log        *logrus.Logger
	version    string
	cfg        config.Config // the administrator's; the core has settings over it
	settings   settings
	mode       config.Mode   // of this process
	timeout    time.Duration // of a command of Slurm

	ctx       context.Context // for changes: lasts a little after Run should end
	pollCtx   context.Context // of polls: ends at once then
	stopPolls context.CancelFunc
	all       sync.WaitGroup // goroutines besides the loop

	mail    chan any      // core.Input, or func() to run on the loop's goroutine
	gone    chan struct{} // closed when Run has returned
	books   books
	at      *handling // which job the core is at
	begun   bool      // the first cycle is done
	laps    laps
	view    atomic.Pointer[view] // what the API shows
	calls   calls
	ships   ships
	host    string
	reports reports
	idle    idleTime

	Metrics *metrics.Metrics
	Service *systemd.Service // set before Run
}

// New makes a controller. It acts on nothing before Run.
func New(cfg config.Config, slurm *slurmctl.Client, st *store.Store, log *logrus.Logger, version string) (*Controller, error) {
	c := &Controller{clock: startClock(), slurm: slurm, store: st, log: log, version: version, cfg: cfg, mode: cfg.Mode, timeout: cfg.Slurm.Timeout,
		mail: make(chan any, 64), gone: make(chan struct{})}
	c.books.store, c.books.log, c.books.alive = st, log, c.alive
	c.meter()
	c.driver = drive.New(slurm, c.clock.now)
	c.readClock()
	if cfg.Observes() {
		if err := c.observe(); err != nil {
			return nil, err
		}
	}
	c.calls.waiting = map[uint64]chan msg.Reply{}
	c.settings.store = st
	reading, done := context.WithTimeout(context.Background(), keptTimeout)
	defer done()
	if err := takeDrain(reading, st, cfg, log); err != nil {
		return nil, err
	}
	cfg, err := c.settings.lay(reading, cfg, log) // c.cfg stays the administrator's
	if err != nil {
		return nil, err
	}
	chosen, err := kept(st, cfg, "strategy", log)
	if err != nil {
		return nil, err
	}
	if c.strategies, err = pluginhost.New(cfg.Strategies, cfg.Strategy, chosen, log); err != nil {
		return nil, fmt.Errorf("strategy: %w", err)
	}
	if chosen, err = kept(st, cfg, "malleability policy", log); err == nil {
		err = c.strategies.Resizing.Take(cfg.Malleable.Policy, nil, chosen)
	}
	if err != nil {
		c.strategies.Close()
		return nil, fmt.Errorf("malleable.policy: %w", err)
	}
	site := msg.Site{Version: version, Root: os.Geteuid() == 0}
	if u, err := user.Current(); err == nil {
		site.User = u.Username
	}
	if host, err := os.Hostname(); err == nil {
		site.Host, _, _ = strings.Cut(host, ".")
	}
	c.host = site.Host
	begun := c.clock.now()
	if cfg.Recorder.MiB > 0 {
		_, zone := begun.Local().Zone()
		c.recorder = recorder.New(cfg.RecorderDir(), cfg.Recorder.MiB, version,
			recorder.Start{Begun: begun, Zone: zone, Site: site, Config: cfg, Strategy: c.strategy()})
		c.recorder.Warn = func(err error) { log.WithError(err).Warn("what happens is not recorded") }
		c.recorder.State = func() ([]byte, error) { return c.core.Encode() }
	}
	c.core = core.New(site, cfg, c.strategy(), begun)
	if c.at, err = openHandling(cfg.Database); err != nil {
		c.strategies.Close()
		return nil, err
	}
	c.publish()
	return c, nil
}

// strategy returns what the core needs to know about the strategy in use.
func (c *Controller) strategy() msg.Strategy {
	return msg.Strategy{ExpandLimit: c.strategies.ExpandLimit(), Policy: c.strategies.Resizing.Name(), Plugin: c.strategies.Resizing.Plugin()}
}

// Run runs the loop until ctx ends. Running actions may then finish, for at most the deadline of a
// Slurm command. Jobs continue without it.
func (c *Controller) Run(ctx context.Context) error {
	defer close(c.gone)
	defer c.strategies.Close()
	defer func() {
		if err := c.watcher.Close(); err != nil {
			c.log.WithError(err).Warn("the end is not in the record of what is observed")
		}
		if err := c.recorder.Close(); err != nil {
			c.log.WithError(err).Warn("the end is not recorded")
		}
	}()
	work, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	c.ctx, c.books.ctx = work, work
	c.pollCtx, c.stopPolls = context.WithCancel(ctx)
	defer c.stopPolls()
	_, now := c.settings.current()
	c.warnOfNames(now)
	started := c.Service.During(systemd.StartTime)
	defer started()
	books, err := c.books.read()
	if err != nil {
		return err
	}
	if books.Aside, books.Doubt, err = c.at.ended(c.version, c.clock.now(), c.log); err != nil {
		return err
	}
	c.at.begin()
	c.core.NoteIn(c.at.note())
	defer func() {
		if r := recover(); r != nil {
			c.at.panicked()
			panic(r) // the state may be corrupt: the next life starts from the database
		}
		c.core.NoteIn(&msg.Handling{})
		c.at.close()
	}()
	c.all.Go(func() { c.prune(c.pollCtx) })
	inputs := []msg.Input{books}
	started()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		if err := c.misread(); err != nil {
			return errors.Join(err, c.finish(stop))
		}
		wake := c.step(inputs...)
		if err := errors.Join(c.store.Lost(), c.books.broken); err != nil {
			// started again, the sidecar makes a new one of what Slurm knows
			return errors.Join(err, c.finish(stop))
		}
		c.alive()
		timer.Reset(max(wake.Sub(c.clock.now()), time.Millisecond))
		var ends bool
		if inputs, ends = c.next(ctx, timer.C); ends {
			return c.finish(stop)
		}
	}
}

// open takes a message and all that have come since: it runs functions and returns inputs.
func (c *Controller) open(m any) (inputs []msg.Input) {
	for {
		switch m := m.(type) {
		case func():
			m()
		case msg.Input:
			inputs = append(inputs, m)
		}
		select {
		case m = <-c.mail:
		default:
			return inputs
		}
	}
}

// step returns inputs to the core and does what follows, plans included. It says when to
// call it again.
func (c *Controller) step(inputs ...msg.Input) (wake time.Time) {
	for len(inputs) > 0 {
		for _, in := range inputs {
			c.laps.sees(in, c.clock.now())
			c.watch(in)
		}
		if by := c.clock.set(c.driver.Clock()); by != 0 {
			inputs = append([]msg.Input{msg.ClockSet{By: by}}, inputs...)
		}
		effects := c.think(inputs...)
		c.laps.lap("step")
		inputs = nil
		unwritten := c.books.write(effects)
		c.laps.lap("save")
		for _, e := range effects {
			switch e := e.(type) {
			case msg.Task:
				if unwritten && e.Intent != nil {
					inputs = append(inputs, msg.Outcome{Task: e.ID, Err: msg.ErrNotWritten, UpdatesNeedAccount: c.slurm.WantsAccount()})
					continue
				}
				c.beside(func() msg.Input {
					result, err := c.driver.Run(c.ctx, c.pollCtx, e)
					return msg.Outcome{Task: e.ID, Err: err, Result: result, UpdatesNeedAccount: c.slurm.WantsAccount()}
				})
			case msg.Poll:
				c.beside(func() msg.Input { return c.driver.Poll(c.pollCtx, e) })
			case msg.PollNodes:
				c.beside(func() msg.Input { return c.driver.PollNodes(c.pollCtx, e) })
			case msg.Plan:
				inputs = append(inputs, c.plan(e.Problem))
				c.laps.lap("plan")
				c.alive()
			case msg.Try:
				c.beside(func() msg.Input { return e.Run() })
			case msg.Resize:
				inputs = append(inputs, c.resize(e.Question))
				c.laps.lap("resize")
			case msg.Reply:
				c.calls.reply(e)
			case msg.AddEvent:
				c.Metrics.Event(e.Job, e.At, e.Kind, e.Detail)
			case msg.SavePromise:
				c.Metrics.Promise(e.Promise)
			case msg.SaveDelay:
				c.Metrics.Delay(e.Delay)
			case msg.Log:
				c.write(e)
			case msg.Wake:
				wake = e.At
			}
		}
	}
	c.publish()
	c.laps.lap("publish")
	c.meterCycle()
	c.laps.log(c.log)
	return wake
}

// think has the core take a step, and writes down what went in and what came out.
func (c *Controller) think(inputs ...msg.Input) []msg.Effect {
	now := c.clock.now()
	c.recorder.Inputs(now, inputs)
	effects := c.core.Step(now, inputs...)
	c.recorder.Effects(now, effects)
	return effects
}

// beside runs something beside the loop and passes the result to the core.
func (c *Controller) beside(run func() msg.Input) {
	c.all.Go(func() {
		in := run()
		select {
		case c.mail <- in:
		case <-c.gone:
		}
	})
}

// plan has the strategy in use plan, and writes what happened to strategies into the
// event log.
func (c *Controller) plan(p *msg.Problem) msg.Planned {
	defer c.planning(p)()
	cycle := c.strategies.Begin(size(p))
	planned := p.Plan(cycle)
	c.Metrics.Planned(time.Now())
	for _, j := range planned.Jobs {
		if j.Unfit == "" {
			cycle.Jobs++
		}
	}
	cycle.End()
	c.strategyEvents()
	return planned
}

// write writes a line of the log.
func (c *Controller) write(l msg.Log) {
	level, err := logrus.ParseLevel(l.Level)
	if err != nil {
		level = logrus.InfoLevel
	}
	entry := c.log.WithFields(l.Fields)
	if l.Err != nil {
		entry = entry.WithError(l.Err)
	}
	entry.Log(level, l.Text)
}

// finish lets running actions finish, then ends waiting calls.
func (c *Controller) finish(stop context.CancelFunc) error {
	c.stopPolls()
	c.books.write(c.think(msg.Stop{}))
	done := make(chan struct{})
	go func() { c.all.Wait(); close(done) }()
	late := time.After(c.timeout)
	outcomes := func(m any) {
		switch m := m.(type) {
		case func():
			m()
		case msg.Outcome:
			c.books.write(c.think(m)) // nothing more is begun
		}
	}
	for {
		select {
		case m := <-c.mail:
			outcomes(m)
			continue
		case <-late:
			stop()
			continue
		case <-done:
		}
		break
	}
	for {
		select {
		case m := <-c.mail:
			outcomes(m)
			continue
		default:
		}
		return nil
	}
}

// call runs f on the loop's goroutine and waits for its answer, which counts even if the loop has ended since.
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
		return answer
	case <-c.gone:
	case <-ctx.Done():
	}
	select {
	case answer = <-done:
	default:
	}
	return answer
}

// onLoop runs f on the loop's goroutine and reports whether it has.
func (c *Controller) onLoop(ctx context.Context, f func()) bool {
	return call(ctx, c, func() bool { f(); return true })
}

// view holds what the API shows.
type view struct {
	msg.View
	api.Status
	cluster  *api.Cluster
	writable bool // the database
}

// publish makes the present state visible to the API.
func (c *Controller) publish() {
	v := c.core.View()
	status := v.Status
	planning, resizing := c.strategies.Planning, c.strategies.Resizing
	status.Strategy, status.StrategyNote, status.Policy, status.PolicyNote = planning.Name(), planning.Note(), resizing.Name(), resizing.Note()
	if status.LastError == "" && c.books.refusing {
		status.LastError = "the database cannot be written; nothing is asked of Slurm that must be written down before"
	}
	c.view.Store(&view{*v, status, c.core.Cluster(), !c.books.refusing})
}
