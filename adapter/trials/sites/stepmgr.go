package sites

import "github.com/evoslurm/evoslurm/slurmctl/slurmtest"

// stepMgr has, among its probes, the bug of Slurm that docs/slurm-bugs.md describes first.
func stepMgr() Site {
	const id = "$(squeue -hn shrunk -o %i)"
	return Site{
		Name: "stepmgr", Slurm: "24.11",
		Trap: "SlurmctldParameters=enable_stepmgr: a job's later steps run on nodes that NodeList= took from it, while another user's exclusive job has them",
		Options: slurmtest.Options{PrologFlags: "Contain", ExtraConf: "SlurmctldParameters=enable_stepmgr\n",
			Partitions: []slurmtest.Partition{{Name: "main", Extra: "DefaultTime=10 OverSubscribe=EXCLUSIVE"}}},
		Probes: []Probe{
			{1, "sbatch -J shrunk -N3 -w n[1-3] -o /dev/null --wrap='sleep 600'", false, "Submitted"},
			{1, "sh -c 'until [ $(squeue -hn shrunk -o %T:%r) = RUNNING:None ]; do sleep 0.2; done; scontrol show job " + id + "'", false, "StepMgrEnabled=Yes"},
			{1, "sh -c 'scontrol update JobId=" + id + " NodeList=n1'", false, ""},
			{2, "sbatch -J rival -N2 -w n[2-3] --exclusive -o /dev/null --wrap='sleep 600'", false, "Submitted"},
			{2, "sh -c 'until [ $(squeue -hn rival -o %T:%r) = RUNNING:None ]; do sleep 0.2; done; squeue -ho \"%j %N\" | sort | tr \"\\n\" \" \"'", false, "rival n[2-3] shrunk n1 "},
			{1, "sh -c 'srun --jobid=" + id + " -N1 -n1 -w n3 --overlap sh -c \"echo ran on \\$SLURMD_NODENAME\"'", false, "ran on n3"},
			{1, "sh -c 'srun --jobid=" + id + " -N1 -n1 -w n4 --overlap true'", true, "not available"},
			{1, "sh -c 'srun --jobid=" + id + " -N1 -n1 -x n2,n3 --overlap sh -c \"echo ran on \\$SLURMD_NODENAME\"'", false, "ran on n1"},
		},
	}
}
