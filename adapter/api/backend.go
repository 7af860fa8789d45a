package api

import (
	"context"
	"errors"
	"fmt"
)

// Backend answers the server's requests; the controller implements it. IDs are those of base jobs,
// or of any other Slurm job of an evolving job (a companion, a link of a chain). Errors wrap
// ErrNotFound, ErrConflict, ErrForbidden, or ErrUnavailable (see Errorf); any other error is a
// failure of the sidecar. Many goroutines may call its methods at once.
type Backend interface {
	Status(ctx context.Context) (Status, error)
	// Jobs lists the evolving jobs, the ended ones too if all is set.
	Jobs(ctx context.Context, all bool) ([]Job, error)
	Job(ctx context.Context, id uint32) (Job, error)
	// Allocation returns what the job has now, without waiting.
	Allocation(ctx context.Context, id uint32) (Allocation, error)
	// Next ends step req.From, unless it has ended already, and waits for the next step's nodes. If
	// ctx ends first, it returns the current state with Ready false and no error; the step stays
	// ended.
	Next(ctx context.Context, id uint32, req NextRequest) (Allocation, error)
	// Owner returns the UID of the job's user.
	Owner(ctx context.Context, id uint32) (uint32, error)
}

type callerKey struct{}

// Caller returns the user whose request a Backend answers; root, if the sidecar asks itself.
func Caller(ctx context.Context) uint32 {
	uid, _ := ctx.Value(callerKey{}).(uint32)
	return uid
}

// Chronicler is a Backend that has an event log.
type Chronicler interface {
	Events(ctx context.Context, q EventQuery) ([]Event, error) // oldest first
}

// Strategist is a Backend that can list and change strategies. The caller's name
// is for the event log.
type Strategist interface {
	Strategies(ctx context.Context) ([]Strategy, error)
	UseStrategy(ctx context.Context, name string, r StrategyRequest, caller string) (Strategy, error)
	ReloadStrategies(ctx context.Context, caller string) ([]Strategy, error)
	TryStrategy(ctx context.Context, name string, r StrategyRequest) (Trial, error)
}

// PolicyChooser is a Backend that can list and change malleability policies.
type PolicyChooser interface {
	Policies(ctx context.Context) ([]Strategy, error)
	UsePolicy(ctx context.Context, name string, r StrategyRequest, caller string) (Strategy, error)
}

// The kinds of error that cross the wire. If a Backend's error is one of them (errors.Is), the
// Client's error is of the same kind.
var (
	ErrNotFound    = errors.New("not found")    // 404: no such evolving job
	ErrConflict    = errors.New("conflict")     // 409: not in the job's present state
	ErrForbidden   = errors.New("forbidden")    // 403: not this user's to do
	ErrInvalid     = errors.New("invalid")      // 400: the request makes no sense
	ErrUnavailable = errors.New("unavailable")  // 503: not now, the client asks again
	ErrDenied      = errors.New("unauthorised") // 401: the caller did not prove its identity
)

// Unknown returns the error for a job that does not exist, or that the caller may not know of.
func Unknown(id uint32) error {
	return Errorf(ErrNotFound, "job %d is not an evolving job, or not known yet", id)
}

// Errorf returns an error of one of the kinds above whose text is only the sentence.
func Errorf(kind error, format string, args ...any) error {
	return &kindError{kind: kind, text: fmt.Sprintf(format, args...)}
}

type kindError struct {
	kind error
	text string
}

func (e *kindError) Error() string { return e.text }
func (e *kindError) Unwrap() error { return e.kind }
