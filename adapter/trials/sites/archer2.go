package sites

import (
	"context"
	_ "embed"

	"github.com/evoslurm/evoslurm/slurmctl/slurmtest"
)

//go:embed archer2.lua
var archer2Rules string

// archer2: a day of its priorities is a minute here.
func archer2() Site {
	const (
		cores = "CPUs=8 Sockets=2 CoresPerSocket=2 ThreadsPerCore=2 "
		whole = "OverSubscribe=EXCLUSIVE DefaultTime=1:00:00 "
	)
	return Site{
		Name:   "EPCC ARCHER2",
		Source: "EPCCed/Flexible-Slurm-Configuration-for-Large-Scale-HPC: archer2-slurm-template.conf, job_submit.lua; limits of QOS: its user documentation",
		Trap: "job_submit.lua wants partition and QOS and refuses --mem, -w, -x and foreign reservations; limits by QOS; GRES of nodes that only count; " +
			"PrologFlags=contain; switches; a node kept by a reservation",
		Options: slurmtest.Options{
			Nodes: 9, PriorityType: "multifactor", PrologFlags: "contain,alloc",
			NodeExtra: map[string]string{
				"n[1-6]": cores + "RealMemory=2560 Feature=COMPUTE,StandardMem Weight=500 Gres=archer2-node:1,compute-node:1",
				"n[7-8]": cores + "RealMemory=5120 Feature=COMPUTE,HighMem Weight=1000 Gres=archer2-node:1,compute-node:1",
				"n9":     cores + "RealMemory=5120 Feature=DVN Gres=archer2-node:1",
			},
			Partitions: []slurmtest.Partition{
				{Name: "standard", Nodes: "n[1-8]", MaxTime: "24:00:00",
					Extra: whole + "AllowQos=taskfarm,standard,short,long,largescale,lowpriority,highpriority,reservation"},
				{Name: "highmem", Nodes: "n[7-8]", MaxTime: "24:00:00", Extra: whole + "AllowQos=highmem,reservation"},
				{Name: "serial", Nodes: "n9", MaxTime: "24:00:00", Extra: "OverSubscribe=YES DefaultTime=1:00:00 DefMemPerCPU=198 AllowQos=serial,reservation"},
				{Name: "maintenance-standard", Nodes: "n[1-8]", MaxTime: "24:00:00", Extra: whole + "State=DOWN Hidden=YES AllowQos=maintenance"},
			},
			Files: map[string]string{
				"gres.conf":      "NodeName=n[1-9] Name=archer2-node Count=1 Flags=CountOnly\nNodeName=n[1-8] Name=compute-node Count=1 Flags=CountOnly\n",
				"topology.conf":  "SwitchName=s1 Nodes=n[1-4]\nSwitchName=s2 Nodes=n[5-8]\nSwitchName=s3 Nodes=n9\nSwitchName=top Switches=s[1-3]\n",
				"job_submit.lua": archer2Rules,
			},
			SchedulerParameters: "bf_window=5760,batch_sched_delay=4,max_switch_wait=31536000,bf_continue,defer,max_rpc_cnt=1000,enable_hetjob_steps," +
				"default_queue_depth=256,sched_min_interval=2000000,bf_max_job_test=1000",
			ExtraConf: `
SelectTypeParameters=CR_Core_Memory
GresTypes=archer2-node,compute-node
AccountingStorageTRES=gres/archer2-node,gres/compute-node
AccountingStorageEnforce=associations,qos,limits,safe
EnforcePartLimits=ALL
PrivateData=usage
JobSubmitPlugins=lua
TopologyPlugin=topology/tree
JobRequeue=0
KillOnBadExit=1
MaxArraySize=32001
MaxJobCount=200000
MessageTimeout=30
MinJobAge=259200
PropagateResourceLimits=NONE
ReturnToService=1
UnkillableStepTimeout=1800
PriorityWeightQOS=10000
PriorityWeightAge=500
PriorityMaxAge=14
PriorityWeightJobSize=100
PriorityDecayHalfLife=2
PriorityCalcPeriod=1
PriorityWeightFairshare=300
`,
		},
		Setup: func(ctx context.Context, c *slurmtest.Cluster) error {
			if err := accounting(ctx, c, nil,
				"add qos standard Priority=100 MaxWall=1-0 MaxTRESPerJob=node=6 MaxJobsPerUser=16 MaxSubmitJobsPerUser=64 Flags=DenyOnLimit",
				"add qos short Priority=100 MaxWall=20 MaxTRESPerJob=node=2 MaxJobsPerUser=4 MaxSubmitJobsPerUser=16",
				"add qos long Priority=100 MaxWall=4-0 MaxTRESPerJob=node=4 MaxJobsPerUser=16 MaxSubmitJobsPerUser=16",
				"add qos largescale Priority=100 MaxWall=1-0 MinTRESPerJob=node=7 MaxJobsPerUser=1 MaxSubmitJobsPerUser=8",
				"add qos lowpriority Priority=1 MaxWall=1-0 MaxJobsPerUser=16 MaxSubmitJobsPerUser=16",
				"add qos highpriority Priority=500 MaxWall=1-0 MaxJobsPerUser=16 MaxSubmitJobsPerUser=16",
				"add qos taskfarm,highmem,serial,reservation,maintenance Priority=100",
				"modify account proj set qos+=taskfarm,standard,short,long,largescale,lowpriority,highpriority,highmem,serial,reservation",
			); err != nil {
				return err
			}
			_, err := c.Run(ctx, slurmtest.Root, "scontrol", "create", "reservation", "ReservationName=shortqos",
				"StartTime=now", "Duration=UNLIMITED", "Nodes=n6", "Accounts=proj")
			return err
		},
		Job:     []string{"--partition=standard", "--qos=standard", "--account=proj"},
		Profile: "1@12s,3@15s,1@8s",
		Probes: []Probe{
			{1, "sbatch -N1 --wrap=true", true, "partition"},
			{1, "sbatch -p standard -N1 --wrap=true", true, "QoS"},
			{1, "sbatch -p standard --qos=standard -N1 -x n1 --wrap=true", true, "exclude"},
			{1, "sbatch -p standard --qos=standard -N1 -w n1 --wrap=true", true, "specific nodes"},
			{1, "sbatch -p standard --qos=standard -N1 --mem=100 --wrap=true", true, "memory"},
			{1, "sbatch -p standard --qos=standard --reservation=shortqos -N1 --wrap=true", true, "reservation"},
			{0, "salloc --no-shell -p standard -N1", true, "QoS"},
			{0, "salloc --no-shell -p standard --qos=standard -N1 -x n1", true, "exclude"},
			{1, "sbatch -p standard --qos=standard -N7 -t1 --wrap=true", true, "limit"},
			{1, "sbatch -p standard --qos=short -N1 -o /dev/null --wrap=true", false, "Submitted"},
		},
	}
}
