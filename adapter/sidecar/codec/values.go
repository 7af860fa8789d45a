package codec

import (
	"context"
	"errors"
	"reflect"
	"time"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/internal/config"
	"github.com/evoslurm/evoslurm/adapter/internal/drivemode"
	"github.com/evoslurm/evoslurm/adapter/job/request"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/planner/malleable"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// Messages lists the inputs and effects of the core. Like that of all lists here, the order is part of the format.
var Messages = []any{
	// inputs
	msg.Tick{}, msg.Books{}, msg.Observation{}, msg.Planned{}, msg.NodesSeen{}, msg.Outcome{}, msg.Call{}, msg.Withdrawal{},
	msg.ClockSet{}, msg.Stop{}, msg.Configuration{}, msg.Resized{}, msg.Tried{},
	// effects
	msg.Task{}, msg.Poll{}, msg.PollNodes{}, msg.Plan{}, msg.Resize{}, msg.Reply{}, msg.Log{}, msg.Wake{},
	msg.AddJob{}, msg.SaveJob{}, msg.SaveParts{}, msg.SaveAllocation{}, msg.SavePlan{}, msg.AddEvent{}, msg.Settle{}, msg.SaveProfile{},
	msg.Try{},
	// results of commands
	(*slurmctl.Job)(nil), msg.Grown{}, []msg.Part(nil), []slurmctl.Job(nil), msg.Asked{}, msg.Scripted{}, (*slurmctl.Limits)(nil),
	map[slurmctl.JobID]time.Time(nil), time.Duration(0),
	// effects added later
	msg.SaveHold{}, msg.SavePromise{}, msg.SaveDelay{}, msg.SaveGrowDelay{}, msg.SaveEpilog{}, msg.SaveArrivals{},
	// results of commands added later
	[]slurmctl.LicenseStock(nil), []slurmctl.JobID(nil),
}

// Parts lists what messages and the core's state hold behind interfaces.
var Parts = []any{
	// commands
	msg.Start{}, msg.Grow{}, msg.Shrink{}, msg.Detach{}, msg.Update{}, msg.Unfold{}, msg.ExtendLimits{}, msg.Signal{}, msg.Cancel{}, msg.Requeue{}, msg.Ask{},
	msg.Reserve{}, msg.ChangeHold{}, msg.GiveUpHold{}, msg.ReadRequest{}, msg.ReadScript{}, msg.ReadLimits{}, msg.ReadAccrual{},
	msg.ReadTimeUsed{}, msg.PowerUp{}, msg.KeepUp{}, msg.PowerDown{}, msg.DrainNodes{}, msg.Reconfigure{},
	// details of events, fields of the log
	"", 0, int64(0), uint32(0), uint64(0), false, 0.0, []string(nil), map[string]any(nil), slurmctl.JobID(0), slurmctl.JobState(""),
	config.Overrun(""), drivemode.Mode(""),
	// speed-ups
	malleable.Amdahl(0), malleable.Table(nil),
	// commands added later
	msg.Contact{}, msg.ReadLicenses{},
}

// sentinels lists the errors that other errors are compared with. The order is part of the format.
var sentinels = []error{
	context.Canceled, context.DeadlineExceeded,
	msg.ErrBackfilling, msg.ErrNotWritten, msg.ErrNeverMerged,
	slurmctl.ErrUnknownJob, slurmctl.ErrAlreadyDone, slurmctl.ErrNotPending, slurmctl.ErrDependency, slurmctl.ErrNodeCount,
	slurmctl.ErrNodeName, slurmctl.ErrHasSteps, slurmctl.ErrDBIndex, slurmctl.ErrNotSupported, slurmctl.ErrInvalidAccount,
	slurmctl.ErrAccessDenied, slurmctl.ErrUnknownReservation, slurmctl.ErrReservationExists, slurmctl.ErrReservationOverlap,
	slurmctl.ErrReservationInUse, slurmctl.ErrReservationBegun, slurmctl.ErrNodesBusy, slurmctl.ErrLimit, slurmctl.ErrUnspecified, slurmctl.ErrUnreachable,
	slurmctl.ErrNoSlurmdbd, slurmctl.ErrWantsAccount,
	api.ErrNotFound, api.ErrConflict, api.ErrForbidden, api.ErrInvalid, api.ErrUnavailable, api.ErrDenied,
	request.ErrVersion, msg.ErrSiteRefuses, slurmctl.ErrNodeConfig, slurmctl.ErrNoName, slurmctl.ErrFenced,
}

// Error is an error as it was written: its text, and the known errors and types in it that decisions depend on.
type Error struct {
	Text    string
	Kinds   uint64 // a bit for each of sentinels
	Pending []pendingError
	Command []commandError
}

type (
	pendingError struct {
		Job         slurmctl.JobID
		Reason, Err string
	}
	commandError struct {
		Args        []string
		ExitCode    int
		Stderr, Err string
	}
)

// errorOf returns an error as it is written.
func errorOf(err error) *Error {
	r := &Error{Text: err.Error()}
	for i, s := range sentinels {
		if errors.Is(err, s) {
			r.Kinds |= 1 << i
		}
	}
	if p := new(slurmctl.PendingError); errors.As(err, &p) {
		r.Pending = []pendingError{{p.Job, p.Reason, textOf(p.Err)}}
	}
	if c := new(slurmctl.CommandError); errors.As(err, &c) {
		r.Command = []commandError{{c.Args, c.ExitCode, c.Stderr, textOf(c.Err)}}
	}
	return r
}

func textOf(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func (r *Error) Error() string { return r.Text }

// Is reports whether the error that was written was the target.
func (r *Error) Is(target error) bool {
	for i, s := range sentinels {
		if s == target {
			return r.Kinds&(1<<i) != 0
		}
	}
	return false
}

// Unwrap returns the errors of known types that were in it.
func (r *Error) Unwrap() (all []error) {
	cause := func(text string) error {
		if text == "" {
			return nil
		}
		return &Error{Text: text}
	}
	for _, p := range r.Pending {
		all = append(all, &slurmctl.PendingError{Job: p.Job, Reason: p.Reason, Err: cause(p.Err)})
	}
	for _, c := range r.Command {
		all = append(all, &slurmctl.CommandError{Args: c.Args, ExitCode: c.ExitCode, Stderr: c.Stderr, Err: cause(c.Err)})
	}
	return all
}

func encodeError(e *Encoder, v reflect.Value) {
	if v.IsNil() {
		e.Uint(none)
		return
	}
	e.Uint(fresh)
	err, _ := v.Interface().(error)
	Write(e, errorOf(err))
}

func decodeError(d *Decoder, v reflect.Value) {
	if d.Uint() != none {
		var r Error
		Read(d, &r)
		v.Set(reflect.ValueOf(errorOf(&r)))
	}
}
