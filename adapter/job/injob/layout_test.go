package injob

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest/must"
)

func TestParseSrun(t *testing.T) {
	for _, c := range []struct{ args, options, command string }{
		{"hostname -f", "", "hostname|-f"},
		{"-n 4 hostname -n 2", "ntasks=4", "hostname|-n|2"},
		{"-n4 -N2-3 hostname", "ntasks=4 nodes=2-3", "hostname"},
		{"-l -n 4 x", "label= ntasks=4", "x"},
		{"-lun4 x", "label= unbuffered= ntasks=4", "x"},
		{"-lun 4 x", "label= unbuffered= ntasks=4", "x"},
		{"--ntasks 4 --label x", "ntasks=4 label=", "x"},
		{"--ntasks=4 --mpi=pmi2 x", "ntasks=4 mpi=pmi2", "x"},
		{"--ntasks-per-n 2 x", "ntasks-per-node=2", "x"}, // getopt completes unique beginnings
		{"--lab x", "label=", "x"},
		{"--kill-on-bad-exit x", "kill-on-bad-exit=", "x"},
		{"--kill-on-bad-exit=0 x", "kill-on-bad-exit=0", "x"},
		{"-K x", "kill-on-bad-exit=", "x"},
		{"-K1 x", "kill-on-bad-exit=1", "x"},
		{"-Kl x", "kill-on-bad-exit=l", "x"}, // to srun too a value,
		{"--container-image=a.sqsh --plugin x", "container-image=a.sqsh plugin=", "x"},
		{"-n 4 -- -odd name", "ntasks=4", "-odd|name"},
		{"-- x", "", "x"},
		{"- x", "", "-|x"},
		{"-w n[1-2] -x n2 x", "nodelist=n[1-2] exclude=n2", "x"},
		{"-c 2 -J a -t 5 -o f -e g -i none -D / x", "cpus-per-task=2 job-name=a time=5 output=f error=g input=none chdir=/", "x"},
		{"--exclusive --exact --overlap --bcast=/tmp/a x", "exclusive= exact= overlap= bcast=/tmp/a", "x"},
		{"-vvv -n1 x", "verbose= verbose= verbose= ntasks=1", "x"},
		{"-n 1 -n 2 x", "ntasks=1 ntasks=2", "x"},
	} {
		got, err := parseSrun(strings.Fields(c.args))
		var options []string
		for _, o := range got.options {
			options = append(options, o.Name+"="+o.Value)
		}
		if err != nil || strings.Join(options, " ") != c.options || strings.Join(got.command, "|") != c.command {
			t.Errorf("%s: %q %q, %v; want %s, %s", c.args, options, got.command, err, c.options, c.command)
		}
	}
	for _, args := range []string{"-n", "--ntasks", "-ln"} {
		if got, err := parseSrun(strings.Fields(args)); err == nil {
			t.Errorf("%s: %+v, want an error", args, got)
		}
	}
}

// Options come out as they were given, whatever they are.
func TestOptionsPassUntouched(t *testing.T) {
	word := rapid.StringMatching(`(-[a-zA-Z0-9]{1,4}|--[a-z0-9-]{0,12}(=[a-z0-9]{0,3})?|[a-z0-9.]{0,5})`)
	rapid.Check(t, func(r *rapid.T) {
		args := rapid.SliceOf(word).Draw(r, "args")
		s, err := parseSrun(args)
		if err != nil {
			return
		}
		// a cluster of short options may come out as several words
		join := func(words []string) string {
			var b strings.Builder
			for _, w := range words {
				if len(w) > 1 && w[0] == '-' && w[1] != '-' {
					w = w[1:]
				}
				b.WriteString(w)
			}
			return b.String()
		}
		again, err := parseSrun(append(append(s.without(), "--"), s.command...))
		if err != nil || !slices.Equal(again.command, s.command) || len(again.options) != len(s.options) {
			r.Fatalf("%q: again %+v, %v; first %+v", args, again, err, s)
		}
		want := []string{join(args)}
		if i := len(args) - len(s.command) - 1; i >= 0 && args[i] == "--" { // the end of options, or an option's value
			want = append(want, join(slices.Delete(slices.Clone(args), i, i+1)))
		}
		if got := join(append(s.without(), s.command...)); !slices.Contains(want, got) {
			r.Fatalf("%q became %q and %q", args, s.without(), s.command)
		}
	})
}

