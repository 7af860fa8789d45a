package main

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/evoslurm/evoslurm/adapter/show/display"
	"github.com/evoslurm/evoslurm/slurmctl"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest/must"
)

// fake is a squeue that has some jobs, the newest first, whatever is asked for.
type fake struct {
	ids   []slurmctl.JobID
	asked *slurmctl.Queue
}

func (f fake) QueueLines(_ context.Context, q slurmctl.Queue) (lines []slurmctl.QueueLine, said string, err error) {
	*f.asked = q
	for _, id := range f.ids {
		l := slurmctl.QueueLine{Job: id}
		for range len(q.Format.Own) + 1 {
			l.Parts = append(l.Parts, ".")
		}
		lines = append(lines, l)
	}
	return lines, "squeue: error: something\n", nil
}

func (f fake) QueueJSON(context.Context, []string, string) (map[string]json.RawMessage, []slurmctl.QueueJob, error) {
	var jobs []slurmctl.QueueJob
	for _, id := range f.ids {
		jobs = append(jobs, slurmctl.QueueJob{ID: id, JSON: json.RawMessage(`{"job_id":` + string('0'+rune(id%10)) + `,"standard_output":"\/dev\/null","name":"</script>"}`)})
	}
	return map[string]json.RawMessage{"meta": json.RawMessage(`{}`)}, jobs, nil
}

// TestSqueue checks how squeue is called and what becomes of its answer: for jobs 12 and 7 of the
// example, and for 99, which is not an evolving job.
func TestSqueue(t *testing.T) {
	for _, c := range []struct {
		env, args string
		asked     string
		want      string
	}{
		{"", "-h -o %i%{state}", "", ".QUEUED.\n.RUNNING.\n"},
		{"", "-h -O evoId:3,EVOstep:.5|", "", ".12 .  0/1|.\n.7  .  1/3|.\n"},
		{"", "-o%{step} -u alice,bob --acc=a -qq1 --states R,wt --all -S -i --part=p -n x -j 7,12 -L l -R r --priority --noconv --array",
			"--users=alice,bob --states=R,R --sort=-i --reservation=r --qos=q1 --priority --partitions=p --noconvert --name=x --licenses=l --jobs=7,12 --array --all --accounts=a", ".1/3.\n"},
		{"SQUEUE_USERS=carol SQUEUE_STATES=PD SQUEUE_ALL= SQUEUE_FORMAT=%{id} SQUEUE_SORT=u", "-h -u bob", "--users=bob --states=PD --sort=u --all", ".12.\n.7.\n"},
		{"SQUEUE_FORMAT=%i", "-h --start", "--states=PD --sort=S", ""},
		{"SQUEUE_FORMAT2=evoid:0", "-h -t WAITING", "--states=R", ""},
		{"SQUEUE_FEDERATION=", "-h --local -o %{id}", "", ".12.\n.7.\n"},
		{"SQUEUE_SIBLING= SLURM_CLUSTERS=", "-h -o %{id}", "", ".12.\n.7.\n"},
		{"SQUEUE_STATES=CG,RH,stopped", "-h -o %{id}", "--states=CG,RH,stopped", ".12.\n.7.\n"},
		{"", "-h -j 7, -o %{step}", "--jobs=7,", ".1/3.\n"},
		{"", "-h -w n2 -o %{id}", "", ".7.\n"},
		{"", "-h -S -i", "--sort=-i", "12  a name th"},
		{"", "-h -q normal -u alice", "--users=alice --qos=normal", "7  amr  alice"},
		{"", "--json", "", `"evoslurm":{"id":12,`},
		{"", "--yaml", "", "standard_output\": \"/dev/null\""},
	} {
		var o options
		cmd := newCommandOf(&o)
		words, err := canonical(cmd.Flags(), strings.Fields(c.args))
		must.OK(t, err)
		must.OK(t, cmd.ParseFlags(words))
		must.OK(t, o.operands(cmd.Flags().Args()))
		env := map[string]string{}
		for _, kv := range strings.Fields(c.env) {
			name, value, _ := strings.Cut(kv, "=")
			env[name] = value
		}
		o.environment(cmd.Flags().Changed, func(name string) string { return env[name] }, func(name string) bool { _, is := env[name]; return is })
		var said bytes.Buffer
		var asked slurmctl.Queue
		o.errs, o.from = &said, fake{[]slurmctl.JobID{12, 99, 7}, &asked}
		if err := o.prepare(); err != nil {
			t.Errorf("%s: %v", c.args, err)
			continue
		}
		got, err := o.view(t.Context(), fixed{jobs: example()}, now, display.Terminal{ASCII: true})
		if err != nil {
			t.Errorf("%s: %v", c.args, err)
			continue
		}
		flat := strings.NewReplacer("\n", "", " ", "").Replace(got)
		if !strings.Contains(got, c.want) && !strings.Contains(flat, c.want) {
			t.Errorf("%s %s shows\n%s\nwant %q", c.env, c.args, got, c.want)
		}
		if want := strings.Fields(c.asked); !slices.Equal(asked.Options, want) && len(asked.Options)+len(want) > 0 {
			t.Errorf("%s %s asks squeue %q, want %q", c.env, c.args, asked.Options, want)
		}
		if !strings.HasPrefix(said.String(), "squeue: error: something\n") {
			t.Errorf("%s does not pass on what squeue says: %q", c.args, said.String())
		}
	}
}

