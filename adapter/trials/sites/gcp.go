package sites

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/evoslurm/evoslurm/slurmctl/slurmtest"
)

// powerScript is both programs of power saving: it records the names of the nodes to power up or
// down for power, which is root.
const powerScript = `#!/bin/sh
export SLURM_CONF=@DIR@/slurm.conf
mkdir -p @DIR@/state/power
for node in $(scontrol show hostnames "$1"); do : >@DIR@/state/power/$(basename "$0" .sh)-$node; done
`

// bootTime is how long a switched-on node takes until its slurmd is there.
const bootTime = 8 * time.Second

// gcp: nodes n1 and n2 are always on. Its times of 300 s are 30 here.
func gcp() Site {
	return Site{
		Name: "slurm-gcp",
		Source: "SchedMD/slurm-gcp: etc/slurm.conf.tpl, scripts/conf.py; alike: aws/aws-parallelcluster-cookbook: " +
			"cookbooks/aws-parallelcluster-slurm/templates/default/slurm/slurm.conf.erb",
		Trap: "idle nodes are switched off, and on again for a job; whole nodes, memory by CPU; switches",
		Options: slurmtest.Options{
			NodeExtra: map[string]string{"n[1-8]": "CPUs=4 Boards=1 Sockets=1 CoresPerSocket=2 ThreadsPerCore=2 RealMemory=1500"},
			Partitions: []slurmtest.Partition{
				{Name: "debug", Nodes: "n[1-2]", Extra: "DefMemPerCPU=375"},
				{Name: "compute", Extra: "DefMemPerCPU=375 OverSubscribe=EXCLUSIVE"},
			},
			Files: map[string]string{
				"topology.conf": "SwitchName=static Nodes=n[1-2]\nSwitchName=dynamic Nodes=n[3-8]\nSwitchName=root Switches=static,dynamic\n",
				"resume.sh":     powerScript,
				"suspend.sh":    powerScript,
			},
			SchedulerParameters: "bf_continue,salloc_wait_nodes,ignore_prefer_validation",
			ExtraConf: `
SelectTypeParameters=CR_Core_Memory
PrivateData=cloud
LaunchParameters=use_interactive_step
MessageTimeout=60
TopologyPlugin=topology/tree
ReturnToService=2
SlurmdTimeout=300
SlurmctldParameters=idle_on_node_suspend
ResumeProgram=@DIR@/resume.sh
SuspendProgram=@DIR@/suspend.sh
ResumeFailProgram=@DIR@/suspend.sh
ResumeRate=0
SuspendRate=0
ResumeTimeout=30
SuspendTimeout=5
SuspendTime=30
SuspendExcNodes=n[1-2]
`,
		},
		Helper: power,
		Setup: func(ctx context.Context, c *slurmtest.Cluster) error {
			_, err := c.Run(ctx, slurmtest.Root, "scontrol", "update", "NodeName=n[3-8]", "State=POWER_DOWN")
			return err
		},
		Job:     []string{"--partition=compute"},
		Profile: "3@25s,5@30s,1@8s",
		Probes: []Probe{
			{0, "sh -c 'for i in $(seq 40); do off=$(sinfo -hN -p compute -o %T | grep -c idle~); echo off=$off; [ $off = 6 ] && exit; sleep 0.5; done'", false, "off=6"},
			{1, "srun -p compute -N5 -t5 sh -c 'echo on'", false, "on\non\non\non\non\n"},
		},
	}
}

// power switches nodes off and on as Slurm's programs ask: off, the slurmd is killed;
// on, it starts after bootTime and tells that the node has just booted.
func power(ctx context.Context, c *slurmtest.Cluster) error {
	var starting sync.WaitGroup
	defer starting.Wait()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(200 * time.Millisecond):
		}
		wishes, err := filepath.Glob(c.Dir() + "/state/power/*-n*")
		if err != nil {
			return err
		}
		for _, wish := range wishes {
			what, node, _ := strings.Cut(filepath.Base(wish), "-")
			if err := os.Remove(wish); err != nil {
				return err
			}
			if what == "suspend" {
				_ = c.StopNode(ctx, node) // it may be off already
				continue
			}
			starting.Go(func() {
				select {
				case <-ctx.Done():
					return
				case <-time.After(bootTime):
				}
				if _, err := os.Stat(brokenFile(c, node)); err == nil {
					return
				}
				_ = c.StopNode(ctx, node)
				_ = c.StartNode(ctx, node, "-b") // if it fails, Slurm waits for the node without effect
			})
		}
	}
}

// broken makes a node one that does not come up any more, or mends it.
func broken(c *slurmtest.Cluster, node string, is bool) error {
	if is {
		return os.WriteFile(brokenFile(c, node), nil, 0o600)
	}
	return os.Remove(brokenFile(c, node))
}

func brokenFile(c *slurmtest.Cluster, node string) string { return c.Dir() + "/state/broken." + node }
