package core

import (
	"time"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/internal/config"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/adopt"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/change"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/hold"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/power"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/view"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// Core decides what a sidecar does. It is not safe for concurrent use.
type Core struct{ c *state.Core }

// New returns a core that knows only its site, configuration and strategy.
func New(site msg.Site, cfg config.Config, strategy msg.Strategy, now time.Time) *Core {
	return &Core{state.New(site, cfg, strategy, now)}
}

// Step takes over the inputs, decides, and returns the effects in the order in which the shell must
// carry them out: rows before tasks. The shell calls Step again when an input arrives, and at the
// time of [msg.Wake] at the latest. Now is by a clock that is never set, see [msg.ClockSet].
func (c *Core) Step(now time.Time, inputs ...msg.Input) []msg.Effect {
	return step(c.c, now, inputs...)
}

// NoteIn makes the core record in h which job it is handling.
func (c *Core) NoteIn(h *msg.Handling) { adopt.NoteIn(c.c, h) }

// View returns the current state. O(jobs).
func (c *Core) View() *msg.View { return view.ViewOf(c.c) }

// Past returns an ended job of the database as the API shows it, where Slurm's clock leads by `skew`.
func Past(cfg config.Config, strategy msg.Strategy, skew time.Duration, b msg.BookedJob) api.Job {
	c := state.New(msg.Site{}, cfg, strategy, time.Time{})
	c.Skew = skew
	return view.Past(c, b)
}

// Job returns a job as the API shows it, and false if it is not known.
func (c *Core) Job(id slurmctl.JobID) (api.Job, bool) { return view.Job(c.c, id) }

// Cluster returns what the last poll has seen beside evolving jobs, or nil before the first poll.
func (c *Core) Cluster() *api.Cluster { return view.Cluster(c.c) }

// Problem returns the current queue as a problem for any strategy, or nil before the first poll of Slurm.
func (c *Core) Problem() *msg.Problem { return view.Problem(c.c) }

// Budget returns what holds and growths take of the shares and delay budgets now, without the limits themselves.
func (c *Core) Budget() api.Budget {
	b := hold.Budget(c.c)
	b.Growths, b.Moved = change.Grown(c.c)
	return b
}

// Power returns which idle nodes are off by plan, or would be, and what that saves.
func (c *Core) Power() api.Power { return power.Show(c.c) }

// PowerHistory returns what was learnt of jobs that nobody planned, and the reserve that follows.
func (c *Core) PowerHistory() api.PowerHistory { return power.History(c.c) }

// Check returns an error if the jobs or the tasks under way violate an invariant. It is for tests.
func (c *Core) Check() error { return view.Check(c.c) }

// Clashes lists promises that cannot all be kept. It is for tests.
func (c *Core) Clashes() []view.Clash { return view.Clashes(c.c) }

// Written returns the rows that the database must have now. It is for tests.
func (c *Core) Written(text func([]string) string) []msg.BookedJob { return view.Written(c.c, text) }

// BeyondShare returns a user with more holds than the shares allow, or "". It is for tests.
func (c *Core) BeyondShare() (user string, holds int) { return view.BeyondShare(c.c) }

// Still returns until when a poll that shows what the last one showed decides nothing, except for postponed
// tasks, or the zero time if polls are needed as usual. It must be called right after a step.
func (c *Core) Still() (until time.Time) { return still(c.c) }

// Same processes a poll that shows what the last one showed and has no consequences (see [Core.Still]): it
// began at `begun` and has ended now. A step must follow at once.
func (c *Core) Same(begun, now time.Time) { same(c.c, begun, now) }

// PutOff reports whether something waits for an allowance: the next caller may get it.
func (c *Core) PutOff() bool { return c.c.Quiet.PutOff }

// ConfigRead returns when Slurm's configuration was last read.
func (c *Core) ConfigRead() time.Time { return c.c.ConfigRead }

// Rested counts skipped polls as made: the last one began at `polled`, and the last one that read Slurm's
// configuration, if any did, at `configRead`.
func (c *Core) Rested(polled, configRead time.Time) { rested(c.c, polled, configRead) }

// Rest announces that the next step comes at `until` or earlier: the shell may delay what [msg.Wake] asked for, up
// to [Core.Still].
func (c *Core) Rest(until time.Time) { c.c.Wait = max(c.c.Wait, until.Sub(c.c.Tick)) }

// Encode returns the whole state between two steps as bytes, without the parameters of plugins.
func (c *Core) Encode() ([]byte, error) { return state.Encode(c.c) }

// Decode returns a core with the state that Encode has written in the same version of the sidecar. It continues as the
// other core would. An error says what is wrong with the bytes and what to do instead.
func Decode(data []byte, version string) (*Core, error) {
	c, err := state.Decode(data, version)
	if err != nil {
		return nil, err
	}
	return &Core{c}, nil
}

// ParseHold returns the job whose hold a reservation is, and whether it is one.
func ParseHold(r slurmctl.Reservation) (slurmctl.JobID, bool) {
	own, ours := state.ParseHold(r)
	return own.Job, ours
}

// ParseExpander returns the job for which one with that name brings nodes, and whether the name is such a one.
func ParseExpander(name string) (slurmctl.JobID, bool) {
	own, ours := state.ParseHoldName(name)
	return own.Job, ours
}
