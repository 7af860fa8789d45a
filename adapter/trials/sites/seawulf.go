package sites

import (
	"context"

	"github.com/evoslurm/evoslurm/slurmctl/slurmtest"
)

// seawulf: its numbers of nodes are scaled (8, 16 and 50 are 4, 6 and 8; the minima 6 and
// 16 are 3 and 6).
func seawulf() Site {
	const whole = " OverSubscribe=EXCLUSIVE"
	qos := map[string]string{
		"short-40core": "short-40-core-qos", "debug-40core": "debug-40core-qos", "medium-40core": "medium-40-core-qos",
		"large-40core": "large-40-core-qos", "long-40core": "long-40-core-qos", "extended-40core": "extended-40-core-qos",
		"short-40core-shared": "short-40core-shared-qos",
	}
	return Site{
		Name:   "Stony Brook SeaWulf",
		Source: "scontrol show partition in public notes of its users; jobs per user: its documentation",
		Trap:   "queues by size over the same nodes, each with MinNodes, MaxNodes and a QOS of its own that limits jobs and nodes per user; shared queues beside them",
		Options: slurmtest.Options{
			PriorityType: "multifactor",
			NodeExtra:    map[string]string{"n[1-8]": "CPUs=4 Sockets=2 CoresPerSocket=2 ThreadsPerCore=1 RealMemory=1920"},
			Partitions: []slurmtest.Partition{
				{Name: "short-40core", MaxTime: "04:00:00", Extra: "MinNodes=1 MaxNodes=4 DefaultTime=01:00:00" + whole},
				{Name: "debug-40core", MaxTime: "01:00:00", Extra: "MaxNodes=3 DefaultTime=01:00:00" + whole},
				{Name: "medium-40core", MaxTime: "12:00:00", Extra: "MinNodes=3 MaxNodes=6 DefaultTime=04:00:00" + whole},
				{Name: "large-40core", MaxTime: "08:00:00", Extra: "MinNodes=6 MaxNodes=8 DefaultTime=04:00:00" + whole},
				{Name: "long-40core", MaxTime: "2-0", Extra: "MinNodes=1 MaxNodes=3 DefaultTime=08:00:00" + whole},
				{Name: "extended-40core", MaxTime: "7-0", Extra: "MinNodes=1 MaxNodes=1 DefaultTime=08:00:00" + whole},
				{Name: "short-40core-shared", MaxTime: "04:00:00",
					Extra: "MinNodes=1 MaxNodes=2 DefaultTime=01:00:00 OverSubscribe=YES:4 DefMemPerCPU=240 MaxMemPerCPU=1610 MaxCPUsPerNode=4"},
			},
			ExtraConf: `
SelectTypeParameters=CR_Core_Memory
EnforcePartLimits=ALL
AccountingStorageEnforce=associations,limits,qos
PriorityWeightAge=1000
PriorityMaxAge=7
PriorityCalcPeriod=1
PriorityWeightFairshare=10000
PriorityWeightQOS=1000
`,
		},
		Setup: func(ctx context.Context, c *slurmtest.Cluster) error {
			return accounting(ctx, c, func(o *slurmtest.Options) {
				for i := range o.Partitions {
					o.Partitions[i].Extra += " QOS=" + qos[o.Partitions[i].Name]
				}
			},
				"add qos short-40-core-qos Priority=10 MaxJobsPerUser=8",
				"add qos debug-40core-qos Priority=50 MaxJobsPerUser=1",
				"add qos medium-40-core-qos Priority=10 MaxJobsPerUser=2 MaxTRESPerUser=node=7",
				"add qos large-40-core-qos Priority=10 MaxJobsPerUser=1",
				"add qos long-40-core-qos Priority=5 MaxJobsPerUser=6 GrpTRES=node=5",
				"add qos extended-40-core-qos Priority=1 MaxJobsPerUser=2",
				"add qos short-40core-shared-qos Priority=10 MaxTRESPerUser=cpu=6,mem=3000",
			)
		},
		Job:     []string{"--partition=medium-40core"},
		Stock:   []string{"--partition=short-40core"},
		Profile: "3@12s,4@15s,3@8s",
		Probes: []Probe{
			{1, "sbatch -p medium-40core -N2 --wrap=true", true, "Node count specification invalid"},
			{1, "sbatch -p short-40core -N5 --wrap=true", true, "Node count specification invalid"},
			{0, "salloc --no-shell -p medium-40core -N1", true, "Node count specification invalid"},
			{1, "sbatch -p debug-40core -N1 -t5 -o /dev/null --wrap='sleep 600'", false, "Submitted"},
			{1, "sbatch -p debug-40core -N1 -t5 -o /dev/null --wrap='sleep 600'", false, "Submitted"},
			{1, "sh -c 'for i in $(seq 20); do squeue -ho %T:%r | grep PENDING:QOS && exit; sleep 0.5; done'", false, "QOSMaxJobsPerUserLimit"},
		},
	}
}