func TestLayOut(t *testing.T) {
	for _, c := range []struct{ args, env, want string }{
		{"x", "", "12:2@0 15:3@2 16:1@5"},
		{"x", "SLURM_NTASKS_PER_NODE=4", "12:8@0 15:12@8 16:4@20"},
		{"--ntasks-per-node=2 x", "SLURM_NTASKS_PER_NODE=4", "12:4@0 15:6@4 16:2@10"},
		{"-n6 x", "SLURM_NTASKS_PER_NODE=4", "12:2@0 15:3@2 16:1@5"},
		{"-n28 x", "", "12:8@0 15:12@8 16:8@20"}, // every CPU
		{"-n4 x", "", "12:2@0 15:2@2"},           // fewer than nodes
		{"-n1 x", "", "12:1@0"},
		{"-N3 x", "", "12:2@0 15:1@2"},
		{"-N3 -n6 x", "", "12:4@0 15:2@4"},
		{"-N2-4 x", "", "12:2@0 15:2@2"},
		{"-w n[6-7,9] x", "", "15:2@0 16:1@2"},
		{"-x n[6-7,9] x", "", "12:2@0 15:1@2"},
		{"-x n[6-7],m1 x", "", "12:2@0 15:1@2 16:1@3"},
		{"-w n9 -n 16 x", "", "16:16@0"}, // too many: srun says so
	} {
		s, err := parseSrun(strings.Fields(c.args))
		must.OK(t, err)
		shares, err := layOut(companions(), s, env(c.env))
		var got []string
		for _, s := range shares {
			got = append(got, fmt.Sprintf("%d:%d@%d", s.job, s.tasks, s.first))
		}
		if err != nil || strings.Join(got, " ") != c.want {
			t.Errorf("%s: %v, %v; want %s", c.args, got, err, c.want)
		}
	}
	for _, args := range []string{"-n0 x", "-nx x", "-n-1 x", "-N7 x", "-N3-2 x", "-N0 x", "-w n3 x", "-w n[1 x", "-w /f x", "-x n[1-9] x", "--ntasks-per-node=0 x"} {
		s, err := parseSrun(strings.Fields(args))
		must.OK(t, err)
		if shares, err := layOut(companions(), s, env()); err == nil {
			t.Errorf("%s: %+v, want an error", args, shares)
		}
	}
}

// Every task has one place, every node of a share a task, ranks have no gap.
func TestLayOutProperties(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		a := api.Allocation{Job: 1}
		nodes := 0
		for p := range rapid.IntRange(1, 5).Draw(r, "parts") {
			part := api.Part{Job: uint32(p + 1)}
			for range rapid.IntRange(1, 20).Draw(r, "nodes") {
				nodes++
				part.NodeList = append(part.NodeList, fmt.Sprint("n", nodes))
				part.CPUs = append(part.CPUs, rapid.IntRange(1, 64).Draw(r, "cpus"))
			}
			a.Parts = append(a.Parts, part)
		}
		n := rapid.IntRange(1, 1000).Draw(r, "tasks")
		s, err := parseSrun([]string{fmt.Sprint("-n", n), "x"})
		must.OK(r, err)
		shares, err := layOut(a, s, env())
		must.OK(r, err)
		sum, used := 0, 0
		for _, s := range shares {
			if s.first != sum || s.tasks < len(s.nodes) || len(s.nodes) == 0 {
				r.Fatalf("%d tasks: %+v", n, shares)
			}
			sum += s.tasks
			used += len(s.nodes)
		}
		if sum != n || used != min(n, nodes) {
			r.Fatalf("%d tasks on %d nodes: %d placed on %d nodes", n, nodes, sum, used)
		}
	})
}

