package api

import "context"

// Backend answers the server's requests; the controller implements it. IDs are those of base jobs,
// or of any other Slurm job of an evolving job (a companion, a link of a chain). Errors wrap
// ErrNotFound, ErrConflict, ErrForbidden, or ErrUnavailable (see Errorf); any other error is a
// failure of the sidecar. Many goroutines may call its methods at once.
type Backend interface {
	Status(ctx context.Context) (Status, error)
	// Cluster returns what exists beside evolving jobs. Nobody changes the result.
	Cluster(ctx context.Context) (*Cluster, error)
	// Jobs lists the evolving jobs, the ended ones too if all is set.
	Jobs(ctx context.Context, all bool) ([]Job, error)
	Job(ctx context.Context, id uint32) (Job, error)
	// Owner returns the UID of the job's user.
	Owner(ctx context.Context, id uint32) (uint32, error)
	// Events reads the event log, oldest first.
	Events(ctx context.Context, q EventQuery) ([]Event, error)

	// History reads a page of ended jobs from the database.
	History(ctx context.Context, q HistoryQuery) (History, error)

	// Report sums up a period.
	Report(ctx context.Context, q ReportQuery) (Report, error)

	// Allocation returns what the job has now, without waiting.
	Allocation(ctx context.Context, id uint32) (Allocation, error)
	// Next ends step req.From, unless it has ended already, and waits for the next step's nodes. If
	// ctx ends first, it returns the current state with Ready false and no error; the step stays
	// ended.
	Next(ctx context.Context, id uint32, req NextRequest) (Allocation, error)
	// Change changes the coming steps. It answers a refused change at once, and an accepted one once
	// Slurm has it and, for a growth or shrink, the nodes are there. If ctx ends first, it returns
	// Ready false and no error.
	Change(ctx context.Context, id uint32, req ChangeRequest) (Change, error)
	// Offer waits for an offer to a malleable job; Answer waits until what was accepted is done. If
	// ctx ends first, they return Ready false and no error.
	Offer(ctx context.Context, id uint32, q OfferQuery) (Offer, error)
	Answer(ctx context.Context, id uint32, req AnswerRequest) (Answer, error)
	// Progress takes a report of progress.
	Progress(ctx context.Context, id uint32, r ProgressReport) (Progress, error)
	CancelHolds(ctx context.Context, id uint32, r CancelHolds) (Cancelled, error)
	// Place waits for where the caller's job would run, if it were submitted now. If ctx ends first, it returns Ready false and
	// no error.
	Place(ctx context.Context, q PlacementQuery) (Placement, error)
	// Drain switches the sidecar off, or on again if r is nil.
	Drain(ctx context.Context, r *DrainRequest, caller string) (Drain, error)

	Setter

	// Strategies lists the strategies of a kind. The caller's name is for the event log.
	Strategies(ctx context.Context, kind StrategyKind) ([]Strategy, error)
	UseStrategy(ctx context.Context, kind StrategyKind, name string, r StrategyRequest, caller string) (Strategy, error)
	ReloadStrategies(ctx context.Context, caller string) ([]Strategy, error) // of both kinds; lists those that plan
	TryStrategy(ctx context.Context, name string, r StrategyRequest) (Trial, error)
}

// StrategyKind says what a strategy is used for.
type StrategyKind int

// The kinds: strategies that plan, and malleability policies.
const (
	Planning StrategyKind = iota
	Resizing
)

type callerKey struct{}

// Caller returns the user whose request a Backend answers; root, if the sidecar asks itself.
func Caller(ctx context.Context) uint32 {
	uid, _ := ctx.Value(callerKey{}).(uint32)
	return uid
}
