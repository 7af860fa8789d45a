package simulate

import (
	"context"
	"fmt"
	"maps"
	"runtime/debug"
	"slices"
	"time"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/internal/config"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/drive"
	"github.com/evoslurm/evoslurm/adapter/sidecar/recorder"
	"github.com/evoslurm/evoslurm/planner"
	"github.com/evoslurm/evoslurm/slurmctl"
	"github.com/evoslurm/evoslurm/slurmctl/slurmsim"
)

// Sidecar is evoslurmd with a model of Slurm. It is not safe for concurrent use: like everything in
// virtual time, it runs on the cluster's goroutine.
type Sidecar struct {
	Cluster  *slurmsim.Cluster
	Database *Database
	Config   config.Config
	Strategy planner.Strategy
	Policy   *Policy // that resizes malleable jobs as a plugin; nil: the configuration's

	// Skip skips polls without effect; Advance then moves the clock.
	Skip bool

	Host     string                  // where there are two
	Skewed   time.Duration           // how far its clock is ahead of Slurm's
	Operator bool                    // it runs as an operator's account, not as root
	Hands    func(job uint32) *hands // says how a job's processes submit for it; nil: as they should

	// Watch, if it is there, sees every step of the core.
	Watch func(now time.Time, inputs []msg.Input, effects []msg.Effect)

	// After, if it is there, is called after every step, once that is written down.
	After func()

	// Record, if it is there, gives the flight recorder of a life of the sidecar.
	Record func(recorder.Start) *recorder.Recorder

	front  func() *Sidecar // returns the sidecar that answers clients; nil: this one
	frozen bool            // the process is stopped
	late   []msg.Input     // that it has not seen yet because of that

	between  func(*core.Core) *core.Core // returns the core that goes on, before every step; nil: the same one
	core     *core.Core
	recorder *recorder.Recorder
	driver   *drive.Driver
	client   *slurmsim.Client
	tasks    []*slurmsim.Process
	memory
}

// memory holds what a checkpoint of the sidecar has besides its core and its database.
type memory struct {
	Polls     uint64        // that were made
	Base      time.Time     // when the cluster's clock began, by Slurm's clock when the sidecar was started
	Skew      time.Duration // skew of the cluster's clock, as far as the core knows
	Life      int           // number of starts: results from another life are ignored
	Wakes     int
	LastCall  uint64
	Changes   uint64        // that were asked for, ever
	Seen      uint64        // the cluster's version as the last poll began
	Lasts     time.Duration // its duration without reading the configuration; 0 if unknown
	Paced     time.Duration // since when slurmctld answers as late as now
	Resting   rest
	Still     time.Duration      // until then, a poll that shows what the last one showed decides nothing
	Skipped   uint64             // polls that were left out, before the present rest
	Configs   uint64             // of these, those that would have read Slurm's configuration
	Appointed []time.Duration    // coming ones of jobs, as far as they are known
	Waiting   map[uint64]*caller // those that wait for a reply, by call
}

// strategy adapts a planner's strategy.
type strategy struct{ planner.Strategy }

func (strategy) Pin([]planner.Placement) {}
func (s strategy) Rigid() bool           { return planner.IsRigid(s.Strategy) }
func (s strategy) Steady() bool          { return planner.IsSteady(s.Strategy) }

type processKey struct{}

// model is a client of the model that can look up its users.
type model struct{ *slurmsim.Client }

func (model) LookupUser(uid uint32) (*slurmctl.User, error) { return userOf(uid) }

// InGroups knows one group, staff, with alice in it.
func (model) InGroups(u *slurmctl.User, groups []string) (in []string, err error) {
	if u.Name == Alice.Name && slices.Contains(groups, "staff") {
		in = []string{"staff"}
	}
	return in, nil
}

