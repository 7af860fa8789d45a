package submit

import (
	"fmt"
	"strings"

	"github.com/evoslurm/evoslurm/adapter/internal/drivemode"
	"github.com/evoslurm/evoslurm/adapter/job/request"
	"github.com/evoslurm/evoslurm/planner"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// checkResizes rejects a profile that resizes a Slurm job twice if Slurm can do so only once, or at
// all if the job has a step manager. A chain's jobs are not resized.
func (r submission) checkResizes(cfg slurmctl.Config) error {
	once, stepMgr := slurmctl.ResizesOnce(cfg), r.options.hasStepMgr(cfg)
	if r.request.Drive.Means().StepsAreJobs || !once && !stepMgr {
		return nil
	}
	profiles := []planner.Profile{r.request.Profile}
	if r.request.Moldable != nil {
		profiles = r.request.Moldable.Alternatives
	}
	for _, p := range profiles {
		if against := request.Resized(p); stepMgr && against != "" {
			return fmt.Errorf("%s: %s: %s", against, request.StepMgrWords, request.StepMgrRemedy)
		}
		if against := request.ResizedTwice(p); once && against != "" {
			return fmt.Errorf("%s, and Slurm %s without slurmdbd resizes a job only once: %s", against, cfg.Version, request.OnceRemedy)
		}
	}
	return nil
}

// hasStepMgr reports whether a job with these options will have a step manager.
func (l layers) hasStepMgr(cfg slurmctl.Config) bool {
	possible, always := slurmctl.StepMgr(cfg)
	_, asked := l.last("stepmgr")
	return possible && (always || asked)
}

// refuseMerge refuses a drive mode that can never work.
func refuseMerge(drive drivemode.Mode, cfg slurmctl.Config) error {
	if !drive.Means().MergesGrowths {
		return nil
	}
	if can, reasons := slurmctl.Capabilities(cfg); !can {
		return fmt.Errorf("--drive=merge cannot work here: %s; leave it out", strings.Join(reasons, "; "))
	}
	return nil
}
