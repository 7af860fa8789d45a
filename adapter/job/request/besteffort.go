package request

import (
	"errors"

	"github.com/evoslurm/evoslurm/planner"
)

// A best-effort job (--best-effort) is a malleable job whose smallest size is not promised either. It runs on nodes that
// nobody else has, was promised, or could use, and leaves all of them when they are wanted.

// What becomes of a best-effort job once its last nodes are wanted.
const (
	Requeued  = "requeue" // it waits in the queue again
	Cancelled = "cancel"  // with --no-requeue
)

// BestEffort reports whether the request is for a best-effort job.
func (r Request) BestEffort() bool { return r.Malleable != nil && r.Malleable.BestEffort != "" }

// CheckBestEffort returns an error if a best-effort job asks for something that would have to be promised.
func (r Request) CheckBestEffort() error {
	switch {
	case !r.BestEffort():
		return nil
	case r.Moldable != nil:
		return errors.New("--best-effort and --moldable exclude each other: a best-effort job takes what is free, as --nodes=1-64")
	case r.Drive.Means().StepsAreJobs:
		return errors.New("--best-effort and --drive=chain exclude each other: the steps of a chain are planned; leave --drive out")
	case r.MaxNodes > 0:
		return errors.New("--best-effort and a claim (--max-nodes) exclude each other: nothing is promised to a best-effort job; give --nodes=MIN-MAX")
	case r.Components != nil:
		return errors.New("--best-effort and --component exclude each other: components are planned together; submit each as a best-effort job")
	case len(r.Profile) > 1 || r.Frequencies != nil:
		return errors.New("--best-effort and --profile exclude each other: nothing is promised to a best-effort job; give --nodes=MIN-MAX and --time")
	case r.Aim != planner.NoAim:
		return errors.New("--best-effort and " + r.Aim.Option() + " exclude each other: a best-effort job is not planned; leave one of them out")
	}
	return nil
}