func TestLabeller(t *testing.T) {
	const in = "0: a\n10: b: c\n 2: \nsrun: error: n1: task 1: Exited\n1:\nno label\n3: end"
	const want = "  5: a\n 15: b: c\n  7: \nsrun: error: n1: task 1: Exited\n1:\nno label\n  8: end"
	for size := 1; size < len(in); size++ {
		var out bytes.Buffer
		l := newLabeller(&out, 5, 3)
		for rest := []byte(in); len(rest) > 0; {
			n := min(size, len(rest))
			if w, err := l.Write(rest[:n]); w != n || err != nil {
				t.Fatal(w, err)
			}
			rest = rest[n:]
		}
		l.flush()
		if d := cmp.Diff(want, out.String()); d != "" {
			t.Fatalf("in pieces of %d: %s", size, d)
		}
	}
}

func TestLabellerLongLine(t *testing.T) {
	var out bytes.Buffer
	l := newLabeller(&out, 5, 1)
	long := strings.Repeat("x", 3*maxLine)
	fmt.Fprintf(l, "0: %s", long)
	fmt.Fprintf(l, "1: %s\n2: y\n", long)
	if want := "5: " + long + "1: " + long + "\n7: y\n"; out.String() != want {
		t.Errorf("%d bytes, want %d", out.Len(), len(want))
	}
}

func TestTail(t *testing.T) {
	var out bytes.Buffer
	l := &tail{to: &out}
	fmt.Fprint(l, "srun: error: Invalid job ")
	fmt.Fprint(l, "credential\n")
	if !l.has(credentialError) {
		t.Error("a text in two pieces is not found")
	}
	fmt.Fprint(l, strings.Repeat("x", 2*maxTail))
	if l.has(credentialError) || len(l.buf) > maxTail {
		t.Errorf("%d bytes kept", len(l.buf))
	}
}

func TestOptionsOverParts(t *testing.T) {
	c := Command{Allocation: companions()}
	for _, args := range []string{"--multi-prog f", "--pty sh", "-r 1 x", "--relative=1 x", "-F f x", "-Z x", "-o out.%t x", "--error=e%n x", "-o 1 x", "-l"} {
		if _, err := (Command{Allocation: c.Allocation, Args: strings.Fields(args), Srun: "/nonexistent"}).Run(t.Context(), nil); err == nil || strings.Contains(err.Error(), "nonexistent") {
			t.Errorf("%s: %v; want it refused", args, err)
		}
	}
}

func TestRunsOverParts(t *testing.T) {
	c := Command{Allocation: companions(), Environ: []string{"SLURM_JOB_ID=12", "SLURM_NNODES=2", "SLURM_CONF=/c", "A=b"}}
	s, err := parseSrun(strings.Fields("-l --mpi=none -n 8 -w n[1-2,5-6,9] --jobid=12 -i 5 ./a.out -n 3"))
	must.OK(t, err)
	runs, o, err := c.several(s)
	must.OK(t, err)
	if !o.label || o.width != 1 || o.killOnBadExit || !slices.Equal(o.reads, []bool{false, true, false}) {
		t.Errorf("options %+v", o)
	}
	for i, want := range []string{
		"-l --mpi=none --jobid=12 --nodes=2 --ntasks=3 --nodelist=n[1-2] --input=none --job-name=a.out /bin/sh -c SCRIPT evosrun 0 8 12 ./a.out -n 3",
		"-l --mpi=none --jobid=15 --nodes=2 --ntasks=3 --nodelist=n[5-6] --input=2 --job-name=a.out /bin/sh -c SCRIPT evosrun 3 8 12 ./a.out -n 3",
		"-l --mpi=none --jobid=16 --nodes=1 --ntasks=2 --nodelist=n9 --input=none --job-name=a.out /bin/sh -c SCRIPT evosrun 6 8 12 ./a.out -n 3",
	} {
		if got := strings.Replace(strings.Join(runs[i].args, " "), rankScript, "SCRIPT", 1); got != want {
			t.Errorf("part %d: %s; want %s", i, got, want)
		}
		if want := []string{"SLURM_CONF=/c", "A=b"}; !slices.Equal(runs[i].env, want) {
			t.Errorf("part %d: environment %q", i, runs[i].env)
		}
	}
}
