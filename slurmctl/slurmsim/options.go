package slurmsim

import (
	"fmt"
	"time"

	"github.com/evoslurm/evoslurm/slurmctl"
)

// Options describes a cluster. The zero value is 8 nodes, n1 to n8, with 4 CPUs each in one
// partition "main", and with Slurm's default scheduling intervals.
type Options struct {
	Nodes    int             // n1, n2, …
	CPUs     int             // per node
	MemoryMB int64           // per node
	NodeList []slurmctl.Node // replaces the three above: names, CPUs, memory, features, GRES, and weights

	Topology slurmctl.Topology // of topology/tree or topology/block, in the order of topology.conf; default: none

	Licenses []slurmctl.License

	Federation string // that the cluster is in

	Partitions []Partition // default "main" with all nodes

	Version            string // reported by Slurm; default 22.05.8, or 24.11.5 with StepMgr; from 26.05 on, topologies count as they do there
	Accounting         bool   // slurmdbd, without which 22.05 resizes a job only once
	PermitJobExpansion bool
	// BatchStartTimeout as in slurm.conf. Zero stands for the most that can be, with which jobs are merged on any nodes; Slurm's
	// default is 10 s. The model requeues no job for it.
	BatchStartTimeout time.Duration
	Contain           bool          // PrologFlags=Contain: every job has an extern step
	StepMgr           bool          // enable_stepmgr: every job has a step manager; implies Contain, which it needs
	Prolog            time.Duration // how long jobs show that their prologs run; prologs have no other effect here
	DisableShrink     bool
	Epilog            bool // nodes have an Epilog, which has no other effect here

	MultifactorAge uint64        // PriorityWeightAge of priority/multifactor; 0 for priority/basic
	MaxAge         time.Duration // PriorityMaxAge, default 7 days

	SchedInterval    time.Duration // interval of the main scheduler's full passes; default 60 s
	SchedDelay       time.Duration // batch_sched_delay, default 3 s
	SchedMinInterval time.Duration // sched_min_interval, default 2 µs
	QueueDepth       int           // default_queue_depth, default 100
	BackfillInterval time.Duration // default 30 s; negative for sched/builtin
	BackfillWindow   time.Duration // default a day
	BackfillStep     time.Duration // bf_resolution, default 60 s
	BackfillJobs     int           // bf_max_job_test, default 500
	Defer            bool          // jobs are not tried at submission

	ConsumeMemory bool // SelectTypeParameters has CR_Core_Memory
	DefMemPerCPU  int64

	Enforce bool // AccountingStorageEnforce=associations,limits,qos
	Bounds  []Bound

	Preempt     string              // PreemptType: "partition_prio", "qos" or none
	PreemptMode string              // "REQUEUE" or "CANCEL"
	QOSPreempts map[string][]string // which QOS each QOS preempts

	PowerSaving PowerSaving

	Plugin Plugin `codec:"-"`

	// The moments within a second at which slurmctld's loop and its backfill scheduler look.
	LoopPhase, BackfillPhase time.Duration

	MinJobAge time.Duration // default 300 s
	KillWait  time.Duration // default 30 s

	Start   time.Time // of the clock; zero: 2026-01-01 UTC
	Latency Latency
	PollCPU time.Duration // processor time of a squeue of all jobs, beyond that of other commands; 0: no command takes any
	Seed    uint64        // of the randomness in Latency.Spread

	// Faults, if set, is called at the start of every command.
	Faults func(Command) Fault `codec:"-"`

	// Events, if set, is called whenever a job starts, changes size, or ends.
	Events func(Event) `codec:"-"`
}

// Event reports how many nodes a job has now: 0 once it has ended and its nodes are free.
type Event struct {
	At    time.Time
	Job   slurmctl.JobID
	State slurmctl.JobState
	Nodes int
}

// Partition describes a partition; nil Nodes means all nodes.
type Partition struct {
	slurmctl.Partition
	Tier        int    // PriorityTier, default 1
	PreemptMode string // how its jobs are preempted; "" for the cluster's mode
}

