package sites

import (
	"context"

	"github.com/evoslurm/evoslurm/slurmctl/slurmtest"
)

// ulhpc is scaled: at the site the two partitions share no node; here they share n[2-3], so that
// preemption is visible. Its LinkSpeed=100Mb/s is not a number, so 22.05 rejects it.
func ulhpc() Site {
	return Site{
		Name: "ULHPC iris",
		Source: "ULHPC/puppet-slurm: templates/slurm.conf.erb, manifests/params.pp, tests/advanced.pp, " +
			"tests/vagrant/puppet/hieradata/defaults.yaml, tests/vagrant/scripts/setup_slurm_accounting.sh",
		Trap: "a partition is entered by its QOS, there is no QOS normal, root may have no jobs, all users are of one account; batch preempts interactive; PrologFlags=Contain",
		Options: slurmtest.Options{
			PriorityType: "multifactor", PrologFlags: "Alloc,Contain", SelectType: "cons_res",
			NodeExtra: map[string]string{"n[1-8]": "CPUs=4 Sockets=1 CoresPerSocket=4 ThreadsPerCore=1 RealMemory=1600"},
			Partitions: []slurmtest.Partition{
				{Name: "interactive", Nodes: "n[1-3]", MaxTime: "5-00:00:00", Extra: "DefaultTime=0-10:00:00 DisableRootJobs=YES AllowQos=qos-interactive"},
				{Name: "batch", Nodes: "n[2-8]", MaxTime: "5-00:00:00", Extra: "DefaultTime=0-2:00:00 DisableRootJobs=YES AllowQos=qos-batch"},
			},
			Files: map[string]string{"topology.conf": "SwitchName=s0 Nodes=n[1-3]\nSwitchName=s1 Nodes=n[4-6]\nSwitchName=s2 Nodes=n[7-8]\nSwitchName=s3 Switches=s[0-2]\n"},
			ExtraConf: `
SelectTypeParameters=CR_Core_Memory,CR_CORE_DEFAULT_DIST_BLOCK
DisableRootJobs=YES
EnforcePartLimits=ALL
AccountingStorageEnforce=qos,limits,associations
PreemptType=preempt/qos
PreemptMode=REQUEUE
JobRequeue=0
TopologyPlugin=topology/tree
Licenses=forge:576,perfreport:64
MaxTasksPerNode=512
PropagateResourceLimitsExcept=MEMLOCK
ReturnToService=1
BatchStartTimeout=60
GetEnvTimeout=5
MessageTimeout=30
PriorityFlags=DEPTH_OBLIVIOUS
PriorityDecayHalfLife=5
PriorityWeightAge=2000
PriorityMaxAge=7
PriorityCalcPeriod=1
PriorityWeightFairshare=10000
PriorityWeightPartition=1000
PriorityWeightQOS=1
`,
		},
		Setup: func(ctx context.Context, c *slurmtest.Cluster) error {
			lines := []string{
				"add qos qos-interactive Priority=0",
				"add qos qos-batch Priority=100 Preempt=qos-interactive",
				"add account ALLUSERS cluster=slurmtest qos=qos-interactive,qos-batch",
			}
			for _, u := range c.Users() {
				lines = append(lines, "add user "+u.Name+" account=ALLUSERS", "modify user "+u.Name+" set DefaultAccount=ALLUSERS",
					"delete user "+u.Name+" account=proj")
			}
			return accounting(ctx, c, nil, append(lines, "delete account proj", "delete qos normal")...)
		},
		Job:     []string{"--partition=batch", "--qos=qos-batch"},
		Profile: "1@12s,3@15s,1@8s",
		Probes: []Probe{
			{1, "sbatch -p batch -N1 --wrap=true", true, "qos"},
			{1, "sbatch -p batch --qos=qos-interactive -N1 --wrap=true", true, "qos"},
			{1, "sbatch -p batch --qos=normal -N1 --wrap=true", true, "qos"},
			{0, "salloc --no-shell -p batch --qos=qos-batch -N1", true, ""},
			{0, "salloc --no-shell -p batch -N1", true, ""},
			{1, "srun -p interactive --qos=qos-interactive -N2 hostname", false, ""},
		},
	}
}
