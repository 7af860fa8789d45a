package slurmctl_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/evoslurm/evoslurm/slurmctl"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest"
)

// TestRequest reads back what jobs with all kinds of names requested, and uses it to get further
// nodes.
func TestRequest(t *testing.T) {
	f := start(t, slurmtest.Options{Nodes: 4, CPUs: 8, MemoryMB: 4000,
		ExtraConf: "SelectTypeParameters=CR_Core_Memory\nGresTypes=gpu,token",
		NodeExtra: map[string]string{"n[1-2]": "Gres=gpu:4,token:1", "n[3-4]": "CPUs=8 Sockets=2 CoresPerSocket=4"},
		Files:     map[string]string{"gres.conf": slurmtest.GPUs(t, "n[1-2]", 4) + "NodeName=n[1-2] Name=token Count=1 Flags=CountOnly\n"},
		Partitions: []slurmtest.Partition{{Name: "main", Default: true, Extra: "DefaultTime=10 DefMemPerCPU=100"},
			{Name: "plain", Extra: "DefaultTime=10"}}})
	cfg, err := f.Config(f.ctx)
	f.must(err)
	name := "x\nJobId=1 MinMemoryNode=3M MinTmpDiskNode=0 JobName=y UserId="
	for _, c := range []struct {
		args string
		want slurmctl.JobRequest
		mem  int64 // of each further node, in MiB
	}{
		{"--partition=main", slurmctl.JobRequest{Partition: "main", MemoryPerCPU: 100, DefaultMemoryPerCPU: 100}, 800},
		{"--partition=main --mem=0", slurmctl.JobRequest{Partition: "main", DefaultMemoryPerCPU: 100}, 4000},
		{"--partition=main --mem=700", slurmctl.JobRequest{Partition: "main", MemoryPerNode: 700, DefaultMemoryPerCPU: 100}, 700},
		{"--partition=plain", slurmctl.JobRequest{Partition: "plain"}, 4000},
		{"--partition=plain --mem-per-cpu=300 --ntasks-per-node=2 --cpus-per-task=2 --threads-per-core=1 --wckey=w --network=n",
			slurmctl.JobRequest{Partition: "plain", MemoryPerCPU: 300, TasksPerNode: 2, CPUsPerTask: 2, ThreadsPerCore: 1, WCKey: "w", Network: "n"}, 2400},
		{"--partition=plain --sockets-per-node=2 --cores-per-socket=3", slurmctl.JobRequest{Partition: "plain", SocketsPerNode: 2, CoresPerSocket: 3}, 4000},
		{"--partition=plain --gpus-per-node=2 --mem-per-gpu=150 --cpus-per-gpu=2",
			slurmctl.JobRequest{Partition: "plain", TRESPerNode: "gres:gpu:2", MemoryPerGPU: 150, CPUsPerGPU: 2}, 600}, // per GPU, for all GPUs that --exclusive includes
		{"--partition=plain --gres=gpu:4,token:1", slurmctl.JobRequest{Partition: "plain", TRESPerNode: "gres:gpu:4,gres:token:1"}, 4000},
		{"--partition=plain --gpus=2", slurmctl.JobRequest{Partition: "plain", TRESPerJob: "gres:gpu:2"}, 4000},
	} {
		id := f.submit(sleeps, append([]string{"--exclusive", "--nodes=1", "--time=5", "--begin=now+1hour", "--job-name=" + name, "--comment= MinMemoryCPU=9M"},
			strings.Fields(c.args)...)...)
		got, err := f.Request(f.ctx, id, cfg)
		f.must(err)
		c.want.ID, c.want.UID, c.want.TimeLimit, c.want.Comment = id, f.user.UID, 5*time.Minute, " MinMemoryCPU=9M"
		if c.want.CPUsPerTask == 0 {
			c.want.CPUsPerTask = 1
		}
		got.Account, got.QOS, got.Command = "", "", ""
		if !got.AccrueTime.IsZero() && time.Until(got.AccrueTime) < 50*time.Minute {
			t.Errorf("%s: it accrues from %v on", c.args, got.AccrueTime)
		}
		got.AccrueTime = time.Time{} // Slurm sets it to the begin time at its next look at the queue
		if d := cmp.Diff(c.want, got); d != "" {
			t.Errorf("%s: (-want +got)\n%s", c.args, d)
		}
		perNode, err := got.GRESPerNode(1)
		f.must(err)
		q := got.More(1, perNode)
		q.User, q.Name, q.Exclusive, q.TimeLimit = clientUser(f.user), fmt.Sprint("more_", id), true, time.Minute
		k, err := f.Allocate(f.ctx, q)
		f.must(err)
		shown, err := f.cluster.Run(f.ctx, slurmtest.Root, "squeue", "--noheader", "--noconvert", "--jobs="+strconv.Itoa(int(k.ID)), "--Format=tres-alloc:200")
		f.must(err)
		if !strings.Contains(shown, fmt.Sprintf(",mem=%dM,", c.mem)) {
			t.Errorf("%s: a further node has not %d MiB but %s", c.args, c.mem, shown)
		}
		if len(perNode) > 0 && k.NodeList[0] > "n2" {
			t.Errorf("%s: a further node without: %v", c.args, k.NodeList)
		}
		if cores := got.CoresPerSocket > 0; cores != (k.NodeList[0] > "n2") {
			t.Errorf("%s: a further node with %d cores in a socket: %v", c.args, got.CoresPerSocket, k.NodeList)
		}
		f.layout(id, got, k.NodeList[0])
		f.must(f.Cancel(f.ctx, id, k.ID))
		f.ended(k.ID)
	}
	id := f.submit(sleeps, "--begin=now+1hour", "--partition=main")
	for name, shortens := range map[string]string{"squeue": "--noheader", "scontrol": "--oneliner"} {
		_, err := f.once(name, shortens).Request(f.ctx, id, cfg)
		if err != nil {
			t.Errorf("%s is cut off once: %v", name, err)
		}
	}
	f.must(f.Cancel(f.ctx, id))
	_, err = f.Request(f.ctx, 4711, cfg)
	f.is("a job that is not known", err, slurmctl.ErrUnknownJob)
}

