package sites

import "github.com/evoslurm/evoslurm/slurmctl/slurmtest"

func stackhpc() Site {
	return Site{
		Name:   "StackHPC (OpenHPC)",
		Source: "stackhpc/ansible-role-openhpc: templates/slurm.conf.j2, two partitions with partition_params as in its README",
		Trap:   "a job of partition hpc takes the nodes of one of compute by suspending it (SUSPEND,GANG)",
		Options: slurmtest.Options{
			PriorityType: "multifactor",
			NodeExtra:    map[string]string{"n[1-8]": "CPUs=4 Sockets=1 CoresPerSocket=2 ThreadsPerCore=2 RealMemory=1900"},
			Partitions: []slurmtest.Partition{
				{Name: "compute", MaxTime: "60-0", Extra: "PriorityTier=1"},
				{Name: "hpc", MaxTime: "60-0", Extra: "PriorityTier=10"},
			},
			ExtraConf: `
SelectTypeParameters=CR_Core
PriorityWeightPartition=1000
PreemptType=preempt/partition_prio
PreemptMode=SUSPEND,GANG
SchedulerTimeSlice=30
ReturnToService=2
PropagateResourceLimitsExcept=MEMLOCK
Epilog=/bin/true
SlurmdTimeout=300
SlurmctldTimeout=300
`,
		},
		Job:     []string{"--partition=compute"},
		Profile: "1@12s,3@15s,1@8s",
		Probes: []Probe{
			{1, "srun -p hpc -N2 hostname", false, ""},
			{1, "sbatch -p compute -N8 --exclusive -t5 -o /dev/null --wrap='sleep 600'", false, "Submitted"},
			{0, "sh -c 'for i in 1 2 3 4 5 6 7 8 9 10; do squeue -ho %T | grep RUNNING && exit; sleep 0.5; done'", false, "RUNNING"},
			{1, "sbatch -p hpc -N2 -t5 -o /dev/null --wrap='sleep 600'", false, "Submitted"},
			{0, "sh -c 'for i in 1 2 3 4 5 6 7 8 9 10; do squeue -ho %P:%T | grep compute:SUSP && exit; sleep 0.5; done'", false, "compute:SUSPENDED"},
		},
	}
}
