package slurmsim

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/evoslurm/evoslurm/slurmctl"
)

// config returns what scontrol show config prints for such a cluster.
func (o Options) config(boot time.Time) slurmctl.Config {
	seconds := func(d time.Duration) string { return fmt.Sprintf("%d sec", int(d.Seconds())) }
	values := map[string]string{
		"SLURM_VERSION": o.Version, "ClusterName": "model", "BOOT_TIME": fmt.Sprint(boot.Unix()), "SlurmUser": "root(0)",
		"SelectType": "select/cons_tres", "SelectTypeParameters": "CR_CORE", "BatchStartTimeout": seconds(cmp.Or(o.BatchStartTimeout, longestBatchStart)), "KillWait": seconds(o.KillWait), "MinJobAge": seconds(o.MinJobAge),
		"AccountingStorageType": "accounting_storage/none", "PrologFlags": "", "PriorityType": "priority/basic",
		"SchedulerParameters": o.schedulerParameters(), "SchedulerType": "sched/backfill",
	}
	if len(o.Topology.Switches) > 0 {
		values["TopologyPlugin"] = "topology/tree"
		if o.Topology.Blocks {
			values["TopologyPlugin"] = "topology/block"
		}
	}
	if o.BackfillInterval < 0 {
		values["SchedulerType"] = "sched/builtin"
	}
	if o.Accounting {
		values["AccountingStorageType"] = "accounting_storage/slurmdbd"
	}
	if p := o.PowerSaving; p.on() {
		values["ResumeProgram"], values["SuspendProgram"], values["PrivateData"] = "/resume", "/suspend", "cloud"
		values["SuspendTime"], values["SuspendTimeout"], values["ResumeTimeout"] = seconds(p.SuspendTime), seconds(p.SuspendTimeout), seconds(p.ResumeTimeout)
		values["SuspendExcNodes"] = slurmctl.CompressNodes(p.Except)
	}
	if o.ConsumeMemory {
		values["SelectTypeParameters"] = "CR_CORE_MEMORY"
	}
	if o.DefMemPerCPU > 0 {
		values["DefMemPerCPU"] = fmt.Sprint(o.DefMemPerCPU)
	}
	values["GresTypes"] = strings.Join(gresKinds(o.NodeList), ",")
	if o.Enforce {
		values["AccountingStorageEnforce"] = "associations,limits,qos"
	}
	if o.Preempt != "" {
		values["PreemptType"], values["PreemptMode"] = "preempt/"+o.Preempt, o.PreemptMode
	}
	if o.Contain {
		values["PrologFlags"] = "Alloc,Contain"
	}
	if o.StepMgr {
		values["SlurmctldParameters"] = "enable_stepmgr"
	}
	if o.Epilog {
		values["Epilog"] = "/etc/slurm/epilog"
	}
	if o.MultifactorAge > 0 {
		values["PriorityType"] = "priority/multifactor"
		values["PriorityWeightAge"] = fmt.Sprint(o.MultifactorAge)
		values["PriorityMaxAge"] = fmt.Sprintf("%d-%02d:00:00", int(o.MaxAge.Hours())/24, int(o.MaxAge.Hours())%24)
	}
	return slurmctl.Config{Version: o.Version, ClusterName: "model", Values: values}
}

const longestBatchStart = 65535 * time.Second

// schedulerParameters returns SchedulerParameters.
func (o Options) schedulerParameters() string {
	params := []string{
		fmt.Sprintf("batch_sched_delay=%d", int(o.SchedDelay.Seconds())),
		fmt.Sprintf("sched_interval=%d", int(o.SchedInterval.Seconds())),
	}
	add := func(given bool, param string) {
		if given {
			params = append(params, param)
		}
	}
	add(o.BackfillInterval > 0, fmt.Sprintf("bf_interval=%d", int(o.BackfillInterval.Seconds())))
	add(o.PermitJobExpansion, "permit_job_expansion")
	add(o.DisableShrink, "disable_job_shrink")
	add(o.Defer, "defer")
	return strings.Join(params, ",")
}

// gresKinds returns the names of the nodes' generic resources.
func gresKinds(nodes []slurmctl.Node) (kinds []string) {
	for _, n := range nodes {
		all, _ := slurmctl.ParseGRES(n.GRES)
		for _, g := range all {
			if !slices.Contains(kinds, g.Name) {
				kinds = append(kinds, g.Name)
			}
		}
	}
	return kinds
}
