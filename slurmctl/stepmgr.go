package slurmctl

import (
	"slices"
	"strings"
)

// firstStepMgrRelease is the first release in which jobs can have a step manager.
const firstStepMgrRelease = 2405

// StepMgr reports whether jobs of a cluster may have a step manager of their own (Slurm 24.05 and later,
// "stepmgr"), and whether all have one. It needs PrologFlags=Contain. A job has it from its submission on:
// because of SlurmctldParameters=enable_stepmgr, of sbatch --stepmgr, or of a job_submit plugin; see
// JobRequest.StepMgr.
//
// Such a job must never be made smaller with NodeList=. Its step manager is not told: later steps still
// run on nodes that were taken from the job, while another user's job has them, and outlive both (24.11.5
// and 26.05.5: measured; from 26.05 on NumNodes= is safe, but Slurm then chooses the nodes). Companions
// end as whole jobs, with all of their steps.
func StepMgr(cfg Config) (possible, always bool) {
	release, err := parseRelease(cfg.Version)
	if err == nil && release < firstStepMgrRelease || !slices.ContainsFunc(prologContain, cfg.HasPrologFlag) {
		return false, false
	}
	return true, slices.Contains(cfg.List("SlurmctldParameters"), "enable_stepmgr")
}

// InProlog reports whether prologs of a running job have not ended, its extern steps are not there yet, and so
// its step manager, if it is to have one, refuses steps: "Invalid job id specified" (24.11.5 and 26.05.5: measured,
// for some 0.1 s after salloc has been granted the job). Without a step manager srun waits by itself.
func (j *Job) InProlog() bool { return j.State == Running && j.Reason == "Prolog" }

// hasStepMgr reports whether scontrol show job --oneliner says that the job has a step manager. A user
// who writes the same into the job's name or comment harms that job alone.
func hasStepMgr(shown string) bool { return strings.Contains(shown, " StepMgrEnabled=Yes ") }
