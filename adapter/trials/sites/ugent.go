package sites

import "github.com/evoslurm/evoslurm/slurmctl/slurmtest"

// ugent: as there, DefMemPerCPU times the CPUs of a node passes MaxMemPerNode (345 MB
// are 900 here).
func ugent() Site {
	return Site{
		Name:   "UGent (Quattor)",
		Source: "quattor/configuration-modules-core: ncm-metaconfig/src/main/metaconfig/slurm/tests/profiles/config.pan",
		Trap: "users see neither nodes nor reservations nor other people's jobs; root may have no jobs; a whole node needs --mem, " +
			"without which Slurm takes the job and never starts it (EnforcePartLimits=NO)",
		Options: slurmtest.Options{
			PriorityType: "multifactor", SelectType: "cons_res",
			NodeExtra: map[string]string{"n[1-8]": "CPUs=8 Sockets=4 CoresPerSocket=1 ThreadsPerCore=2 RealMemory=1200"},
			Partitions: []slurmtest.Partition{
				{Name: "abc", MaxTime: "4320", Extra: "DisableRootJobs=YES"},
				{Name: "debug", Nodes: "n[7-8]", MaxTime: "4320", Extra: "State=DOWN DisableRootJobs=NO"},
			},
			SchedulerParameters: "default_queue_depth=128,bf_max_job_test=1024,bf_continue,bf_window=4320",
			ExtraConf: `
SelectTypeParameters=CR_Core_Memory
DefMemPerCPU=123
MaxMemPerNode=900
DisableRootJobs=YES
EnforcePartLimits=NO
JobSubmitPlugins=pbs
PrivateData=jobs,accounts,nodes,reservations,usage
LaunchParameters=use_interactive_step
SlurmctldParameters=preempt_send_user_signal,power_save_interval=20
DependencyParameters=max_depend_depth=5
MaxJobCount=5000
MaxStepCount=40000
MaxTasksPerNode=128
MaxJobId=9999999
AccountingStorageEnforce=qos,safe
ReturnToService=1
KillWait=30
SlurmdTimeout=300
PriorityFlags=FAIR_TREE
PriorityDecayHalfLife=7
PriorityCalcPeriod=5
PriorityMaxAge=28
PriorityWeightAge=5000
PriorityWeightFairshare=7000
PriorityWeightJobSize=2500
`,
		},
		Job:     []string{"--mem=800"},
		Profile: "1@12s,3@15s,1@8s",
		Probes: []Probe{
			{1, "sh -c 'echo nodes=$(sinfo -hN | wc -l)'", false, "nodes=0\n"},
			{2, "sbatch -N1 --mem=100 -o /dev/null --wrap='sleep 600'", false, "Submitted"},
			{1, "sh -c 'echo jobs=$(squeue -h | wc -l)'", false, "jobs=0\n"},
			{0, "salloc --no-shell -N1", true, ""},
			{1, "srun -N2 --exclusive --mem=800 hostname", false, ""},
			{1, "sbatch -N2 --exclusive -o /dev/null --wrap=true", false, "Submitted"},
			{1, "sbatch -N9 -o /dev/null --wrap=true", false, "Submitted"},
			{1, "sh -c 'sleep 3; squeue -ho %D:%T:%r | sort | tr \"\\n\" \" \"'", false, "2:PENDING:MaxMemPerLimit 9:PENDING:PartitionNodeLimit"},
		},
	}
}