// variables are all that squeue reads (22.05 to 26.05), by what squeue is asked because of them, or why that is refused.
var variables = map[string]struct{ value, asked string }{
	"SQUEUE_ACCOUNT": {"a,b", "--accounts=a,b"}, "SQUEUE_ALL": {"", "--all"}, "SQUEUE_ARRAY": {"", "--array"}, "SQUEUE_ARRAY_UNIQUE": {"", "--array-unique"},
	"SQUEUE_FORMAT": {"%i", ""}, "SQUEUE_FORMAT2": {"jobid", ""}, "SQUEUE_LICENSES": {"l", "--licenses=l"}, "SQUEUE_NAMES": {"amr", "--name=amr"},
	"SQUEUE_PARTITION": {"main", "--partitions=main"}, "SQUEUE_PRIORITY": {"", "--priority"}, "SQUEUE_QOS": {"q", "--qos=q"}, "SQUEUE_SORT": {"-i", "--sort=-i"},
	"SQUEUE_STATES": {"PD", "--states=PD"}, "SQUEUE_USERS": {"alice", "--users=alice"}, "SQUEUE_LOCAL": {"", ""}, "SLURM_CLUSTERS": {"lab", ""},
	"SQUEUE_FEDERATION": {"", "no federated cluster"}, "SQUEUE_SIBLING": {"", "no federated cluster"}, "SQUEUE_SIB": {"", "no federated cluster"},
	"SLURM_TIME_FORMAT": {"%s", ""}, "SLURM_BITSTR_LEN": {"8", ""}, "SLURM_CONF": {"/etc/slurm/slurm.conf", ""}, "SLURM_DEBUG_FLAGS": {"Route", ""},
}

// TestVariables: each variable of squeue's has squeue's meaning, or is refused with the reason.
func TestVariables(t *testing.T) {
	for name, v := range variables {
		var o options
		cmd := newCommandOf(&o)
		o.environment(cmd.Flags().Changed, func(n string) string { return map[string]string{name: v.value}[n] }, func(n string) bool { return n == name })
		err := o.prepare()
		asked := strings.Join(o.inSqueue(), " ")
		if err != nil {
			asked = err.Error()
		}
		if v.asked != asked && (err == nil || !strings.Contains(asked, v.asked)) {
			t.Errorf("%s=%s asks squeue %q, want %q", name, v.value, asked, v.asked)
		}
		if wants := strings.HasPrefix(name, "SQUEUE_FORMAT"); wants != (o.query != nil) {
			t.Errorf("%s: squeue's fields are shown: %v", name, !wants)
		}
		if name == "SLURM_CLUSTERS" && !slices.Equal(o.clusters, []string{"lab"}) {
			t.Errorf("%s: clusters %q", name, o.clusters)
		}
	}
}

// refuses is a squeue that does not take its options.
type refuses struct{ fake }

func (refuses) QueueLines(context.Context, slurmctl.Queue) ([]slurmctl.QueueLine, string, error) {
	return nil, "", &slurmctl.CommandError{Args: []string{"squeue", "--sort=q"}, ExitCode: 1, Stderr: "squeue: error: Invalid sort specification: q\n"}
}

// TestRefused checks that squeue's refusals are passed on in its words.
func TestRefused(t *testing.T) {
	for _, args := range [][]string{{"-S", "q"}, {"-S", "q", "-o", "%i"}, {"-S", "q", "--json"}} {
		var o options
		cmd := newCommandOf(&o)
		must.OK(t, cmd.ParseFlags(args))
		must.OK(t, o.prepare())
		o.from = refuses{}
		if _, err := o.view(t.Context(), fixed{jobs: example()}, now, display.Terminal{}); err == nil || err.Error() != "Invalid sort specification: q" {
			t.Errorf("%q: %v", args, err)
		}
	}
}

// forged is a squeue that prints the name of another user's job unchanged.
type forged struct{ fake }

func (forged) QueueLines(_ context.Context, q slurmctl.Queue) ([]slurmctl.QueueLine, string, error) {
	line := slurmctl.QueueLine{Job: 7}
	for range len(q.Format.Own) + 1 {
		line.Parts = append(line.Parts, "amr\x1b[2J\u202e|")
	}
	return []slurmctl.QueueLine{line}, "", nil
}

// TestNamesOnATerminal checks that others' job names cannot control the terminal; elsewhere, output
// is squeue's, to the byte.
func TestNamesOnATerminal(t *testing.T) {
	for tty, want := range map[bool]string{true: "amr?[2J?|RUNNINGamr?[2J?|\n", false: "amr\x1b[2J\u202e|RUNNINGamr\x1b[2J\u202e|\n"} {
		format, err := slurmctl.ParseQueueFormat("%j|%{state}%j|", false)
		must.OK(t, err)
		o := options{query: &slurmctl.Queue{Format: format}}
		got, err := o.lines(t.Context(), forged{}, example(), now, false, tty)
		if err != nil || got != want {
			t.Errorf("terminal %v: %q, %v; want %q", tty, got, err, want)
		}
	}
}
