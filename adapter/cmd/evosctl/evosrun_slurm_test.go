package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/evoslurm/evoslurm/slurmctl/slurmtest"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest/must"
)

// TestRunOverCompanions runs evosrun over a base job of two nodes and companions of three and one:
// to the user, it is one command over six nodes.
func TestRunOverCompanions(t *testing.T) {
	s := newSite(t, slurmtest.Options{Nodes: 8}, "companion")
	base := s.base(2)
	companions := []uint32{s.companion(base, 3), s.companion(base, 1)}
	s.env = append(s.env, fmt.Sprint("EVO_JOB_ID=", base))
	a, err := s.backend.Allocation(t.Context(), base)
	must.OK(t, err)
	var nodes []string
	var jobs []uint32
	for _, p := range a.Parts {
		nodes = append(nodes, p.NodeList...)
		for range p.NodeList {
			jobs = append(jobs, p.Job)
		}
	}
	if len(nodes) != 6 || jobs[2] != companions[0] || jobs[5] != companions[1] {
		t.Fatalf("nodes %q of jobs %d", nodes, jobs)
	}

	s.run("ranks and labels", func(t *testing.T) {
		out := s.must("evosrun", "-l", "sh", "-c", `echo $EVO_RANK of $EVO_NTASKS on $SLURMD_NODENAME in $SLURM_JOB_ID of $EVO_JOB_ID`)
		var want []string
		for rank, node := range nodes {
			want = append(want, fmt.Sprintf("%d: %d of 6 on %s in %d of %d", rank, rank, node, jobs[rank], base))
		}
		if got := lines(out); !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	})

	s.run("more tasks than nodes", func(t *testing.T) {
		out := s.must("evosrun", "-n", "15", "sh", "-c", `echo $EVO_RANK of $EVO_NTASKS`)
		var want []string
		for rank := range 15 {
			want = append(want, fmt.Sprint(rank, " of 15"))
		}
		slices.Sort(want)
		if got := lines(out); !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	})

	s.run("tasks per node", func(t *testing.T) {
		out := s.must("evosrun", "--ntasks-per-node=2", "sh", "-c", `echo $SLURMD_NODENAME $EVO_NTASKS`)
		var want []string
		for _, node := range nodes {
			want = append(want, node+" 12", node+" 12")
		}
		slices.Sort(want)
		if got := lines(out); !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	})

	s.run("tasks per node of the script", func(t *testing.T) {
		cmd := s.command("evosrun", "sh", "-c", `echo $SLURMD_NODENAME $EVO_NTASKS`)
		cmd.Env = append(cmd.Env, "SLURM_NTASKS_PER_NODE=3", "EVO_PART_ID=12345", "SLURM_JOB_ID=12345", "SLURM_NNODES=1", "SLURM_NTASKS=1")
		out, err := combined(cmd)
		var want []string
		for _, node := range nodes {
			want = append(want, node+" 18", node+" 18", node+" 18")
		}
		slices.Sort(want)
		if got := lines(out); err != nil || !slices.Equal(got, want) {
			t.Errorf("got %q, %v; want %q", got, err, want)
		}
	})

	s.run("chosen nodes", func(t *testing.T) {
		out := s.must("evosrun", "-w", nodes[1]+","+nodes[3]+","+nodes[5], "-x", nodes[5], "sh", "-c", `echo $EVO_RANK $SLURMD_NODENAME`)
		if want := []string{"0 " + nodes[1], "1 " + nodes[3]}; !slices.Equal(lines(out), want) {
			t.Errorf("got %q, want %q", lines(out), want)
		}
	})

	s.run("highest exit status", func(t *testing.T) {
		cmd := s.command("evosctl", "run", "--", "sh", "-c", "exit $((10 + EVO_RANK))")
		if err := cmd.Run(); cmd.ProcessState == nil || cmd.ProcessState.ExitCode() != 15 {
			t.Errorf("%v, want exit status 15", err)
		}
	})

	s.run("input goes to all", func(t *testing.T) {
		cmd := s.command("evosrun", "sh", "-c", "read a; read b; echo $EVO_RANK $b $a")
		cmd.Stdin = strings.NewReader("x\ny\n")
		out, err := combined(cmd)
		if want := []string{"0 y x", "1 y x", "2 y x", "3 y x", "4 y x", "5 y x"}; err != nil || !slices.Equal(lines(out), want) {
			t.Errorf("got %q, %v; want %q", lines(out), err, want)
		}
	})

	s.run("input goes to one", func(t *testing.T) {
		cmd := s.command("evosrun", "--input=3", "sh", "-c", "echo $EVO_RANK $(cat)")
		cmd.Stdin = strings.NewReader("x\n")
		out, err := combined(cmd)
		if want := []string{"0", "1", "2", "3 x", "4", "5"}; err != nil || !slices.Equal(lines(out), want) {
			t.Errorf("got %q, %v; want %q", lines(out), err, want)
		}
	})

	s.run("output file", func(t *testing.T) {
		file := filepath.Join(s.user.Home, "out.txt")
		for range 2 { // as with srun, the second run's output replaces the first's
			s.must("evosrun", "-o", file, "sh", "-c", "echo $EVO_RANK")
		}
		text, err := os.ReadFile(file)
		if want := []string{"0", "1", "2", "3", "4", "5"}; err != nil || !slices.Equal(lines(string(text)), want) {
			t.Errorf("got %q, %v; want %q", text, err, want)
		}
	})

	s.run("arguments reach the command as they are", func(t *testing.T) {
		odd := []string{"a b", "$HOME", "*", "'", `"`, "-n", "--", "", "`id`", "é"}
		out := s.must("evosrun", append([]string{"-n1", "printf", "%s|"}, odd...)...)
		if want := strings.Join(odd, "|") + "|"; out != want {
			t.Errorf("got %q, want %q", out, want)
		}
	})

	s.run("step name", func(t *testing.T) {
		if out := s.must("evosrun", "-n1", "printenv", "SLURM_JOB_NAME"); strings.TrimSpace(out) == "sh" {
			t.Errorf("the step is called %q", out)
		}
	})

	s.run("one failure ends all", func(t *testing.T) {
		cmd := s.command("evosrun", "-K", "sh", "-c", "if [ $EVO_RANK = 5 ]; then exit 3; fi; exec sleep 900")
		var errs bytes.Buffer
		cmd.Stderr = &errs
		if err := cmd.Run(); cmd.ProcessState == nil || cmd.ProcessState.ExitCode() < 3 {
			t.Errorf("%v, want a failure: %s", err, errs.String())
		}
		s.until("no step runs", func() bool { return s.steps() == 0 })
	})

	s.run("signals reach the tasks", func(t *testing.T) {
		for _, sig := range []syscall.Signal{syscall.SIGUSR1, syscall.SIGTERM} {
			cmd := s.command("evosrun", "sh", "-c", `trap 'echo $EVO_RANK heard; exit 0' USR1; echo ready; while :; do sleep 0.1; done`)
			var out bytes.Buffer
			cmd.Stdout = &syncWriter{w: &out}
			must.OK(t, cmd.Start())
			s.until("all tasks are ready", func() bool { return strings.Count(cmd.Stdout.(*syncWriter).String(), "ready") == 6 })
			cmd.Process.Signal(sig)
			err := cmd.Wait()
			heard := strings.Count(out.String(), "heard")
			if sig == syscall.SIGUSR1 && (err != nil || heard != 6) || sig == syscall.SIGTERM && err == nil {
				t.Errorf("%v: %v, %d tasks heard it: %s", sig, err, heard, out.String())
			}
			s.until("no step runs", func() bool { return s.steps() == 0 })
		}
	})

	s.run("a node that has not heard of the merge", func(t *testing.T) {
		srun, err := exec.LookPath("srun")
		must.OK(t, err)
		shims := filepath.Join(s.user.Home, "shims")
		s.must("mkdir", shims)
		script := "#!/bin/sh\nif mkdir " + shims + "/first 2>/dev/null; then\n" +
			"\techo 'srun: error: Task launch failed on node n3: Invalid job credential' >&2\n\texit 1\nfi\nexec " + srun + ` "$@"` + "\n"
		must.OK(t, os.WriteFile(shims+"/srun", []byte(script), 0o755))
		cmd := s.command("evosrun", "sh", "-c", "echo $EVO_RANK")
		cmd.Env = append(cmd.Env, "PATH="+shims+":"+os.Getenv("PATH"))
		var errs bytes.Buffer
		cmd.Stderr = &errs
		out, err := cmd.Output()
		if want := []string{"0", "1", "2", "3", "4", "5"}; err != nil || !slices.Equal(lines(string(out)), want) || !strings.Contains(errs.String(), "trying once more") {
			t.Errorf("got %q, %v, %s; want %q", lines(string(out)), err, errs.String(), want)
		}
	})

	s.run("launch", func(t *testing.T) {
		for i, node := range nodes {
			out := s.must("evolaunch", "-x", node, `echo`, `"$SLURMD_NODENAME $SLURM_JOB_ID"`)
			if want := fmt.Sprintf("%s %d\n", node, jobs[i]); out != want {
				t.Errorf("on %s: %q, want %q", node, out, want)
			}
		}
	})
}

