package sites

import (
	"context"
	"strings"

	"github.com/evoslurm/evoslurm/slurmctl/slurmtest"
)

// more are configurations with one trap each that published slurm.conf files have
// besides, on eight nodes of four CPUs.
func more() []Site {
	const whole = "DefaultTime=10 OverSubscribe=EXCLUSIVE"
	part := func(extra string) []slurmtest.Partition { return []slurmtest.Partition{{Name: "main", Extra: extra}} }
	qos := func(lines ...string) func(context.Context, *slurmtest.Cluster) error {
		return func(ctx context.Context, c *slurmtest.Cluster) error { return accounting(ctx, c, nil, lines...) }
	}
	lua := func(submit, modify string) map[string]string {
		return map[string]string{"job_submit.lua": "function slurm_job_submit(job, parts, uid)\n" + submit + "\nreturn slurm.SUCCESS\nend\n" +
			"function slurm_job_modify(job, record, parts, uid)\n" + modify + "\nreturn slurm.SUCCESS\nend\nreturn slurm.SUCCESS\n"}
	}
	sites := []Site{
		{
			Name: "linear", Trap: "whole nodes by SelectType=select/linear, memory too",
			Options: slurmtest.Options{SelectType: "linear", Partitions: part(whole), ExtraConf: "SelectTypeParameters=CR_Memory\nDefMemPerNode=500\n"},
		},
		{
			Name: "sockets", Trap: "CR_Socket_Memory, least loaded nodes first (LLN), nodes of two sizes, DefMemPerNode",
			Options: slurmtest.Options{
				NodeExtra:  map[string]string{"n[1-4]": "CPUs=4 Sockets=2 CoresPerSocket=2", "n[5-8]": "CPUs=8 Sockets=2 CoresPerSocket=4"},
				Partitions: part("DefaultTime=10 LLN=YES DefMemPerNode=600"),
				ExtraConf:  "SelectTypeParameters=CR_Socket_Memory,CR_LLN\n",
			},
			Profile: "1@10s,6@12s,1@5s",
		},
		{
			Name: "requeue", Trap: "PriorityType=basic; partitions that preempt by requeueing",
			Options: slurmtest.Options{
				PriorityType: "basic",
				Partitions:   []slurmtest.Partition{{Name: "low", Extra: "DefaultTime=10 PriorityTier=1 PreemptMode=REQUEUE"}, {Name: "high", Extra: "PriorityTier=10 PreemptMode=OFF"}},
				ExtraConf:    "PreemptType=preempt/partition_prio\nPreemptMode=REQUEUE\n",
			},
		},
		{
			Name: "cancel", Trap: "a QOS that preempts by cancelling, with a time of grace",
			Options: slurmtest.Options{PriorityType: "multifactor", Partitions: part(whole),
				ExtraConf: "PreemptType=preempt/qos\nPreemptMode=CANCEL\nAccountingStorageEnforce=associations,limits,qos\n"},
			Setup: qos("add qos standby GraceTime=10 Priority=0", "add qos owner Priority=100 Preempt=standby", "modify account proj set qos+=standby,owner"),
			Job:   []string{"--qos=standby"},
		},
		{
			Name: "prolog", Trap: "PrologFlags=Contain and prologs that take time",
			Options: slurmtest.Options{PrologFlags: "Alloc,Contain", Partitions: part(whole), Files: map[string]string{"prolog.sh": "#!/bin/sh\nsleep 2\n"},
				ExtraConf: "Prolog=@DIR@/prolog.sh\nPrologEpilogTimeout=60\n"},
		},
		{
			Name: "nohold", Trap: "PrologFlags=Alloc,NoHold; a prolog of slurmctld and epilogs that take time, CompleteWait",
			Options: slurmtest.Options{PrologFlags: "Alloc,NoHold", Partitions: part(whole), Files: map[string]string{"slow.sh": "#!/bin/sh\nsleep 3\n"},
				ExtraConf: "PrologSlurmctld=@DIR@/slow.sh\nEpilog=@DIR@/slow.sh\nEpilogSlurmctld=@DIR@/slow.sh\nCompleteWait=8\n"},
		},
		{
			Name: "safe", Trap: "AccountingStorageEnforce=safe with a budget of minutes; EnforcePartLimits=ANY",
			Options: slurmtest.Options{PriorityType: "multifactor", Partitions: part(whole), ExtraConf: "AccountingStorageEnforce=associations,limits,qos,safe\nEnforcePartLimits=ANY\n"},
			Setup:   qos("modify account proj set GrpTRESMins=cpu=2000"),
		},
		{
			Name: "walltime", Trap: "job_submit/require_timelimit",
			Options: slurmtest.Options{Partitions: part(whole), ExtraConf: "JobSubmitPlugins=require_timelimit\n"},
			Stock:   []string{},
			Probes:  []Probe{{1, "sbatch -N1 --wrap=true", true, "time limit"}},
		},
		{
			Name: "memory", Trap: "MaxMemPerCPU, which raises a job's CPUs for its memory; DefMemPerCPU",
			Options: slurmtest.Options{Partitions: part("DefaultTime=10 DefMemPerCPU=200 MaxMemPerCPU=250"), ExtraConf: "SelectTypeParameters=CR_Core_Memory\n"},
			Job:     []string{"--mem-per-cpu=240"},
		},
		{
			Name: "groups", Trap: "hidden partitions that groups may use; weights; features",
			Options: slurmtest.Options{
				NodeExtra:  map[string]string{"n[1-4]": "Weight=10 Feature=old", "n[5-8]": "Weight=1 Feature=new,fast"},
				Partitions: []slurmtest.Partition{{Name: "open", Nodes: "n1", Extra: "DefaultTime=10"}, {Name: "lab", Extra: "Hidden=YES AllowGroups=games,backup,root DefaultTime=10"}},
			},
			Job: []string{"--partition=lab", "--constraint=new&fast"},
		},
		{
			Name: "all partitions", Trap: "job_submit/all_partitions: a job that names none is in every one",
			Options: slurmtest.Options{
				Partitions: []slurmtest.Partition{{Name: "small", Nodes: "n[1-2]", Extra: "DefaultTime=10"}, {Name: "wide", Nodes: "n[3-8]", Extra: "DefaultTime=10"}},
				ExtraConf:  "JobSubmitPlugins=all_partitions\n",
			},
			Profile: "1@10s,5@12s,1@5s", // the growth alone is more than small has
		},
		{
			Name: "submit limit", Trap: "one job of a user in a QOS, submitted ones too (MaxSubmitJobsPerUser)",
			Options: slurmtest.Options{Partitions: part(whole), ExtraConf: "AccountingStorageEnforce=associations,limits,qos\n"},
			Setup:   qos("add qos one MaxSubmitJobsPerUser=1", "modify account proj set qos+=one"),
			Job:     []string{"--qos=one"},
			Stock:   []string{"--qos=normal"},
		},
		{
			Name: "forgetful", Trap: "ended jobs are forgotten after seconds (MinJobAge), no backfill (sched/builtin)",
			Options: slurmtest.Options{Partitions: part(whole), ExtraConf: "MinJobAge=2\nSchedulerType=sched/builtin\n"},
		},
		{
			Name: "unhurried", Trap: "Slurm's own intervals, batch_sched_delay, jobs deferred",
			Options: slurmtest.Options{SlurmIntervals: true, SchedulerParameters: "defer,batch_sched_delay=10,sched_min_interval=2000000,bf_interval=30", Partitions: part(whole)},
		},
		{
			Name: "forced sharing", Trap: "OverSubscribe=FORCE: nobody has a node alone",
			Options: slurmtest.Options{Partitions: part("DefaultTime=10 OverSubscribe=FORCE:2")},
		},
		{
			Name: "one user a node", Trap: "ExclusiveUser=YES",
			Options: slurmtest.Options{Partitions: part("DefaultTime=10 ExclusiveUser=YES")},
		},
		{
			Name: "cores apart", Trap: "cores and memory of nodes that the system keeps (CoreSpecCount, MemSpecLimit)",
			Options: slurmtest.Options{
				NodeExtra:  map[string]string{"n[1-8]": "CPUs=4 Sockets=1 CoresPerSocket=4 CoreSpecCount=1 MemSpecLimit=200"},
				Partitions: part("DefaultTime=10 DefMemPerCPU=200"), ExtraConf: "SelectTypeParameters=CR_Core_Memory\nAllowSpecResourcesUsage=NO\n",
			},
		},
		{
			Name: "wckeys", Trap: "jobs are accounted by wckey, and those without are refused",
			Options: slurmtest.Options{Partitions: part(whole), ExtraConf: "TrackWCKey=yes\nAccountingStorageEnforce=associations,limits,qos,wckeys\n"},
			Setup: func(ctx context.Context, c *slurmtest.Cluster) error {
				var lines []string
				for _, u := range c.Users() {
					lines = append(lines, "add user "+u.Name+" account=proj wckeys=own,grant defaultwckey=own")
				}
				return accounting(ctx, c, nil, lines...)
			},
			Job: []string{"--wckey=grant"},
		},
		{
			Name: "CPUs limited", Trap: "MaxCPUsPerNode in a partition that shares nodes with another",
			Options: slurmtest.Options{Partitions: []slurmtest.Partition{{Name: "cpu", Extra: "DefaultTime=10 MaxCPUsPerNode=3"}, {Name: "gpu", Extra: "DefaultTime=10 MaxCPUsPerNode=1"}}},
		},
		{
			Name: "addresses", Trap: "an address space limited by memory (VSizeFactor)",
			Options: slurmtest.Options{NodeExtra: map[string]string{"n[1-8]": "RealMemory=4000"}, Partitions: part("DefaultTime=10 DefMemPerCPU=200"),
				ExtraConf: "SelectTypeParameters=CR_Core_Memory\nVSizeFactor=110\n"},
		},
		{
			Name: "limited associations", Trap: "GrpTRES of an account that others use, too",
			Options: slurmtest.Options{PriorityType: "multifactor", Partitions: part(whole), ExtraConf: "AccountingStorageEnforce=associations,limits,qos\n"},
			Setup:   qos("modify account proj set GrpTRES=node=4"),
		},
		{
			Name: "throttled", Trap: "job_submit/throttle: so many jobs of a user an hour",
			Options: slurmtest.Options{Partitions: part(whole), SchedulerParameters: "jobs_per_user_per_hour=4", ExtraConf: "JobSubmitPlugins=throttle\n"},
		},
		{
			Name: "licences", Trap: "a licence that there is once; companions (Contain)",
			Options: slurmtest.Options{PrologFlags: "Contain", Partitions: part(whole), ExtraConf: "Licenses=solver:1\n"},
			Job:     []string{"--licenses=solver:1"},
			Stock:   []string{},
		},
		{
			Name: "racks", Trap: "all nodes of a job of one rack: --constraint=[a|b]",
			Options: slurmtest.Options{NodeExtra: map[string]string{"n[1-4]": "Feature=rack1", "n[5-8]": "Feature=rack2"}, Partitions: part(whole)},
			Job:     []string{"--constraint=[rack1|rack2]"},
		},
		{
			Name: "threads", Trap: "two threads a core, and jobs want one; memory by CPU",
			Options: slurmtest.Options{
				NodeExtra:  map[string]string{"n[1-8]": "CPUs=8 Sockets=1 CoresPerSocket=4 ThreadsPerCore=2"},
				Partitions: part("DefaultTime=10 DefMemPerCPU=50"), ExtraConf: "SelectTypeParameters=CR_Core_Memory,CR_ONE_TASK_PER_CORE\n",
			},
			Job: []string{"--threads-per-core=1", "--ntasks-per-node=4", "--mem-per-cpu=100"},
		},
		{
			Name: "short walltimes", Trap: "MaxWall=1 minute in a QOS",
			Options: slurmtest.Options{Partitions: part("OverSubscribe=EXCLUSIVE"), ExtraConf: "AccountingStorageEnforce=associations,limits,qos,safe\nEnforcePartLimits=ALL\n"},
			Setup:   qos("add qos quick MaxWall=1 Flags=DenyOnLimit", "modify account proj set qos+=quick"),
			Job:     []string{"--qos=quick"},
			Stock:   []string{"--qos=normal"},
		},
		{
			Name: "account in updates", Trap: "job_submit.lua refuses every update without Account=, which Slurm takes for pending jobs alone",
			Options: slurmtest.Options{Partitions: part(whole), ExtraConf: "JobSubmitPlugins=lua\n",
				Files: lua("", "if job.account == nil then slurm.log_user('Refused: give an account'); return slurm.ERROR end")},
		},
		{
			Name: "account in updates, explained", Trap: "job_submit.lua refuses every update without Account= in words that Slurm itself has for a wrong account",
			Options: slurmtest.Options{Partitions: part(whole), ExtraConf: "JobSubmitPlugins=lua\n",
				Files: lua("", "if job.account == nil then return slurm.ESLURM_INVALID_ACCOUNT end")},
		},
		{
			Name: "no interactive jobs", Trap: "job_submit.lua refuses jobs without a script",
			Options: slurmtest.Options{Partitions: part(whole), ExtraConf: "JobSubmitPlugins=lua\n",
				Files: lua("if job.script == nil then slurm.log_user('Refused: no interactive jobs here'); return slurm.ERROR end", "")},
			Probes: []Probe{{1, "salloc --no-shell -N1", true, "no interactive jobs"}, {1, "srun --test-only -N1 true", true, "no interactive jobs"}},
		},
		{
			Name: "routed by size", Trap: "job_submit.lua puts jobs of one node and larger ones into different partitions, whatever they ask for",
			Options: slurmtest.Options{Partitions: []slurmtest.Partition{{Name: "single", Extra: "DefaultTime=10"}, {Name: "parallel", Extra: "DefaultTime=10"}}, ExtraConf: "JobSubmitPlugins=lua\n",
				Files: lua("if job.min_nodes ~= slurm.NO_VAL and job.min_nodes > 1 then job.partition = 'parallel' else job.partition = 'single' end", "")},
		},
		moved("moved into a wider QOS", "wide", "modify qos normal set MaxTRESPerJob=node=1"),
		moved("moved into a narrower QOS", "narrow", "modify qos narrow set MaxTRESPerJob=node=2"),
		{
			Name: "GPUs limited", Trap: "GrpTRES=gres/gpu of a user",
			Options: slurmtest.Options{NodeExtra: map[string]string{"n[1-8]": "Gres=gpu:2"}, Links: map[string]string{"gpu0": "/dev/zero", "gpu1": "/dev/zero"},
				Files: map[string]string{"gres.conf": "AutoDetect=off\nNodeName=n[1-8] Name=gpu File=@DIR@/gpu[0-1]\n"}, Partitions: part("DefaultTime=10"),
				ExtraConf: "GresTypes=gpu\nAccountingStorageTRES=gres/gpu\nAccountingStorageEnforce=associations,limits,qos\n"},
			Setup: func(ctx context.Context, c *slurmtest.Cluster) error {
				return accounting(ctx, c, nil, "modify user "+c.Users()[0].Name+" set GrpTRES=gres/gpu=4")
			},
			Job:   []string{"--gres=gpu:2"},
			Stock: []string{},
		},
		{
			Name: "nodes differ", Trap: "GrpTRES=cpu of an account, nodes with different numbers of CPUs",
			Options: slurmtest.Options{NodeExtra: map[string]string{"n[1-4]": "CPUs=4", "n[5-8]": "CPUs=8 RealMemory=2000"}, Partitions: part(whole),
				ExtraConf: "AccountingStorageEnforce=associations,limits,qos\nSelectTypeParameters=CR_CPU_Memory\nDefMemPerCPU=100\n"},
			Setup: func(ctx context.Context, c *slurmtest.Cluster) error {
				return accounting(ctx, c, nil, "modify user "+c.Users()[0].Name+" set GrpTRES=cpu=16")
			},
			Job:   []string{"--exclude=n[5-8]"},
			Stock: []string{},
		},
		{
			Name: "disks", Trap: "nodes with larger and smaller disks (TmpDisk), which the sidecar does not know of",
			Options: slurmtest.Options{NodeExtra: map[string]string{"n[1-2]": "TmpDisk=100", "n[3-8]": "TmpDisk=5000"}, Partitions: part(whole), ExtraConf: "SlurmdParameters=config_overrides\n"},
			Job:     []string{"--tmp=2000"},
			Stock:   []string{"--nodelist=n1"},
		},
		{
			Name: "floating reservation", Trap: "a reservation that is always so many minutes ahead (TIME_FLOAT), which keeps nodes for short jobs",
			Options: slurmtest.Options{Partitions: part(whole)},
			Setup: func(ctx context.Context, c *slurmtest.Cluster) error {
				_, err := c.Run(ctx, slurmtest.Root, "scontrol", "create", "reservation", "ReservationName=short",
					"StartTime=now+5minutes", "Duration=UNLIMITED", "Nodes=n[1-6]", "Users=root", "Flags=TIME_FLOAT,IGNORE_JOBS")
				return err
			},
		},
		cloud(),
		stepMgr(),
	}
	for i := range sites {
		if sites[i].Profile == "" {
			sites[i].Profile = "1@10s,3@12s,1@5s"
		}
		sites[i].Source = ""
	}
	return sites
}

