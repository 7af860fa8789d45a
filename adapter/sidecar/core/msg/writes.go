package msg

import (
	"time"

	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
	"github.com/evoslurm/evoslurm/planner"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// Write is a change of the database. All writes of one step are one transaction, together with the intents of
// its tasks. The transaction ends before any of these tasks begins, so a crash leaves no half-written state.
type Write interface {
	Effect
	write()
}

type (
	// AddJob adds a job with everything known about it or, with Again, a job that was considered ended.
	AddJob struct {
		Job   row.Job
		Parts []row.Part
		Bound string
		Again bool
	}
	// SaveJob saves the current state of a job.
	SaveJob struct{ Job row.Job }
	// SaveProfile replaces the profile that a job asks for.
	SaveProfile struct {
		Job     int64
		Profile planner.Profile
	}
	// SaveParts saves which Slurm jobs the job consists of.
	SaveParts struct {
		Job   int64
		Parts []row.Part
	}
	// SaveAllocation saves what the job has from then on.
	SaveAllocation struct {
		Job      int64
		Step     int
		At       time.Time
		Nodes    int
		NodeList string
	}
	// SavePlan replaces the plan of a job.
	SavePlan struct {
		Job  int64
		Plan []row.Span
	}
	// AddEvent appends to the event log.
	AddEvent struct {
		Job    int64 // 0: none
		At     time.Time
		Kind   string
		Detail any
	}
	// SaveHold saves a row of the ledger of holds.
	SaveHold struct{ Hold row.Hold }
	// SavePromise saves a row of the ledger of promises.
	SavePromise struct{ Promise row.Promise }
	// SaveDelay saves a row of the ledger of delays.
	SaveDelay struct{ Delay row.Delay }
	// SaveGrowDelay saves a row of the ledger of growth on demand.
	SaveGrowDelay struct{ Row row.GrowDelay }
	// SaveEpilog saves how long jobs of a partition are COMPLETING.
	SaveEpilog struct{ Row row.Epilog }
	// SaveArrivals saves what was learnt of an hour of the week in a partition.
	SaveArrivals struct{ Row row.Arrivals }
	// Settle saves the outcome of an intent; "": it worked.
	Settle struct {
		Intent int64
		At     time.Time
		Err    string
	}
)

func (AddJob) effect() {}

func (SaveJob) effect() {}

func (SaveProfile) effect() {}

func (SaveParts) effect() {}

func (SaveAllocation) effect() {}

func (SavePlan) effect() {}

func (AddEvent) effect() {}

func (SaveHold) effect() {}

func (SavePromise) effect() {}

func (SaveDelay) effect() {}

func (SaveGrowDelay) effect() {}

func (SaveEpilog) effect() {}

func (SaveArrivals) effect() {}

func (Settle) effect() {}

func (AddJob) write() {}

func (SaveJob) write() {}

func (SaveProfile) write() {}

func (SaveParts) write() {}

func (SaveAllocation) write() {}

func (SavePlan) write() {}

func (AddEvent) write() {}

func (SaveHold) write() {}

func (SavePromise) write() {}

func (SaveDelay) write() {}

func (SaveGrowDelay) write() {}

func (SaveEpilog) write() {}

func (SaveArrivals) write() {}

func (Settle) write() {}

func Spans(plan []PlannedStep) []row.Span { return SpansBy(plan, slurmctl.CompressNodes) }

func SpansBy(plan []PlannedStep, text func([]string) string) []row.Span {
	rows := make([]row.Span, len(plan))
	for i, p := range plan {
		rows[i] = row.Span{Step: i + 1, Start: time.Unix(p.Start, 0), End: time.Unix(p.End, 0),
			Nodes: len(p.Nodes), NodeList: text(p.Nodes)}
	}
	return rows
}
