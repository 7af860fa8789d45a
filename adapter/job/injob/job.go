package injob

import (
	"errors"
	"fmt"
	"strconv"
)

// Variables that evosctl and evosrun set for scripts and tasks.
const (
	VarJob      = "EVO_JOB_ID"   // the base job's id
	VarStep     = "EVO_STEP"     // 1-based
	VarSteps    = "EVO_STEPS"    //
	VarNodes    = "EVO_NODES"    // number of nodes allocated
	VarNodeList = "EVO_NODELIST" // all nodes allocated, as Slurm writes lists
	VarDrive    = "EVO_DRIVE"    //
	VarDone     = "EVO_DONE"     // 1 after the last step, otherwise empty
	VarLost     = "EVO_LOST"     // nodes that the job lost since the call before, because a node failed
	VarRestarts = "EVO_RESTARTS" // how often Slurm put the job back into the queue
	VarError    = "EVO_ERROR"    // why evosctl failed; unset when it did not
	VarOffer    = "EVO_OFFER"    // the last offer from evosctl wait-event
	VarPart     = "EVO_PART_ID"  // in tasks: the Slurm job that the task runs in
)

// JobID returns the job that a command concerns: the given one, or otherwise the environment's.
// SLURM_JOB_ID says where a script runs. EVO_JOB_ID overrides it only if it was set for this very
// place (in a task on a companion), not if it was inherited from the shell that submitted the job.
func JobID(given string, getenv func(string) string) (uint32, error) {
	text, from := given, "--job"
	if text == "" {
		slurm, evo := getenv("SLURM_JOB_ID"), getenv(VarJob)
		text, from = slurm, "SLURM_JOB_ID"
		if evo != "" && (slurm == "" || slurm == getenv(VarPart)) {
			text, from = evo, VarJob
		}
	}
	if text == "" {
		return 0, errors.New("which job? Neither SLURM_JOB_ID nor EVO_JOB_ID is set: run this inside an evolving job, or name one")
	}
	id, err := strconv.ParseUint(text, 10, 32)
	if err != nil || id == 0 {
		return 0, fmt.Errorf("%s: invalid job ID %q", from, text)
	}
	return uint32(id), nil
}

// PresentStep returns the step that the calling shell believes to be in: EVO_STEP if it was set for
// this job, otherwise 0.
func PresentStep(job uint32, getenv func(string) string) int {
	step, err := strconv.Atoi(getenv(VarStep))
	if err != nil || step < 1 || getenv(VarJob) != strconv.FormatUint(uint64(job), 10) {
		return 0
	}
	return step
}

// PresentOffer returns the last offer that the calling shell received, if it was for this job,
// otherwise 0.
func PresentOffer(job uint32, getenv func(string) string) int64 {
	id, err := strconv.ParseInt(getenv(VarOffer), 10, 64)
	if err != nil || id < 1 || getenv(VarOffer+"_JOB") != strconv.FormatUint(uint64(job), 10) {
		return 0
	}
	return id
}
