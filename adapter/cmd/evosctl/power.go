package main

import (
	"fmt"
	"os"

	"github.com/evoslurm/evoslurm/slurmctl"
)

// power reports what it means for evolving jobs that Slurm itself powers nodes down or suspends
// jobs.
func (d *doctor) power(sc slurmctl.Config) {
	saving, on := sc.PowerSaving()
	switch {
	case !on:
		d.add("power saving", ok, "off", "")
	case os.Geteuid() != 0 && !isSlurmUser(sc):
		d.add("power saving", warn, fmt.Sprintf("on, nodes are up within %v: only root, SlurmUser and administrators switch them on", saving.ResumeTimeout),
			"run the sidecar as root: as an operator it leaves switching to Slurm, and starts and growths onto nodes that are off are late by this time")
	case sc.HidesCloud():
		d.add("power saving", warn, fmt.Sprintf("on, nodes are up within %v; State=CLOUD nodes that are off are not shown, and not planned", saving.ResumeTimeout),
			"PrivateData=cloud in slurm.conf, if there are such nodes")
	default:
		d.add("power saving", ok, fmt.Sprintf("on: nodes of coming growths are switched on %v before", saving.ResumeTimeout), "")
	}
	if sc.SuspendsJobs() {
		d.add("preemption", warn, "PreemptMode="+sc.Values["PreemptMode"]+": Slurm suspends jobs for those of a partition with a higher PriorityTier",
			"an evolving job's steps move by the time of its suspension; submit to the partition with the highest PriorityTier if growths must be on time. Slurm suspends no job for an evolving one: it waits for the other jobs' nodes")
	}
}

func isSlurmUser(sc slurmctl.Config) bool {
	_, uid, err := sc.SlurmUser()
	return err == nil && uint32(os.Geteuid()) == uid
}