// moved returns a site whose plugin moves every job into a QOS and a partition of its choice.
func moved(name, qos, bound string) Site {
	return Site{
		Name: name, Trap: "job_submit.lua moves every job into another QOS and partition, whose limits count in place of those in the request",
		Options: slurmtest.Options{
			Partitions: []slurmtest.Partition{{Name: "asked", Nodes: "n[1-2]", Extra: "DefaultTime=10 OverSubscribe=EXCLUSIVE MaxNodes=1"}, {Name: "given", Extra: "DefaultTime=10 OverSubscribe=EXCLUSIVE"}},
			ExtraConf:  "JobSubmitPlugins=lua\nAccountingStorageEnforce=associations,limits,qos\n",
			Files: map[string]string{"job_submit.lua": "function slurm_job_submit(job, parts, uid)\nif uid ~= 0 then job.qos, job.partition = '" + qos + "', 'given' end\nreturn slurm.SUCCESS\nend\n" +
				"function slurm_job_modify(job, record, parts, uid)\nreturn slurm.SUCCESS\nend\nreturn slurm.SUCCESS\n"},
		},
		Setup: func(ctx context.Context, c *slurmtest.Cluster) error {
			return accounting(ctx, c, nil, "add qos "+qos, "modify account proj set qos+="+qos, bound)
		},
	}
}

// cloud is gcp with State=CLOUD nodes that are hidden while they are off.
func cloud() Site {
	s := gcp()
	s.Name, s.Trap = "cloud", "nodes of State=CLOUD: nobody is shown those that are off (no PrivateData=cloud)"
	s.Options.ExtraConf = strings.ReplaceAll(s.Options.ExtraConf, "PrivateData=cloud\n", "")
	s.Setup = func(ctx context.Context, c *slurmtest.Cluster) error {
		if err := c.Reconfigure(ctx, func(o *slurmtest.Options) {
			o.NodeExtra = map[string]string{"n[1-8]": o.NodeExtra["n[1-8]"], "n[3-8]": "State=CLOUD"}
		}); err != nil {
			return err
		}
		return c.RestartController(ctx)
	}
	s.Profile, s.Probes = "1@15s,4@20s,1@5s", []Probe{{1, "sh -c 'for i in $(seq 150); do n=$(sinfo -hN -p compute | wc -l); echo shown=$n; [ $n = 2 ] && exit; sleep 0.5; done'", false, "shown=2"}}
	return s
}
