package core

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/act"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/adopt"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/change"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/couple"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/delay"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/follow"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/hold"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/lend"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/pace"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/plan"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/power"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/refit"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/slurm"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/talk"
	"github.com/evoslurm/evoslurm/planner/malleable"
)

// step does what [Core.Step] says.
func step(c *state.Core, now time.Time, inputs ...msg.Input) []msg.Effect {
	c.Now = now
	watchStill(c, now)
	for _, in := range inputs { // 1. take what came in; a poll makes a cycle
		take(c, in)
	}
	c.Wake = now.Add(msg.MostWake) // 2. decide
	if !c.Planning && c.Looking == nil && !c.Stopping {
		decide(c)
		pace.StartPolls(c)
	}
	// 3. write
	couple.Follow(c) // an answer that was given before it found the same
	c.SavePlans()
	if c.Handling.Done(); c.Planning {
		adopt.Plans(c)
	}
	// 4. say when to call again
	if c.Wait = max(c.Wake.Sub(now), time.Millisecond); c.Planning || c.Looking != nil {
		c.Wait = c.Config.Strategies.Timeout // the answer comes before anything is due
	}
	noteQuiet(c, inputs)
	effects := append(c.Effects, msg.Wake{c.Wake})
	c.Effects = nil
	return effects
}

// cycle runs one round of observe, adopt, follow, and plan. The decisions follow once the plan is there.
func cycle(c *state.Core, s *state.Snapshot) {
	// 1. observe
	if c.LastErr != nil {
		c.Log.Info("Slurm can be polled again")
		c.LastErr = nil
	}
	slurm.WatchPriorities(c, c.Snapshot, s)
	if !c.Config.Observes() {
		follow.Unread(c, s)
		follow.Disown(c, s)
	}
	slurm.LearnEpilogs(c, c.Snapshot, s)
	power.Learn(c, c.Snapshot, s)
	c.Snapshot, c.Quiet.Refitted, c.Moments = s, false, msg.Moments{}
	if c.Config.Observes() {
		adopt.Observe(c, s)
		slurm.RulesSince(c, c.Now.Add(-rulesObserved))
		refit.Plan(c, s)
		return
	}
	pace.ExcuseContacted(c, s)
	// 2. what may begin again
	change.NextTries(c)
	state.UnmuteAll(c)
	hold.TakeReservations(c, s)
	hold.Charge(c, s.Taken)
	hold.WatchPower(c, s)
	// 3. adopt
	adopt.Doubt(c, s)
	adopt.Adopt(c, s)
	adopt.Unfold(c, s)
	adopt.LeaveRefused(c, s)
	adopt.LearnAll(c, s)
	// 4. follow
	follow.Follow(c, s)
	follow.Banish(c, s)
	follow.FollowKept(c, s)
	refit.FollowPlans(c, s)
	// 5. what holds cost
	delay.Watch(c, s)
	hold.Price(c, s)
	delay.Measure(c, s)
	// 6. plan
	talk.ForgetPlaces(c)
	refit.Plan(c, s)
}

// rulesObserved is the age up to which limits, tiers, and preemption count while the sidecar only observes.
const rulesObserved = time.Hour

// planned takes over the plans that the strategy made.
func planned(c *state.Core, in msg.Planned) {
	if !c.Planning {
		return
	}
	c.Planning = false
	s := c.Snapshot
	plan.TakePlans(c, in)
	if c.Config.Observes() {
		return
	}
	lend.Manage(c, s)
	follow.Clean(c, s)
	hold.WatchIntruders(c, s)
	act.FindSubmitted(c, s)
	act.WatchLeaks(c, s)
	act.ContactIdle(c, s)
	slurm.ReadAccrual(c)
	adopt.Settle(c)
	power.Manage(c, s)
}

