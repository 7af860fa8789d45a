package sites

import (
	"fmt"

	"github.com/evoslurm/evoslurm/slurmctl/slurmtest"
)

func deepops() Site {
	links := map[string]string{}
	for i := range 8 {
		links[fmt.Sprintf("gpu%d", i)] = "/dev/zero"
	}
	return Site{
		Name:   "NVIDIA DeepOps",
		Source: "NVIDIA/deepops: roles/slurm/templates/etc/slurm/slurm.conf",
		Trap:   "8 GPUs on every node, which a job of whole nodes has unasked, and Slurm merges no job that has GRES; no memory in a job's TRES; one task a core",
		Options: slurmtest.Options{
			PrologFlags: "Alloc,Serial",
			NodeExtra:   map[string]string{"n[1-8]": "CPUs=8 Sockets=2 CoresPerSocket=2 ThreadsPerCore=2 RealMemory=2063 Gres=gpu:8"},
			Partitions:  []slurmtest.Partition{{Name: "batch", MaxTime: "1-0", Extra: "DefMemPerCPU=0 OverSubscribe=NO DefaultTime=00:30:00"}},
			Files:       map[string]string{"gres.conf": "AutoDetect=off\nNodeName=n[1-8] Name=gpu File=@DIR@/gpu[0-7]\n"},
			Links:       links,
			ExtraConf: `
SelectTypeParameters=CR_Core_Memory,CR_CORE_DEFAULT_DIST_BLOCK,CR_ONE_TASK_PER_CORE
GresTypes=gpu
AccountingStorageTRES=gres/gpu
PropagateResourceLimitsExcept=MEMLOCK
Prolog=/bin/true
Epilog=/bin/true
ReturnToService=2
SlurmdTimeout=300
`,
		},
		Profile: "1@12s,3@15s,1@8s",
		Probes: []Probe{
			{1, "srun -N2 --exclusive --gpus-per-node=8 sh -c 'echo gpus=$CUDA_VISIBLE_DEVICES'", false, "gpus=0,1,2,3,4,5,6,7"},
			{1, "sbatch -N2 --exclusive -o /dev/null --wrap='sleep 600'", false, "Submitted"},
			{1, "sh -c 'for i in 1 2 3 4 5 6 7 8 9 10; do scontrol -o show job | grep RUNNING && exit; sleep 0.5; done'", false, "gres/gpu=16"},
		},
	}
}
