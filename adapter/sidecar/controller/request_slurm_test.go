package controller_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/internal/drivemode"
	"github.com/evoslurm/evoslurm/adapter/job/request"
	"github.com/evoslurm/evoslurm/adapter/sidecar/store"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest"
)

// perNode runs a command by srun on all nodes of every part of a job, as evosrun does, and returns
// its output, one line per task.
func (l *lab) perNode(a api.Allocation, options []string, script string) []string {
	l.t.Helper()
	var lines []string
	for _, p := range a.Parts {
		n := fmt.Sprint(len(p.NodeList))
		args := append([]string{fmt.Sprintf("--jobid=%d", p.Job), "--nodes=" + n, "--ntasks=" + n, "--overlap"}, options...)
		out, err := l.cluster.Run(l.ctx(), l.user(0), "srun", append(args, "sh", "-c", script)...)
		l.must(err)
		lines = append(lines, strings.Split(strings.TrimSpace(out), "\n")...)
	}
	return lines
}

// tres returns what Slurm says that these parts have, one line each.
func (l *lab) tres(a api.Allocation) []string {
	l.t.Helper()
	var lines []string
	for _, p := range a.Parts {
		out, err := l.cluster.Run(l.ctx(), slurmtest.Root, "squeue", "--noheader", "--noconvert", fmt.Sprintf("--jobs=%d", p.Job), "--Format=tres-alloc:300")
		l.must(err)
		lines = append(lines, strings.TrimSpace(out))
	}
	return lines
}

// expanders returns how many the sidecar has asked for.
func (l *lab) expanders() int {
	l.t.Helper()
	out, err := l.cluster.Run(l.ctx(), slurmtest.Root, "squeue", "--noheader", "--states=all", "--format=%j")
	l.must(err)
	return strings.Count(out, "evo_")
}

// TestGRES checks that jobs grow by companions from the start on nodes with generic resources. A job
// with whole nodes gets all of them.
func TestGRES(t *testing.T) {
	t.Parallel()
	l := newLab(t, slurmtest.Options{Accounting: true, PermitJobExpansion: true,
		ExtraConf: "GresTypes=gpu,token\nAccountingStorageTRES=gres/gpu,gres/token",
		NodeExtra: map[string]string{"n[1-4]": "Gres=gpu:4", "n[7-8]": "Gres=token:1"},
		Files:     map[string]string{"gres.conf": slurmtest.GPUs(t, "n[1-4]", 4) + "NodeName=n[7-8] Name=token Count=1 Flags=CountOnly\n"},
		Partitions: []slurmtest.Partition{{Name: "main", Default: true, Extra: "DefaultTime=10"},
			{Name: "gpu", Nodes: "n[1-4]", Extra: "DefaultTime=10"}}})
	l.run("not asked for", func(l *lab) {
		before := l.expanders()
		id := l.submit("1@5s,3@5s,1@5s", "--partition=gpu")
		if job := l.running(id, 1); job.Drive != "companion" {
			l.t.Errorf("drive mode %s, want companion", job.Drive)
		}
		a := l.next(id, 1)
		l.has(a, 3)
		if n := l.expanders() - before; n != 1 {
			l.t.Errorf("%d expanders for one growth", n)
		}
		l.has(l.next(id, 2), 1)
		l.end(id)
	})
	for _, option := range []string{"--gpus-per-node=2", "--gres=gpu:2", "--gpus=2"} {
		l.run("asked for with "+option, func(l *lab) {
			id := l.submit("1@5s,3@5s,2@5s", option)
			l.running(id, 1)
			for step, nodes := range []int{1, 3, 2} {
				a, err := l.Allocation(l.ctx(), id)
				l.must(err)
				if step > 0 {
					a = l.next(id, step)
				}
				l.has(a, nodes)
				for _, line := range l.perNode(a, nil, "echo $SLURMD_NODENAME ${SLURM_GPUS_ON_NODE:-none} $CUDA_VISIBLE_DEVICES") {
					if f := strings.Fields(line); len(f) != 3 || f[0] > "n4" || f[1] != "2" {
						l.t.Errorf("step %d: %q, want 2 GPUs on every node, one of n[1-4]", step+1, line)
					}
				}
			}
			l.end(id)
		})
	}
	l.run("a merge that cannot be is refused in words", func(l *lab) {
		id := l.submitSpec(request.Request{Drive: drivemode.Merge}, "1@5s,2@5s")
		l.eventually("the refusal", func() error {
			job, err := l.Job(l.ctx(), id)
			if err == nil && (!strings.Contains(job.Reason, "GresTypes has gpu, token") || !strings.Contains(job.Reason, "without --drive")) {
				err = fmt.Errorf("it says %q", job.Reason)
			}
			return err
		})
		l.cancel(id)
	})
	l.run("a merge that always fails", func(l *lab) {
		before := l.expanders()
		id := l.submit("1@5s,3@5s,2@5s,3@5s", "--partition=gpu")
		l.running(id, 1)
		l.stop()
		st, err := store.Open(l.ctx(), l.cfg.Database)
		l.must(err)
		active, err := st.ActiveJobs(l.ctx())
		l.must(err)
		for _, row := range active {
			row.Drive = string(drivemode.Merge) // as if Slurm had changed since
			l.must(st.UpdateJob(l.ctx(), row))
		}
		st.Close()
		l.start()
		for step, nodes := range []int{1, 3, 2, 3} { // what came instead gives a part of it back
			if step > 0 {
				l.has(l.next(id, step), nodes)
			}
		}
		if job := l.running(id, 4); job.Drive != "companion" {
			l.t.Errorf("drive mode %s, want companion", job.Drive)
		}
		if n := l.expanders() - before; n != 3 {
			l.t.Errorf("%d expanders for two growths, although the first one is not merged", n)
		}
		l.end(id)
		l.scontrol("reconfigure") // Slurm leaves what it could not merge COMPLETING
	})
}

