package drive

import (
	"context"
	"errors"
	"time"

	"github.com/evoslurm/evoslurm/slurmctl"
)

// ErrReadOnly reports that a command would have changed Slurm, or read a script, although the sidecar only observes.
var ErrReadOnly = errors.New("refused: the sidecar only observes (mode: observe)")

// ReadOnly returns a Slurm that only answers queries of what every user may see. It refuses everything else, and
// calls refused with what it refused. The core asks for none of that while it observes; so a refusal is a bug.
func ReadOnly(s Slurm, refused func(what string)) Slurm { return readOnly{s, refused} }

type readOnly struct {
	Slurm
	refused func(string)
}

func (r readOnly) refuse(what string) error {
	r.refused(what)
	return ErrReadOnly
}

func (r readOnly) BatchScript(context.Context, slurmctl.JobID) (string, error) {
	return "", r.refuse("read a batch script")
}

func (r readOnly) Request(context.Context, slurmctl.JobID, slurmctl.Config) (slurmctl.JobRequest, error) {
	return slurmctl.JobRequest{}, r.refuse("read a job's request")
}

func (r readOnly) Allocate(context.Context, slurmctl.AllocateRequest) (slurmctl.Job, error) {
	return slurmctl.Job{}, r.refuse("allocate nodes")
}

func (r readOnly) Merge(context.Context, slurmctl.JobID) error { return r.refuse("merge a job") }

func (r readOnly) Shrink(context.Context, slurmctl.JobID, []string) error {
	return r.refuse("shrink a job")
}

func (r readOnly) UpdateJob(context.Context, slurmctl.JobID, slurmctl.JobUpdate) error {
	return r.refuse("change a job")
}

func (r readOnly) UpdateTasks(context.Context, slurmctl.JobID, string, slurmctl.JobUpdate) error {
	return r.refuse("change tasks of an array")
}

func (r readOnly) Requeue(context.Context, slurmctl.JobID) error { return r.refuse("requeue a job") }

func (r readOnly) Cancel(context.Context, ...slurmctl.JobID) error { return r.refuse("cancel a job") }

func (r readOnly) Complete(context.Context, ...slurmctl.JobID) error { return r.refuse("end a job") }

func (r readOnly) CancelAs(context.Context, *slurmctl.User, ...slurmctl.JobID) error {
	return r.refuse("cancel a job")
}

func (r readOnly) TryUpdate(context.Context, slurmctl.JobID, time.Time) error {
	return r.refuse("change a job")
}

func (r readOnly) MayAllocate(context.Context, slurmctl.AllocateRequest) error {
	return r.refuse("try an allocation")
}

func (r readOnly) Signal(context.Context, string, slurmctl.SignalOptions, ...slurmctl.JobID) ([]slurmctl.JobID, error) {
	return nil, r.refuse("signal a job")
}

func (r readOnly) CreateReservation(context.Context, slurmctl.ReservationRequest) error {
	return r.refuse("make a reservation")
}

func (r readOnly) UpdateReservation(context.Context, string, slurmctl.ReservationUpdate) error {
	return r.refuse("change a reservation")
}

func (r readOnly) DeleteReservation(context.Context, string) error {
	return r.refuse("delete a reservation")
}

func (r readOnly) PowerUp(context.Context, []string) error { return r.refuse("switch nodes on") }

func (r readOnly) PowerDown(context.Context, []string) error { return r.refuse("switch nodes off") }

func (r readOnly) DrainNodes(context.Context, []string, string) error { return r.refuse("drain nodes") }

func (r readOnly) KeepUp(context.Context, []string) error { return r.refuse("keep nodes on") }

func (r readOnly) Contact(context.Context, []string) error { return r.refuse("contact nodes") }

func (r readOnly) Reconfigure(context.Context) error { return r.refuse("reconfigure Slurm") }
