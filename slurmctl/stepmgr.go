package slurmctl

import (
	"slices"
	"strings"
)

// firstStepMgrRelease is the first release with step managers.
const firstStepMgrRelease = 2405

// StepMgr reports whether jobs of a cluster may have a step manager of their own (Slurm 24.05 and later,
// "stepmgr"), and whether all have one. It needs PrologFlags=Contain. A job has it from its submission on:
// because of SlurmctldParameters=enable_stepmgr, of sbatch --stepmgr, or of a job_submit plugin; see
// JobRequest.StepMgr.
//
// Such a job must never be made smaller with NodeList=. Its step manager does not learn of the
// change. Later steps still run on nodes that the job has lost, while another user's job has them,
// and outlive both jobs (24.11.5 and 26.05.5: measured). From 26.05 on, NumNodes= is safe, but
// Slurm then chooses the nodes. Companions end as whole jobs, with all of their steps.
func StepMgr(cfg Config) (possible, always bool) {
	release, err := parseRelease(cfg.Version)
	if err == nil && release < firstStepMgrRelease || !slices.ContainsFunc(prologContain, cfg.HasPrologFlag) {
		return false, false
	}
	return true, slices.Contains(cfg.List("SlurmctldParameters"), "enable_stepmgr")
}

// InProlog reports whether prologs of a running job have not ended. Its extern steps then do not
// exist yet, and a step manager rejects steps: "Invalid job id specified" (24.11.5 and 26.05.5:
// measured, for about 0.1 s after salloc got the job). Without a step manager, srun waits on its
// own.
func (j *Job) InProlog() bool { return j.State == Running && j.Reason == "Prolog" }

// hasStepMgr reports whether scontrol show job --oneliner shows a step manager. A user who writes
// the same text into the job's name or comment harms only that job.
func hasStepMgr(shown string) bool { return strings.Contains(shown, " StepMgrEnabled=Yes ") }
