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
}

// Parts lists what messages and the core's state hold behind interfaces.
var Parts = []any{
	// commands
	msg.Start{}, msg.Grow{}, msg.Shrink{}, msg.Detach{}, msg.Update{}, msg.ExtendLimits{}, msg.Signal{}, msg.Cancel{}, msg.Ask{},
	msg.Reserve{}, msg.ChangeHold{}, msg.GiveUpHold{}, msg.ReadRequest{}, msg.ReadScript{}, msg.ReadLimits{}, msg.ReadAccrual{},
	msg.ReadTimeUsed{}, msg.PowerUp{}, msg.KeepUp{}, msg.Reconfigure{},
	// details of events, fields of the log
	"", 0, int64(0), uint32(0), uint64(0), false, 0.0, []string(nil), map[string]any(nil), slurmctl.JobID(0), slurmctl.JobState(""),
	config.Overrun(""), drivemode.Mode(""),
	// speed-ups
	malleable.Amdahl(0), malleable.Table(nil),
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
	request.ErrVersion, msg.ErrSiteRefuses, slurmctl.ErrNodeConfig, slurmctl.ErrNoName,
}

// Error is an error as it was written: its text, and the known errors and types in it that decisions depend on.
type Error struct {
	Text  string
	Kinds []error
	Parts []error
}

func (r *Error) Error() string   { return r.Text }
func (r *Error) Unwrap() []error { return r.Parts }

// Is reports whether the error that was written was the target.
func (r *Error) Is(target error) bool {
	for _, k := range r.Kinds {
		if k == target {
			return true
		}
	}
	return false
}

func textOf(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func encodeError(e *Encoder, v reflect.Value) {
	err, _ := v.Interface().(error)
	if err == nil {
		e.Uint(none)
		return
	}
	e.Uint(fresh)
	e.Text(err.Error())
	kinds := uint64(0)
	for i, s := range sentinels {
		if errors.Is(err, s) {
			kinds |= 1 << i
		}
	}
	e.Uint(kinds)
	var pending *slurmctl.PendingError
	var command *slurmctl.CommandError
	has := uint64(0)
	if errors.As(err, &pending) {
		has |= 1
	}
	if errors.As(err, &command) {
		has |= 2
	}
	e.Uint(has)
	if pending != nil {
		e.Uint(uint64(pending.Job))
		e.Text(pending.Reason)
		e.Text(textOf(pending.Err))
	}
	if command != nil {
		e.Uint(uint64(len(command.Args)))
		for _, a := range command.Args {
			e.Text(a)
		}
		e.Int(int64(command.ExitCode))
		e.Text(command.Stderr)
		e.Text(textOf(command.Err))
	}
}

func decodeError(d *Decoder, v reflect.Value) {
	if d.Uint() == none {
		return
	}
	r := &Error{Text: d.Text()}
	kinds := d.Uint()
	for i, s := range sentinels {
		if kinds&(1<<i) != 0 {
			r.Kinds = append(r.Kinds, s)
		}
	}
	cause := func(text string) error {
		if text == "" {
			return nil
		}
		return errors.New(text)
	}
	has := d.Uint()
	if has&1 != 0 {
		p := &slurmctl.PendingError{Job: slurmctl.JobID(d.Uint()), Reason: d.Text()}
		p.Err = cause(d.Text())
		r.Parts = append(r.Parts, p)
	}
	if has&2 != 0 {
		c := &slurmctl.CommandError{}
		for range d.Count() {
			c.Args = append(c.Args, d.Text())
		}
		c.ExitCode, c.Stderr = int(d.Int()), d.Text()
		c.Err = cause(d.Text())
		r.Parts = append(r.Parts, c)
	}
	v.Set(reflect.ValueOf(r))
}
