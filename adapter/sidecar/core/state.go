package core

import (
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/adopt"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/follow"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/hold"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/talk"
)

// take takes over an input. Step decides afterwards.
func take(c *state.Core, in msg.Input) {
	switch in := in.(type) {
	case msg.Books:
		adopt.Restore(c, in)
	case msg.Observation:
		observed(c, in) // observe → adopt → follow → plan
	case msg.Planned:
		planned(c, in)
	case msg.Resized:
		resized(c, in)
	case msg.Outcome:
		settled(c, in)
	case msg.NodesSeen:
		follow.NodesSeen(c, in)
	case msg.Call:
		talk.Called(c, in)
	case msg.Tried:
		talk.TakeTried(c, in)
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