// Start starts the sidecar from its database.
func (s *Sidecar) Start() {
	s.Stop()
	s.attach()
	s.Waiting = map[uint64]*caller{}
	s.Base, s.Skew = s.clock().Add(-s.Cluster.Elapsed()), 0
	if !s.Cluster.Down {
		s.Base = s.Base.Add(s.driver.Begin(s.now(), s.Cluster.Now().Truncate(time.Second)))
	}
	start := recorder.Start{Begun: s.now(), Site: msg.Site{Version: simulated, User: s.account().Name, Host: "model", Root: !s.Operator}, Config: s.Config,
		Strategy: msg.Strategy{ExpandLimit: planner.ExpandLimitOf(s.Strategy), Plugin: s.Policy != nil}}
	if s.recorder = nil; s.Record != nil {
		s.recorder = s.Record(start)
		s.recorder.State = func() ([]byte, error) { return s.core.Encode() }
	}
	s.core = core.New(start.Site, start.Config, start.Strategy, start.Begun)
	s.give(s.Database.books())
}

// account returns the sidecar's own.
func (s *Sidecar) account() slurmsim.User {
	u := slurmsim.Root
	if s.Operator {
		u = operator
	}
	u.Account = s.Host
	return u
}

// clock returns the time by the clock of its host.
func (s *Sidecar) clock() time.Time { return s.Cluster.Now().Add(s.Skewed) }

// attach makes the client of Slurm and the driver.
func (s *Sidecar) attach() {
	s.client = s.Cluster.Client(s.account())
	s.driver = &drive.Driver{Slurm: model{s.client}, Now: s.now, Machine: s.clock,
		Pause: func(ctx context.Context, d time.Duration) {
			if p, ok := ctx.Value(processKey{}).(*slurmsim.Process); ok {
				p.Sleep(d)
			}
		},
		Together:    s.together,
		WithTimeout: s.Cluster.WithTimeout,
	}
}

// Stop kills the sidecar: commands that it has begun take effect, but their results are lost.
func (s *Sidecar) Stop() {
	s.Life++
	s.core, s.Resting = nil, rest{}
	for _, p := range s.tasks {
		p.Kill()
	}
	s.tasks = nil
	for _, id := range slices.Sorted(maps.Keys(s.Waiting)) {
		s.Waiting[id].end(s.Cluster)
	}
	s.Waiting = nil
}

// Running reports whether the sidecar has been started.
func (s *Sidecar) Running() bool { return s.core != nil }

// now returns the core's clock: it is never set, and was right when the sidecar was started.
func (s *Sidecar) now() time.Time { return s.Base.Add(s.Cluster.Elapsed()) }

// Commands returns how many commands of Slurm it has run since it was started.
func (s *Sidecar) Commands() uint64 { return s.client.Calls() }

// View returns what the sidecar shows; nil while it is down.
func (s *Sidecar) View() *msg.View {
	if s.core == nil {
		return nil
	}
	return s.core.View()
}

// Job returns what it shows of an active job; false if there is none, or while it is down.
func (s *Sidecar) Job(id slurmctl.JobID) (api.Job, bool) {
	if s.core == nil {
		return api.Job{}, false
	}
	return s.core.Job(id)
}

// give passes inputs to the core and carries out its effects.
func (s *Sidecar) give(inputs ...msg.Input) {
	if s.frozen {
		s.late = append(s.late, inputs...)
		return
	}
	life := s.Life
	for len(inputs) > 0 && s.core != nil && s.Life == life {
		if s.driver.Misread() != nil && s.core.View().Status.LastCycle.IsZero() {
			s.Stop() // as the controller, and systemd starts it again
			life = s.Life
			s.Cluster.After(restarts, func() {
				if s.Life == life {
					s.Start()
				}
			})
			return
		}
		if by := (s.driver.Clock().Sub(s.now()) - s.Skew).Round(time.Second); by.Abs() >= drive.ClockSlack {
			s.Skew += by
			inputs = append([]msg.Input{msg.ClockSet{By: by}}, inputs...)
		}
		effects := s.step(inputs)
		if s.Watch != nil {
			s.Watch(s.Cluster.Now(), inputs, effects)
		}
		if s.Life != life {
			return // it was killed between deciding and doing
		}
		inputs = s.do(effects)
		if s.After != nil {
			s.After()
		}
	}
}