// TestScriptSeesMergedNodes runs in a batch script, with the first step's environment: the job
// grows by a merge, and after the eval plain srun sees all nodes.
func TestScriptSeesMergedNodes(t *testing.T) {
	s := newSite(t, slurmtest.Options{Nodes: 8, PermitJobExpansion: true}, "merge")
	s.backend.grow = func(base uint32) {
		var k uint32
		out := s.must("salloc", "--no-shell", "--exclusive", "-N3", fmt.Sprint("--dependency=expand:", base))
		if _, err := fmt.Sscanf(out[strings.Index(out, "Granted job allocation "):], "Granted job allocation %d", &k); err != nil {
			t.Errorf("salloc: %s", out)
			return
		}
		s.must("scontrol", "update", fmt.Sprint("JobId=", k), "NumNodes=0")
	}
	script := filepath.Join(s.user.Home, "job.sh")
	err := os.WriteFile(script, []byte(`#!/bin/sh
set -eu
show() {
	echo "$1: $EVO_STEP/$EVO_STEPS done=$EVO_DONE srun=$(srun sh -c 'echo x' | wc -l) evosrun=$(evosrun sh -c 'echo $EVO_RANK/$EVO_NTASKS' | sort | tr '\n' ,) nodes=$EVO_NODES/$SLURM_NNODES tasks=$SLURM_TASKS_PER_NODE cpus=$SLURM_JOB_CPUS_PER_NODE"
	echo "$1 hosts: $(evosctl hostfile --format=mpich | wc -l) $(scontrol show hostnames "$SLURM_JOB_NODELIST" | wc -l)"
}
eval "$(evosctl env)"
show before
eval "$(evosctl next)"
show after
`), 0o755)
	must.OK(t, err)
	out := filepath.Join(s.user.Home, "job.out")
	s.must("sbatch", "--wait", "--exclusive", "-N2", "-o", out, "-e", out+".err", script) // where srun says that it waits for a busy node
	got := must.Read(t, out)
	const want = `before: 1/2 done= srun=2 evosrun=0/2,1/2, nodes=2/2 tasks=4(x2) cpus=4(x2)
before hosts: 2 2
after: 2/2 done= srun=5 evosrun=0/5,1/5,2/5,3/5,4/5, nodes=5/5 tasks=4(x5) cpus=4(x5)
after hosts: 5 5
`
	if string(got) != want {
		t.Errorf("the script printed\n%s\nwant\n%s", got, want)
	}
}
