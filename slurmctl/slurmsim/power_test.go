package slurmsim_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/slurmctl"
	"github.com/evoslurm/evoslurm/slurmctl/slurmsim"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest"
)

// powerModel is a cluster that powers down its nodes n5 to n8 when they are idle.
var powerModel = slurmsim.Options{PowerSaving: slurmsim.PowerSaving{SuspendTime: 8 * time.Second, SuspendTimeout: 4 * time.Second,
	ResumeTimeout: 40 * time.Second, Boot: 3 * time.Second, Except: []string{"n1", "n2", "n3", "n4"}}}

// powerProgram records for powerHouse which nodes Slurm wants on or off.
const powerProgram = `#!/bin/sh
export SLURM_CONF=@DIR@/slurm.conf
mkdir -p @DIR@/state/power
for node in $(scontrol show hostnames "$1"); do : >@DIR@/state/power/$(basename "$0" .sh)-$node; done
`

func powerCluster(t *testing.T) *slurmtest.Cluster {
	c := slurmtest.Start(t, slurmtest.Options{Files: map[string]string{"resume.sh": powerProgram, "suspend.sh": powerProgram},
		ExtraConf: `
PrivateData=cloud
SlurmdTimeout=300
SlurmctldParameters=idle_on_node_suspend,power_save_interval=1
ResumeProgram=@DIR@/resume.sh
SuspendProgram=@DIR@/suspend.sh
ResumeRate=0
SuspendRate=0
SuspendTime=8
SuspendTimeout=4
ResumeTimeout=40
SuspendExcNodes=n[1-4]
`})
	over, ended := make(chan struct{}), make(chan struct{})
	t.Cleanup(func() { close(over); <-ended })
	go func() {
		var starting sync.WaitGroup
		defer close(ended)
		defer starting.Wait()
		for {
			select {
			case <-over:
				return
			case <-time.After(100 * time.Millisecond):
			}
			wishes, _ := filepath.Glob(c.Dir() + "/state/power/*-n*")
			for _, wish := range wishes {
				what, node, _ := strings.Cut(filepath.Base(wish), "-")
				_ = os.Remove(wish)
				if what == "suspend" {
					_ = c.StopNode(t.Context(), node)
					continue
				}
				starting.Go(func() {
					time.Sleep(3 * time.Second)
					_ = c.StopNode(context.WithoutCancel(t.Context()), node)
					_ = c.StartNode(context.WithoutCancel(t.Context()), node, "-b")
				})
			}
		}
	}()
	return c
}

// power waits until nodes have that power state.
func (w *world) power(want slurmctl.Power, names ...string) {
	w.Helper()
	w.eventually(fmt.Sprintf("%v: power %d", names, want), func() error {
		nodes, _, err := w.Nodes(w.ctx)
		if err != nil {
			return err
		}
		for _, n := range nodes {
			if slices.Contains(names, n.Name) && n.Power() != want {
				return fmt.Errorf("%s is %s%s", n.Name, n.State, n.Flags)
			}
		}
		return nil
	})
}

var powerFeatures = []feature{
	{"idle nodes are switched off, and on for a job", func(w *world) {
		off := []string{"n5", "n6", "n7", "n8"}
		w.power(slurmctl.PoweredDown, off...)
		nodes, _, err := w.Nodes(w.ctx)
		w.must(err)
		for _, n := range nodes {
			if !n.Usable() || n.Awake() == slices.Contains(off, n.Name) {
				w.Errorf("%+v", n)
			}
		}
		id := w.start(slurmsim.Job{Nodes: 6})
		w.until(id, slurmctl.Configuring)
		w.power(slurmctl.PowerUp, "n5", "n6")
		w.until(id, slurmctl.Running)
		w.power(slurmctl.PowerOn, "n5", "n6")
		w.must(w.Cancel(w.ctx, id))
		w.power(slurmctl.PoweredDown, off...)
	}},
	{"nodes are switched on when asked to, and kept", func(w *world) {
		w.power(slurmctl.PoweredDown, "n7", "n8")
		w.must(w.PowerUp(w.ctx, []string{"n7", "n8"}))
		w.power(slurmctl.PowerOn, "n7", "n8")
		for range 3 {
			w.sleep(4 * time.Second)
			w.must(w.KeepUp(w.ctx, []string{"n7"}))
		}
		w.power(slurmctl.PoweredDown, "n8")
		w.power(slurmctl.PowerOn, "n7")
	}},
	{"idle nodes are switched off when asked to, even those that Slurm keeps on", func(w *world) {
		busy := w.start(slurmsim.Job{Nodes: 2}) // on n1 and n2
		w.until(busy, slurmctl.Running)
		w.must(w.PowerDown(w.ctx, []string{"n2", "n4"}))
		id := w.start(slurmsim.Job{Nodes: 1, NodeList: []string{"n4"}}) // it waits until n4 is off, and then on again
		w.power(slurmctl.PowerUp, "n4")
		w.until(id, slurmctl.Running)
		w.must(w.Cancel(w.ctx, id))
		w.power(slurmctl.PowerOn, "n2", "n3", "n4")
		w.must(w.Cancel(w.ctx, busy))
	}},
}