// step returns a step of the core. Its panics keep their stack, which a coroutine would lose.
func (s *Sidecar) step(inputs []msg.Input) []msg.Effect {
	defer func() {
		if r := recover(); r != nil {
			panic(fmt.Errorf("the core panics: %v\n%s", r, debug.Stack()))
		}
	}()
	if s.between != nil {
		s.core = s.between(s.core)
	}
	s.recorder.Inputs(s.now(), inputs)
	effects := s.core.Step(s.now(), inputs...)
	s.recorder.Effects(s.now(), effects)
	return effects
}

// do carries out the effects of a step, and returns what is known at once.
func (s *Sidecar) do(effects []msg.Effect) (inputs []msg.Input) {
	written := s.Database.write(effects)
	if s.repeats(effects) {
		return nil
	}
	for _, e := range effects {
		switch e := e.(type) {
		case msg.Task:
			if !written && e.Intent != nil {
				inputs = append(inputs, msg.Outcome{Task: e.ID, Err: msg.ErrNotWritten, UpdatesNeedAccount: s.client.WantsAccount()})
				continue
			}
			s.beside(func(ctx context.Context) msg.Input {
				result, err := s.driver.Run(ctx, ctx, e)
				return msg.Outcome{Task: e.ID, Err: err, Result: result, UpdatesNeedAccount: s.client.WantsAccount()}
			})
		case msg.Poll:
			s.Seen = s.Cluster.Version()
			s.Polls++
			begun := s.Cluster.Elapsed()
			s.beside(func(ctx context.Context) msg.Input {
				o := s.driver.Poll(ctx, e)
				if s.Lasts = s.now().Sub(o.Begun); begun < s.Paced {
					s.Lasts = 0
				}
				return o
			})
		case msg.PollNodes:
			s.beside(func(ctx context.Context) msg.Input { return s.driver.PollNodes(ctx, e) })
		case msg.Plan:
			inputs = append(inputs, e.Problem.Plan(strategy{s.Strategy}))
		case msg.Try:
			inputs = append(inputs, e.Run())
		case msg.Resize:
			inputs = append(inputs, s.Policy.answer(e.Question))
		case msg.Reply:
			if c, ok := s.Waiting[e.ID]; ok {
				delete(s.Waiting, e.ID)
				c.Reply, c.Answered = e, true
				c.end(s.Cluster)
			}
		case msg.Wake:
			if again := len(inputs) > 0; again && !s.Skip || !again && !s.tryRest(e.At) {
				s.schedule(max(e.At.Sub(s.now()), time.Millisecond), false)
			}
		}
	}
	return inputs
}

// beside runs something as a process and passes its result to the core.
func (s *Sidecar) beside(run func(context.Context) msg.Input) {
	life := s.Life
	p := s.Cluster.Go(func(p *slurmsim.Process) {
		in := run(context.WithValue(context.Background(), processKey{}, p))
		for i, other := range s.tasks {
			if other == p {
				s.tasks = append(s.tasks[:i], s.tasks[i+1:]...)
				break
			}
		}
		if s.Life == life {
			s.give(in)
		}
	})
	s.tasks = append(s.tasks, p)
}

// together runs a task's commands as processes and waits for all.
func (s *Sidecar) together(ctx context.Context, run ...func(context.Context)) {
	left := len(run)
	ctx.Value(processKey{}).(*slurmsim.Process).Await(func(wake func()) {
		for _, f := range run {
			s.Cluster.Go(func(p *slurmsim.Process) {
				f(context.WithValue(ctx, processKey{}, p))
				if left--; left == 0 {
					wake()
				}
			})
		}
	})
}