// decide carries out what is due in the current state. Step calls it after each cycle, and after
// all other inputs.
func decide(c *state.Core) {
	c.Pace.Urgent, c.Pace.Waiting, c.Pace.Growing, c.Quiet.PutOff = false, -1, false, false
	if c.Config.Observes() {
		return
	}
	if c.Snapshot != nil && c.LastErr == nil {
		act.WatchSubmissions(c)
		if c.Releases() {
			act.LetGo(c, c.Snapshot)
		} else {
			act.Act(c, c.Snapshot)
		}
		act.SendWarnings(c)
		hold.SyncHolds(c, c.Snapshot)
		hold.SwitchNodes(c, c.Snapshot)
		act.Mirror(c, c.Snapshot)
	}
	talk.AnswerCalls(c)
}

// configured takes over a changed configuration or strategy.
func configured(c *state.Core, in msg.Configuration) {
	if in.Config != nil {
		before := c.Config
		c.Config = *in.Config
		c.Config.Mode = before.Mode // changes only with a restart
		adopt.AccessChanged(c, before)
		adopt.Drain(c, before.Drain)
		c.ConfigRead = time.Time{} // also read Slurm's configuration again
	}
	c.Strategy = in.Strategy
	c.Last, c.Made = nil, nil // the strategy or its parameters may differ
	c.NextCycle = c.Now
}

// observed processes a poll of Slurm.
func observed(c *state.Core, in msg.Observation) {
	p := &c.Pace
	p.Polling, p.Begun, p.Ended = false, in.Begun, c.Now
	if in.Begun.Before(c.Stepped) {
		c.NextCycle = c.Now // the poll shows a time before the clock change
		return
	}
	c.NextCycle = in.Begun.Add(c.Config.PollInterval)
	noteLead(c, in.Lead)
	err := in.Err
	if err == nil && in.Config != nil {
		if before := c.SlurmConfig.Version; before != "" && before != in.Config.Version {
			c.Log.WithField("slurm", in.Config.Version).WithField("before", before).Info("slurmctld is of another version")
		}
		err = slurm.TakeConfig(c, *in.Config)
		slurm.TakeTopology(c, &in)
	}
	if err == nil && len(in.Nodes) == 0 {
		err = errors.New("sinfo lists no nodes")
	}
	if err != nil {
		pace.Unobserved(c, err)
		return
	}
	c.MayUpdate(!in.UpdatesNeedAccount)
	c.Calls, c.CycleCalls = in.Calls, int(in.Calls-c.Calls)
	pace.Spare(p, &in, c.Config.Slurm.Share, c.Config.PollInterval)
	pace.KeepToRate(c, in.Commands)
	pace.NotePause(c)
	if c.Skew != 0 {
		for i := range in.Jobs {
			c.JobIn(&in.Jobs[i])
		}
		for i := range in.Reservations {
			c.In(&in.Reservations[i].Start, &in.Reservations[i].End)
		}
	}
	s := pace.NewSnapshot(c, in)
	slurm.WatchLayout(c, s)
	if err := act.WatchTwin(c, s); err != nil {
		c.LastErr, c.NextCycle = err, c.Now.Add(max(c.Config.PollInterval, time.Second))
		return
	}
	cycle(c, s)
}

// resized processes the answer of a plugin.
func resized(c *state.Core, in msg.Resized) {
	m := c.Looking
	if m == nil {
		return
	}
	c.Looking = nil
	q, changes, why := m.Question, in.Changes, in.Fault
	if why == "" {
		if err := malleable.Check(q.Jobs, q.Asked, changes); err != nil {
			why = err.Error()
		}
	}
	if why != "" {
		changes = msg.FallbackPolicy.Apply(q.Jobs, q.Asked, malleable.Declared)
		if !c.Now.Before(c.FaultTold) {
			c.FaultTold = c.Now.Add(lend.FaultsTold)
			c.Log.WithField("policy", c.Strategy.Policy).Warn(fmt.Sprintf("%s decides in its place: %s", msg.FallbackPolicy.Name(), why))
		}
	}
	changes = slices.Clone(changes)
	for i := range changes {
		changes[i].Job = m.Place[changes[i].Job]
	}
	m.Answers = append(m.Answers, changes)
	lend.GoOn(m)
}

