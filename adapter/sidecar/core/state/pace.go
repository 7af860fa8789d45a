package state

import (
	"time"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
)

// PollsCompared is how many polls in a row must be expensive before the loop spaces them.
const PollsCompared = 4

// Pace holds what decides when to poll Slurm.
type Pace struct {
	Polling  bool
	Begun    time.Time                    // the last poll
	Ended    time.Time                    //
	Bare     time.Duration                // processor time of a command that asks for next to nothing, on this host; 0: not measured
	Costs    [PollsCompared]time.Duration // processor time of the latest polls' commands beyond bare ones, latest first
	Measure  bool                         // the next poll measures a bare command as well
	Pause    time.Duration                // pause after the poll
	Debt     time.Duration                // how much earlier than that polls came; later ones make up for it
	Warned   time.Time                    // when jobs were last signalled, if that costs as much as a poll
	Told     time.Duration                // the pause that the log last reported as long; 0: none is
	Urgent   bool                         // something due waits for a poll
	Gated    bool                         // polls are expensive: what can wait does so while the backfill scheduler runs
	AtNodes  bool                         // a poll of only the nodes is running
	NodesAt  time.Time                    // when the last such poll was made
	Waiting  time.Duration                // how long something has waited for nodes; below 0: nothing waits
	Growing  bool                         // a running job waits for nodes to grow
	FarHolds msg.Allowance
	Mirror   msg.Allowance
}
