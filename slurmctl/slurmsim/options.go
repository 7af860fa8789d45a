package slurmsim

import (
	"fmt"
	"time"

	"github.com/evoslurm/evoslurm/slurmctl"
)

// Options describe a cluster. The zero value is 8 nodes, n1 to n8, of 4 CPUs in one
// partition "main", with the scheduler's intervals as Slurm has them.
type Options struct {
	Nodes    int
	CPUs     int   // of a node
	MemoryMB int64 // of a node

	Partitions []slurmctl.Partition // the first that is Default, or the first; Nodes nil: all

	Accounting         bool // slurmdbd: 22.05 resizes a job more than once
	PermitJobExpansion bool
	Contain            bool // PrologFlags=Contain: every job has an extern step
	DisableShrink      bool

	MultifactorAge uint64        // PriorityWeightAge of priority/multifactor; 0: priority/basic
	MaxAge         time.Duration // PriorityMaxAge

	SchedInterval    time.Duration // of the main scheduler; default 60 s
	BackfillInterval time.Duration // default 30 s; negative: sched/builtin
	BackfillWindow   time.Duration // default a day
	BackfillJobs     int           // bf_max_job_test, default 500
	QueueDepth       int           // default_queue_depth, default 100
	MinJobAge        time.Duration // default 300 s

	Start   time.Time // of the virtual clock; zero: 2026-01-01 UTC
	Latency Latency
}

// Latency is how long commands take, as measured (SLURM-FACTS; 22.05 with slurmdbd).
type Latency struct {
	Look    time.Duration // squeue, sinfo, scontrol show; and PerJob for every record
	PerJob  time.Duration
	Change  time.Duration // scontrol update, create, delete, scancel, sbatch
	Merge   time.Duration
	Shrink  time.Duration
	Salloc  time.Duration // until the grant, where it can be had at once
	Release time.Duration // of nodes after their job has ended: COMPLETING
}

// measured are the latencies on 22.05 with slurmdbd.
var measured = Latency{
	Look: 6 * time.Millisecond, PerJob: 6 * time.Microsecond, Change: 6 * time.Millisecond,
	Merge: 300 * time.Millisecond, Shrink: 180 * time.Millisecond, Salloc: 26 * time.Millisecond, Release: 150 * time.Millisecond,
}

func orElse[T comparable](value *T, other T) {
	var zero T
	if *value == zero {
		*value = other
	}
}

// withDefaults fills in what is not given.
func (o Options) withDefaults() Options {
	orElse(&o.Nodes, 8)
	orElse(&o.CPUs, 4)
	orElse(&o.MemoryMB, 1000)
	orElse(&o.SchedInterval, time.Minute)
	orElse(&o.BackfillInterval, 30*time.Second)
	orElse(&o.BackfillWindow, 24*time.Hour)
	orElse(&o.BackfillJobs, 500)
	orElse(&o.QueueDepth, 100)
	orElse(&o.MinJobAge, 300*time.Second)
	orElse(&o.MaxAge, 7*24*time.Hour)
	orElse(&o.Latency, measured)
	if o.Start.IsZero() {
		o.Start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	}
	if len(o.Partitions) == 0 {
		o.Partitions = []slurmctl.Partition{{Name: "main", Default: true, Up: true, MaxTime: slurmctl.Unlimited, DefaultTime: 10 * time.Minute}}
	}
	return o
}

// config is what scontrol show config says of such a cluster.
func (o Options) config(boot time.Time) slurmctl.Config {
	values := map[string]string{
		"SLURM_VERSION": "22.05.8", "ClusterName": "model", "BOOT_TIME": fmt.Sprint(boot.Unix()), "SlurmUser": "root(0)",
		"SelectType": "select/cons_tres", "KillWait": "30 sec", "MinJobAge": fmt.Sprintf("%d sec", int(o.MinJobAge.Seconds())),
		"AccountingStorageType": "accounting_storage/none", "PrologFlags": "", "PriorityType": "priority/basic",
		"SchedulerParameters": fmt.Sprintf("bf_interval=%d,sched_interval=%d", int(o.BackfillInterval.Seconds()), int(o.SchedInterval.Seconds())),
	}
	if o.Accounting {
		values["AccountingStorageType"] = "accounting_storage/slurmdbd"
	}
	if o.PermitJobExpansion {
		values["SchedulerParameters"] += ",permit_job_expansion"
	}
	if o.DisableShrink {
		values["SchedulerParameters"] += ",disable_job_shrink"
	}
	if o.Contain {
		values["PrologFlags"] = "Alloc,Contain"
	}
	if o.MultifactorAge > 0 {
		values["PriorityType"] = "priority/multifactor"
		values["PriorityWeightAge"] = fmt.Sprint(o.MultifactorAge)
	}
	return slurmctl.Config{Version: "22.05.8", ClusterName: "model", Values: values}
}