// settleBy holds the settle function of each kind. The job is nil if the task belongs to none.
var settleBy = [state.NumberOfKinds]func(c *state.Core, j *state.Job, p *state.Pending, o msg.Outcome){
	state.KindDetach:       act.SettleDetach,
	state.KindEnforce:      act.SettleEnforce,
	state.KindWarn:         act.SettleWarn,
	state.KindShape:        act.SettleShape,
	state.KindStart:        act.SettleStart,
	state.KindPark:         act.SettlePark,
	state.KindEvict:        hold.SettleEvict,
	state.KindGrow:         act.SettleGrow,
	state.KindOpen:         act.SettleOpen,
	state.KindSubmit:       func(*state.Core, *state.Job, *state.Pending, msg.Outcome) {}, // a report of the job's process ends it: see act.Submitted
	state.KindShrink:       act.SettleShrink,
	state.KindExtend:       act.SettleExtend,
	state.KindRewrite:      act.SettleRewrite,
	state.KindAccrual:      slurm.SettleAccrual,
	state.KindRequest:      adopt.SettleRequest,
	state.KindScript:       adopt.SettleScript,
	state.KindLimits:       slurm.SettleLimits,
	state.KindLicenses:     slurm.SettleLicenses,
	state.KindTimeUsed:     follow.SettleTimeUsed,
	state.KindLengthen:     hold.SettleLengthen,
	state.KindEnd:          follow.SettleEnd,
	state.KindLinkEnd:      follow.SettleLinkEnd,
	state.KindCancelBeside: follow.SettleCancelBeside,
	state.KindSendAway:     hold.SettleSendAway,
	state.KindReconfigure:  act.SettleReconfigure,
	state.KindContact:      act.SettleContact,
	state.KindLeave:        adopt.SettleLeave,
	state.KindUnfold:       adopt.SettleUnfold,
	state.KindPowerUp:      hold.SettlePowerUp,
	state.KindKeepUp:       hold.SettleKeepUp,
	state.KindPowerDown:    power.SettlePowerDown,
	state.KindDrainNodes:   power.SettleDrainNodes,
	state.KindReadyLink:    act.SettleReadyLink,
	state.KindMirror:       act.SettleMirror,
	state.KindShapeAhead:   act.SettleShapeAhead,
	state.KindAdjustHold:   hold.SettleAdjustHold,
	state.KindCreateHold:   hold.SettleCreateHold,
	state.KindDeleteHold:   hold.SettleDeleteHold,
	state.KindLeaveAll:     act.SettleLeaveAll,
}

// settled processes the outcome of a task.
func settled(c *state.Core, o msg.Outcome) {
	p, known := c.Work.Pending[o.Task]
	if !known {
		return
	}
	c.MayUpdate(!o.UpdatesNeedAccount)
	o.Result = c.ResultIn(o.Result)
	delete(c.Work.Pending, o.Task)
	c.Work.TakeBack(o.Task)
	j := c.JobOf(p)
	c.Finish(j, p, o.Err)
	intent := p.Task.Intent
	if intent != nil && !state.SettleIntent(c, j, intent, o) {
		return
	}
	if p.Chore && errors.Is(o.Err, msg.ErrBackfilling) {
		return
	}
	if j != nil || p.Job == 0 {
		settleBy[p.Kind](c, j, p, o)
	}
	if intent != nil {
		c.NextCycle = c.Now // see what it changed
	}
}

// take takes over an input. Step decides afterwards.
func take(c *state.Core, in msg.Input) {
	switch in := in.(type) {
	case msg.Books:
		adopt.Restore(c, in)
		power.RestoreArrivals(c, in.Arrivals)
	case msg.Observation:
		observed(c, in) // observe → adopt → follow → plan
	case msg.Planned:
		planned(c, in)
	case msg.Resized:
		resized(c, in)
	case msg.Outcome:
		settled(c, in)
	case msg.NodesSeen:
		pace.NodesSeen(c, in)
	case msg.Call:
		talk.Called(c, in)
	case msg.Tried:
		change.TakeTried(c, in)
	case msg.Withdrawal:
		talk.Withdrawn(c, in)
	case msg.Configuration:
		configured(c, in)
	case msg.ClockSet:
		clockSet(c, in.By)
	case msg.Stop:
		c.Stopping = true
		hold.SavePrices(c)
	case msg.Tick:
	}
}
