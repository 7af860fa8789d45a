package recorder

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/internal/config"
	"github.com/evoslurm/evoslurm/adapter/internal/drivemode"
	"github.com/evoslurm/evoslurm/adapter/job/request"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
	"github.com/evoslurm/evoslurm/planner/malleable"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// types lists the types of values behind the core's interfaces. The order is part of the format.
var types = typesOf(
	// inputs
	msg.Tick{}, msg.Books{}, msg.Observation{}, msg.Planned{}, msg.NodesSeen{}, msg.Outcome{}, msg.Call{}, msg.Withdrawal{},
	msg.ClockSet{}, msg.Stop{}, msg.Configuration{}, msg.Resized{},
	// effects
	msg.Task{}, msg.Poll{}, msg.PollNodes{}, msg.Plan{}, msg.Resize{}, msg.Reply{}, msg.Log{}, msg.Wake{},
	msg.AddJob{}, msg.SaveJob{}, msg.SaveParts{}, msg.SaveAllocation{}, msg.SavePlan{}, msg.AddEvent{}, msg.Settle{}, msg.SaveProfile{},
	// commands
	msg.Start{}, msg.Grow{}, msg.Shrink{}, msg.Detach{}, msg.Update{}, msg.ExtendLimits{}, msg.Signal{}, msg.Cancel{}, msg.Ask{},
	msg.Reserve{}, msg.ChangeHold{}, msg.GiveUpHold{}, msg.ReadRequest{}, msg.ReadScript{}, msg.ReadLimits{}, msg.ReadAccrual{},
	msg.ReadTimeUsed{}, msg.PowerUp{}, msg.KeepUp{}, msg.Reconfigure{},
	// results of commands
	(*slurmctl.Job)(nil), msg.Grown{}, []msg.Part(nil), []slurmctl.Job(nil), msg.Asked{}, msg.Scripted{}, (*slurmctl.Limits)(nil),
	map[slurmctl.JobID]time.Time(nil), time.Duration(0),
	// details of events, fields of the log
	"", 0, int64(0), uint32(0), uint64(0), false, 0.0, []string(nil), map[string]any(nil), slurmctl.JobID(0), slurmctl.JobState(""),
	config.Overrun(""), drivemode.Mode(""),
	// speed-ups
	malleable.Amdahl(0), malleable.Table(nil),
	// changes that are planned in parallel
	msg.Try{}, msg.Tried{},
)

var codes = func() map[reflect.Type]int {
	m := map[reflect.Type]int{}
	for i, t := range types {
		m[t] = i
	}
	return m
}()

func typesOf(values ...any) (all []reflect.Type) {
	for _, v := range values {
		all = append(all, reflect.TypeOf(v))
	}
	return all
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

// recorded is an error as recorded: its text, and the sentinels and types in it that decisions
// depend on.
type recorded struct {
	text  string
	kinds []error
	parts []error
}

func (r *recorded) Error() string   { return r.text }
func (r *recorded) Unwrap() []error { return r.parts }
func (r *recorded) Is(target error) bool {
	for _, k := range r.kinds {
		if k == target {
			return true
		}
	}
	return false
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func (e *encoder) error(err error) {
	if err == nil {
		e.uint(0)
		return
	}
	e.uint(1)
	e.text(err.Error())
	kinds := uint64(0)
	for i, s := range sentinels {
		if errors.Is(err, s) {
			kinds |= 1 << i
		}
	}
	e.uint(kinds)
	var pending *slurmctl.PendingError
	var command *slurmctl.CommandError
	has := uint64(0)
	if errors.As(err, &pending) {
		has |= 1
	}
	if errors.As(err, &command) {
		has |= 2
	}
	e.uint(has)
	if pending != nil {
		e.uint(uint64(pending.Job))
		e.text(pending.Reason)
		e.text(text(pending.Err))
	}
	if command != nil {
		e.value(reflect.ValueOf(command.Args))
		e.b = appendInt(e.b, command.ExitCode)
		e.text(command.Stderr)
		e.text(text(command.Err))
	}
}

func (d *decoder) error() error {
	if d.uint() == 0 {
		return nil
	}
	r := &recorded{text: d.text()}
	kinds := d.uint()
	for i, s := range sentinels {
		if kinds&(1<<i) != 0 {
			r.kinds = append(r.kinds, s)
		}
	}
	cause := func(text string) error {
		if text == "" {
			return nil
		}
		return errors.New(text)
	}
	has := d.uint()
	if has&1 != 0 {
		p := &slurmctl.PendingError{Job: slurmctl.JobID(d.uint()), Reason: d.text()}
		p.Err = cause(d.text())
		r.parts = append(r.parts, p)
	}
	if has&2 != 0 {
		c := &slurmctl.CommandError{}
		d.value(reflect.ValueOf(&c.Args).Elem())
		c.ExitCode, c.Stderr = int(d.int()), d.text()
		c.Err = cause(d.text())
		r.parts = append(r.parts, c)
	}
	return r
}

// savePlan records a saved plan. There are many, and their nodes were just planned: a checksum of
// the nodes suffices.
func (e *encoder) savePlan(p *msg.SavePlan) {
	e.b = binary.AppendVarint(e.b, p.Job)
	e.uint(uint64(len(p.Plan)))
	for i := range p.Plan {
		s := &p.Plan[i]
		e.b = appendInt(e.b, s.Step)
		e.time(s.Start)
		e.time(s.End)
		e.b = appendInt(e.b, s.Nodes)
		e.b = binary.LittleEndian.AppendUint32(e.b, nodeSum(s.NodeList))
	}
}

func (d *decoder) savePlan(p *msg.SavePlan) {
	p.Job = d.int()
	n := d.count()
	for i := 0; i < n && d.err == nil; i++ {
		s := row.Span{Step: int(d.int()), Start: d.time(), End: d.time(), Nodes: int(d.int())}
		if len(d.b) < 4 {
			d.fail()
			return
		}
		s.NodeList = fmt.Sprintf("%s%08x", sumMark, binary.LittleEndian.Uint32(d.b))
		d.b = d.b[4:]
		p.Plan = append(p.Plan, s)
	}
}

const sumMark = "nodes#"

func nodeSum(list string) uint32 {
	if text, ok := strings.CutPrefix(list, sumMark); ok {
		if n, err := strconv.ParseUint(text, 16, 32); err == nil {
			return uint32(n)
		}
	}
	return crc32.ChecksumIEEE([]byte(list))
}
