package state

import (
	"time"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/planner/malleable"
)

// Lending holds how a malleable job answers offers. Owner: lend.
type Lending struct {
	OfferAfter time.Time // when the next offer may be made
	Silences   int       // offers in a row that it did not answer, or declined
	ToldOffer  int64     // the last offer that it received
	TurnUntil  time.Time // until when nodes that others were demanded for it are first its own, while it waits; zero: none were
}

// OfferOver records that an offer is over, how many it did not take in a row, and when the next one may follow.
func (l *Lending) OfferOver(silences int, again time.Time) {
	l.Silences, l.OfferAfter = silences, again
}

// TakesTurn records that others make way for the best-effort job, and until when it comes first.
func (l *Lending) TakesTurn(until time.Time) { l.TurnUntil = until }

// Want describes a planned start or growth on a node.
type Want struct {
	By *Job
	At int64 // Unix second
}

// Managing is one run of the manager.
type Managing struct {
	*Core
	S         *Snapshot
	Second    int64
	Malleable []*Job // running malleable jobs
	Parked    []*Job // best-effort jobs that wait for nodes
	Wants     map[string][]Want
	Waiting   []int   // nodes that pending stock jobs need
	Useful    msg.Set // nodes that pending stock jobs could use

	Phase    int      // next phase: pending stock jobs, withdrawals, then each partition
	Parts    []string // partitions, first for ordinary malleable jobs, then for best-effort jobs
	Ordinary int      // number of the former
	Answers  [][]malleable.Change
	Question *msg.Question // open question
	Place    []int         // places of its jobs in the full list
}
