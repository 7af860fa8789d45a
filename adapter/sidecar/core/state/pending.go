package state

import (
	"time"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// Kind is the reason for a task, and determines what follows from its outcome. Each kind has one settle
// function, in the file that asks; the table is settleBy in core.go.
type Kind uint8

// The kinds, by the file that asks.
const (
	_                Kind = iota
	KindDetach            // act.go: take a running job out of its hold
	KindEnforce           // act.go: cancel a job whose nodes were promised to another one
	KindWarn              // warn.go: signal jobs that exceed a step's time, or must give nodes back
	KindShape             // start.go: give a job that is due the nodes of its alternative
	KindStart             // start.go: release a parked job
	KindPark              // kept.go: park a job that Slurm does not start
	KindEvict             // intruders.go: park a job whose nodes another user's job has taken
	KindGrow              // resize.go: bring nodes
	KindShrink            // resize.go: give nodes back
	KindExtend            // timelimit.go: raise time limits
	KindRewrite           // change.go: write a changed request into the job's comment
	KindAccrual           // age.go: read since when a job's age counts
	KindRequest           // asked.go: read what a job asked for
	KindScript            // request.go: read what a job's script asks for
	KindLimits            // rules.go: read limits
	KindTimeUsed          // suspended.go: read how long a job has run
	KindLengthen          // stuck.go: let a hold with a running job end later
	KindEnd               // follow.go: ask how a job ended
	KindLinkEnd           // follow.go: ask how a chain's current job ended
	KindCancelBeside      // follow.go: cancel Slurm jobs that belong to no evolving job any more
	KindSendAway          // intruders.go: take another user's job out of a hold
	KindReconfigure       // leaks.go: free nodes that are allocated to no job
	KindLeave             // undriven.go: release a refused job, or cancel it
	KindPowerUp           // power.go: switch nodes on
	KindKeepUp            // power.go: keep nodes on
	KindPowerDown         // power/act.go: switch nodes off
	KindDrainNodes        // power/act.go: keep jobs from nodes that do not come up
	KindReadyLink         // mirror.go: release a chain's next job before the current one has ended
	KindMirror            // mirror.go: write a planned start
	KindShapeAhead        // mirror.go: give a waiting job the nodes of its alternative
	KindAdjustHold        // holdsync.go: change a hold
	KindCreateHold        // holdsync.go: create a hold
	KindDeleteHold        // holdsync.go: delete a hold
	KindContact           // miscount.go: have idle nodes answer
	KindOpen              // submit.go: open a hold to the user whose process submits an expander
	KindSubmit            // submit.go: a process of the job submits it; the shell has nothing to do
	KindUnfold            // arrays.go: give tasks of an array records of their own
	KindLicenses          // licenses.go: read the numbers of licences
	KindLeaveAll          // besteffort.go: requeue a best-effort job whose last nodes are wanted
	NumberOfKinds
)

// Pending is a task without an outcome yet. It is data: the effect of the outcome follows from it and from the
// state at that time.
type Pending struct {
	Task  msg.Task
	Kind  Kind
	Job   int64  // row of the evolving job that is busy with it; 0: none
	Key   string // for a task that belongs to no job
	Chore bool   // it can wait: see chore
	Args  Args
}

// Args holds what a settle function needs beside the command. Each kind uses a few of them.
type Args struct {
	Seen      time.Time             // when the snapshot with the Slurm job's record was taken; zero: the job's own record counts
	Begun     time.Time             // when the task was asked for
	Started   time.Time             // when the Slurm job started
	Of        slurmctl.JobID        // the Slurm job that the task is about
	UID       uint32                // user of the job that is read
	State     row.State             // next state of the job
	Limit     string                // why Slurm did not start the job
	Nodes     int                   // size of the job after a growth
	Partition string                // partition of the job
	Hold      *slurmctl.Reservation // the hold after the change
	Parts     []StartedPart         // to ask about next
	Longest   time.Duration         // suspension of the parts so far
	What      string                // words for the log
	Release   bool                  // the task lets a job go, as everything is released
}

// CommandOf returns the command of a pending task.
func CommandOf[C msg.Command](p *Pending) C {
	do, _ := p.Task.Command.(C)
	return do
}

// RecordOf returns the record that a pending task changes: the job's own, or the one in the snapshot in which
// the job was seen. If another poll has come since, it returns a record that is never read.
func (c *Core) RecordOf(j *Job, p *Pending, id slurmctl.JobID) *slurmctl.Job {
	if j != nil && p.Args.Seen.IsZero() {
		return &j.Record
	}
	if s := c.Snapshot; s != nil && s.Taken.Equal(p.Args.Seen) && s.ByID[id] != nil {
		if c.Tries.Underway != 0 {
			s.OwnRecords()
		}
		return s.ByID[id]
	}
	return &slurmctl.Job{ID: id, State: slurmctl.Pending}
}

// SeenIn returns the value of Args.Seen for the record of a Slurm job.
func (c *Core) SeenIn(j *Job, r *slurmctl.Job) time.Time {
	if r == &j.Record {
		return time.Time{}
	}
	return c.Snapshot.Taken
}