// Latency holds how long commands take, as measured (22.05 with slurmdbd).
type Latency struct {
	Look    time.Duration // squeue, sinfo, scontrol show; plus PerJob for every record
	PerJob  time.Duration
	Change  time.Duration // scontrol update, create, delete, scancel, sbatch
	Merge   time.Duration
	Shrink  time.Duration
	Salloc  time.Duration // until the grant, if nodes are free
	Launch  time.Duration // from the grant until a batch script runs
	Release time.Duration // how long nodes stay COMPLETING after their job has ended
	Lost    time.Duration // until a command gives up on an absent slurmctld

	// Spread is the mean random extra time of every command, as a share of its duration.
	Spread float64
}

// measured holds the latencies on 22.05 with slurmdbd.
var measured = Latency{
	Look: 6 * time.Millisecond, PerJob: 6 * time.Microsecond, Change: 6 * time.Millisecond,
	Merge: 300 * time.Millisecond, Shrink: 180 * time.Millisecond, Salloc: 26 * time.Millisecond,
	Launch: 60 * time.Millisecond, Release: 90 * time.Millisecond, Lost: 10 * time.Second,
}

// Measured returns the latencies that commands have if Options.Latency is zero.
func Measured() Latency { return measured }

// PowerSaving describes how Slurm powers idle nodes down and up; zero if it does not.
type PowerSaving struct {
	SuspendTime    time.Duration // how long a node is idle before it powers down
	SuspendTimeout time.Duration // how long it takes to power down, unusable by jobs
	ResumeTimeout  time.Duration // how long it may take to power up before it is set down
	Boot           time.Duration // how long it takes to power up
	Except         []string      // nodes that stay on
	Off            []string      // nodes that are off at the start
}

// on reports whether power saving is configured.
func (p *PowerSaving) on() bool { return p.SuspendTime > 0 }

func orElse[T comparable](value *T, other T) {
	var zero T
	if *value == zero {
		*value = other
	}
}

// withDefaults fills in missing options.
func (o Options) withDefaults() Options {
	orElse(&o.Nodes, 8)
	orElse(&o.CPUs, 4)
	orElse(&o.MemoryMB, 1000)
	if o.NodeList == nil {
		for i := range o.Nodes {
			o.NodeList = append(o.NodeList, slurmctl.Node{Name: fmt.Sprintf("n%d", i+1), CPUs: o.CPUs, Memory: o.MemoryMB, Weight: 1})
		}
	}
	o.Nodes = len(o.NodeList)
	o.Contain = o.Contain || o.StepMgr
	if o.StepMgr {
		orElse(&o.Version, "24.11.5")
	}
	orElse(&o.Version, "22.05.8")
	orElse(&o.SchedInterval, time.Minute)
	orElse(&o.SchedDelay, 3*time.Second)
	orElse(&o.SchedMinInterval, 2*time.Microsecond)
	orElse(&o.QueueDepth, 100)
	orElse(&o.BackfillInterval, 30*time.Second)
	orElse(&o.BackfillWindow, 24*time.Hour)
	orElse(&o.BackfillStep, time.Minute)
	orElse(&o.BackfillJobs, 500)
	orElse(&o.MinJobAge, 300*time.Second)
	orElse(&o.KillWait, 30*time.Second)
	orElse(&o.MaxAge, 7*24*time.Hour)
	spread := o.Latency.Spread
	o.Latency.Spread = 0
	orElse(&o.Latency, measured)
	o.Latency.Spread = spread
	if o.Start.IsZero() {
		o.Start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	}
	if len(o.Partitions) == 0 {
		o.Partitions = []Partition{{Partition: slurmctl.Partition{Name: "main", Default: true, Up: true, MaxTime: slurmctl.Unlimited, DefaultTime: 10 * time.Minute}}}
	}
	return o
}
