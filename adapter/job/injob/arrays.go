package injob

import (
	"strconv"

	"github.com/evoslurm/evoslurm/slurmctl"
)

// SeeOwnTask tells a client which task of an array the environment's job is, so that its commands mean this task alone.
// It returns the job as Slurm names its steps: JOB, or ARRAY_TASK.
func SeeOwnTask(slurm *slurmctl.Client, getenv func(string) string) string {
	id, err1 := strconv.ParseUint(getenv("SLURM_JOB_ID"), 10, 32)
	array, err2 := strconv.ParseUint(getenv("SLURM_ARRAY_JOB_ID"), 10, 32)
	task, err3 := strconv.ParseUint(getenv("SLURM_ARRAY_TASK_ID"), 10, 32)
	if err1 != nil || err2 != nil || err3 != nil || id == 0 || array == 0 {
		return getenv("SLURM_JOB_ID")
	}
	slurm.SeeTask(slurmctl.JobID(id), slurmctl.JobID(array), uint32(task))
	return strconv.FormatUint(array, 10) + "_" + strconv.FormatUint(task, 10)
}