// layout checks that the records of a job and of a node that it got say the same of sockets, cores, and threads.
func (f *fixture) layout(id slurmctl.JobID, r slurmctl.JobRequest, node string) {
	f.Helper()
	jobs, err := f.JobsByID(f.ctx, id)
	f.must(err)
	want := slurmctl.Layout{Sockets: uint16(r.SocketsPerNode), Cores: uint16(r.CoresPerSocket), Threads: uint16(r.ThreadsPerCore)}
	if len(jobs) != 1 || jobs[0].Layout != want {
		f.Errorf("it asks for %+v: %+v", want, jobs)
	}
	nodes, _, err := f.Nodes(f.ctx)
	f.must(err)
	for _, n := range nodes {
		has := slurmctl.Layout{Sockets: 8, Cores: 1, Threads: 1}
		if n.Name > "n2" {
			has = slurmctl.Layout{Sockets: 2, Cores: 4, Threads: 1}
		}
		if n.Layout != has || n.Name == node && !n.Layout.Has(want) {
			f.Errorf("%s has %+v, not %+v, for %+v", n.Name, n.Layout, has, want)
		}
	}
}

// once returns a client that gets half of the output of the first command with that first argument.
func (f *fixture) once(name, argument string) *slurmctl.Client {
	f.Helper()
	dir := f.TempDir()
	for _, n := range []string{"squeue", "scontrol"} {
		path, err := exec.LookPath(n)
		f.must(err)
		if n != name {
			f.must(os.Symlink(path, filepath.Join(dir, n)))
			continue
		}
		f.must(os.WriteFile(filepath.Join(dir, n), fmt.Appendf(nil, `#!/bin/sh
if [ "$1" = %s ] && mkdir %s/once 2>/dev/null; then %s "$@" | head --bytes=100; else exec %[3]s "$@"; fi
`, argument, dir, path), 0o755))
	}
	return &slurmctl.Client{Dir: dir, Env: f.Env}
}
