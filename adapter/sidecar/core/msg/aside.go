package msg

import (
	"encoding/binary"
	"time"

	"github.com/evoslurm/evoslurm/slurmctl"
)

// A user's job must not crash the sidecar repeatedly. The core notes which job it is handling, in
// memory that the shell keeps in a file, so that the note survives a panic or a kill. After a
// restart, the sidecar reads there which job it was handling when it ended, and sets that job
// aside. Slurm runs or queues the job as usual, but the sidecar does nothing to it or for it.
// Operators see why. All other jobs continue.

// Handling holds the note: the job's number, its stage, and when it was submitted. The number
// is 0 if no job is being handled.
type Handling [16]byte

// Stage describes how the core handles a job.
type Stage byte

// The constants list the stages.
const (
	Again   Stage = iota // the job has come through a whole cycle before
	First                // the job has not come through a whole cycle yet
	Guessed              // the core plans all jobs at once, and the noted job is a new one
)

// At returns the noted job, when it was submitted (in whole seconds), and its stage.
func (h *Handling) At() (slurmctl.JobID, time.Time, Stage) {
	return slurmctl.JobID(binary.LittleEndian.Uint32(h[:])), time.Unix(int64(binary.LittleEndian.Uint64(h[8:])), 0), Stage(h[4])
}

// Note records which job is handled from now on. It writes the number last, so that the note is
// complete whenever the process ends.
func (h *Handling) Note(id slurmctl.JobID, submitted time.Time, stage Stage) {
	binary.LittleEndian.PutUint32(h[:], 0)
	binary.LittleEndian.PutUint64(h[8:], uint64(submitted.Unix()))
	h[4] = byte(stage)
	binary.LittleEndian.PutUint32(h[:], uint32(id))
}

// Done records that no job is being handled.
func (h *Handling) Done() { binary.LittleEndian.PutUint32(h[:], 0) }