// TestInherited: nodes that a job grows by have the memory that it asked for.
func TestInherited(t *testing.T) {
	t.Parallel()
	l := newLab(t, slurmtest.Options{Accounting: true, PermitJobExpansion: true, MemoryMB: 2000, ExtraConf: "SelectTypeParameters=CR_Core_Memory",
		Partitions: []slurmtest.Partition{{Name: "main", Default: true, Extra: "DefaultTime=10 DefMemPerCPU=100"}}})
	for _, drive := range []drivemode.Mode{drivemode.Merge, drivemode.Companion} {
		for option, memory := range map[string]int{"--mem=700": 700, "--mem-per-cpu=200": 800, "--export=ALL": 400, "--mem=0": 2000} {
			l.run(string(drive)+" "+option, func(l *lab) {
				id := l.submitSpec(request.Request{Drive: drive}, "1@20s,3@20s,2@20s", option, "--wckey=w")
				l.running(id, 1)
				for step, nodes := range []int{1, 3, 2} {
					a, err := l.Allocation(l.ctx(), id)
					l.must(err)
					if step > 0 {
						a = l.next(id, step)
					}
					l.has(a, nodes)
					for i, line := range l.tres(a) {
						if want := fmt.Sprintf("mem=%dM,node=%d", memory*len(a.Parts[i].NodeList), len(a.Parts[i].NodeList)); !strings.Contains(line, want) {
							l.t.Errorf("step %d: part %d has %s, want %s", step+1, i+1, line, want)
						}
					}
					if step == 1 && memory == 700 {
						if got := l.perNode(a, []string{"--mem=600"}, "echo here"); len(got) != nodes {
							l.t.Errorf("srun --mem=600 ran on %d nodes", len(got))
						}
					}
				}
				l.end(id)
			})
		}
	}
}

// whole is a site's rules for partitions of whole nodes: users must not name nodes, memory, or a
// reservation, and must give a walltime.
const whole = `
function slurm_job_submit(job, parts, uid)
	if job.req_nodes ~= nil or job.exc_nodes ~= nil then slurm.log_user("Please do not request specific nodes.") return slurm.ERROR end
	if (job.min_mem_per_cpu or 0) ~= 0 or (job.min_mem_per_node or 0) ~= 0 then slurm.log_user("Please do not specify memory.") return slurm.ERROR end
	if job.reservation ~= nil then slurm.log_user("Please use the reservation QoS.") return slurm.ERROR end
	if job.time_limit == 4294967294 then slurm.log_user("Please specify a walltime.") return slurm.ERROR end
	return slurm.SUCCESS
end
function slurm_job_modify(job, old, parts, uid) return slurm.SUCCESS end
return slurm.SUCCESS
`

// TestPluginForbids: a site's plugin forbids -w, --mem, reservations and jobs without a
// walltime, to root too.
func TestPluginForbids(t *testing.T) {
	t.Parallel()
	l := newLab(t, slurmtest.Options{Accounting: true, PermitJobExpansion: true, ExtraConf: "JobSubmitPlugins=lua",
		Files: map[string]string{"job_submit.lua": whole}})
	for _, drive := range []drivemode.Mode{drivemode.Merge, drivemode.Companion} {
		l.run(string(drive), func(l *lab) {
			before := l.expanders()
			id := l.submitSpec(request.Request{Drive: drive}, "1@20s,3@20s,1@20s,2@20s")
			l.running(id, 1)
			for step, nodes := range []int{1, 3, 1, 2} {
				if step > 0 {
					l.has(l.next(id, step), nodes)
				}
			}
			if n := l.expanders() - before; n != 2 {
				l.t.Errorf("%d expanders for two growths", n)
			}
			l.end(id)
		})
	}
}
