package submit

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/evoslurm/evoslurm/adapter/internal/getopt"
)

// summary writes a command line as name=value words, then | and the operands.
func summary(line getopt.Line) string {
	var words []string
	for _, o := range line.Options {
		word := o.Name
		if o.HasValue {
			word += "=" + o.Value
		}
		words = append(words, word)
	}
	if line.Dashes {
		words = append(words, "--")
	}
	return strings.Join(append(append(words, "|"), line.Operands...), " ")
}

func TestParse(t *testing.T) {
	for _, c := range []struct{ words, want string }{
		{"job.sh", "| job.sh"},
		{"", "|"},
		{"-N 2 job.sh -N 3", "nodes=2 | job.sh -N 3"},
		{"-N2 --nodes=3 --nodes 4 job.sh", "nodes=2 nodes=3 nodes=4 | job.sh"},
		{"-vvN2 job.sh", "verbose verbose nodes=2 | job.sh"},
		{"-HvJ name job.sh", "hold verbose job-name=name | job.sh"},
		{"-k job.sh", "no-kill | job.sh"},
		{"-kv job.sh", "no-kill=v | job.sh"},
		{"--no-kill=off --nice job.sh", "no-kill=off nice | job.sh"},
		{"--exclusive user", "exclusive | user"},
		{"--exclusive=user job.sh", "exclusive=user | job.sh"},
		{"--wrap true", "wrap=true |"},
		{"--wrap=echo -N2", "wrap=echo nodes=2 |"},
		{"--partit main --exclusi -- -odd.sh a", "partition=main exclusive -- | -odd.sh a"},
		{"--profile 2@10m job.sh", "profile=2@10m | job.sh"},
		{"--prof=2@10m --expand=2 --drive=merge --dry job.sh", "profile=2@10m expand-limit=2 drive=merge dry-run | job.sh"},
		{"-", "| -"},
		{"-J -x job.sh", "job-name=-x | job.sh"},
		{"--time=5 -t5 -t 5 x", "time=5 time=5 time=5 | x"},
	} {
		line, err := newOptionTable().Parse(strings.Fields(c.words), "")
		if err != nil {
			t.Errorf("%q: %v", c.words, err)
			continue
		}
		if got := summary(line); got != c.want {
			t.Errorf("%q is %q, want %q", c.words, got, c.want)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	for words, reason := range map[string]string{
		"--foo job.sh":     "unrecognized option '--foo'",
		"-Z":               "unrecognized option '-Z'",
		"-vZ":              "unrecognized option '-Z'",
		"--hold=1":         "option '--hold' doesn't allow an argument",
		"-N":               "option requires an argument -- 'N'",
		"-vJ":              "option requires an argument -- 'J'",
		"--nodes":          "option '--nodes' requires an argument",
		"--ex":             "option '--ex' is ambiguous: --exclude, --exclusive, --expand-limit, --export",
		"--=3":             "unrecognized option '--'",
		"--profile":        "option '--profile' requires an argument",
		"--expand-limit x": "",
	} {
		_, err := newOptionTable().Parse(strings.Fields(words), "")
		if reason == "" {
			if err != nil {
				t.Errorf("%q: %v", words, err)
			}
			continue
		}
		if err == nil || !strings.HasPrefix(err.Error(), reason) {
			t.Errorf("%q: %v, want %q", words, err, reason)
		}
		var unknown *getopt.UnknownError
		if errors.As(err, &unknown) != strings.Contains(reason, "unrecognized") {
			t.Errorf("%q: %T", words, err)
		}
	}
}

// What sbatch prints for a plugin's options: src/common/plugstack.c.
const pluginHelp = `Usage: sbatch [OPTIONS(0)...]

  -N, --nodes=N               number of nodes on which to run (N = min[-max])
      --export[=names]        specify environment variables to export

Options provided by plugins:
      --renice=prio           change the priority of tasks
      --private-tmp           a /tmp of the job's own
  -Z, --zeta[=level]          not by a plugin, but of a Slurm to come
`

func TestLearn(t *testing.T) {
	table := newOptionTable()
	table.learn(pluginHelp)
	line, err := table.Parse(strings.Fields("--renice 5 --private-tmp -Z --zeta=2 --export NONE -Z3 job.sh"), "")
	if err != nil {
		t.Fatal(err)
	}
	if got, want := summary(line), "renice=5 private-tmp zeta zeta=2 export=NONE zeta=3 | job.sh"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// drawWords draws a command line whose script begins at a known place.
func drawWords(t *rapid.T, table optionTable) (words []string, names []string) {
	var long []string
	for name := range table.Long {
		long = append(long, name)
	}
	slices.Sort(long)
	letters := map[string]byte{}
	for letter, name := range table.Short {
		letters[name] = letter
	}
	for range rapid.IntRange(0, 8).Draw(t, "options") {
		name := rapid.SampledFrom(long).Draw(t, "name")
		names = append(names, name)
		letter, short := letters[name]
		words = append(words, drawOption(t, name, letter, short && rapid.Bool().Draw(t, "short"), table.Long[name])...)
	}
	return words, names
}

// drawOption draws the words of one option.
func drawOption(t *rapid.T, name string, letter byte, short bool, has getopt.Arity) []string {
	v := rapid.StringMatching(`[a-z0-9=@,: -]{1,8}`).Draw(t, "value")
	joined := rapid.Bool().Draw(t, "joined")
	switch {
	case short && has == getopt.Required && joined:
		return []string{"-" + string(letter) + v}
	case short && has == getopt.Required:
		return []string{"-" + string(letter), v}
	case short:
		return []string{"-" + string(letter)}
	case has == getopt.Required && !joined:
		return []string{"--" + name, v}
	case has != getopt.Flag && joined:
		return []string{"--" + name + "=" + v}
	}
	return []string{"--" + name}
}

func TestParseFindsTheScript(t *testing.T) {
	table := newOptionTable()
	rapid.Check(t, func(t *rapid.T) {
		words, names := drawWords(t, table)
		operands := rapid.SliceOf(rapid.SampledFrom([]string{"-N", "--", ":", "a", "--nodes=3", ""})).Draw(t, "operands")
		all := append(slices.Clone(words), append([]string{"job.sh"}, operands...)...)
		line, err := table.Parse(all, "")
		if err != nil {
			t.Fatalf("%q: %v", all, err)
		}
		if diff := cmp.Diff(all[len(words):], line.Operands); diff != "" {
			t.Fatalf("operands of %q (-want +got):\n%s", all, diff)
		}
		var passed, found []string
		for _, o := range line.Options {
			passed, found = append(passed, o.Words...), append(found, o.Name)
		}
		if diff := cmp.Diff(words, passed); diff != "" {
			t.Fatalf("words passed on (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(names, found); diff != "" {
			t.Fatalf("options of %q (-want +got):\n%s", all, diff)
		}
	})
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{"", "-N\x002\x00job.sh", "-vvkJ\x00--\x00--", "--ex\x00-", "-\x00\x00", "--wrap=a b\x00:"} {
		f.Add(seed)
	}
	table := newOptionTable()
	f.Fuzz(func(t *testing.T, text string) {
		words := strings.Split(text, "\x00")
		line, err := table.Parse(words, "")
		if err != nil {
			if line.Failed < 0 || line.Failed >= len(words) {
				t.Fatalf("failed at word %d of %d", line.Failed, len(words))
			}
			return
		}
		var passed []string
		for _, o := range line.Options {
			passed = append(passed, o.Words...)
		}
		if line.Dashes {
			passed = append(passed, "--")
		}
		passed = append(passed, line.Operands...)
		again, err := table.Parse(passed, "")
		if err != nil {
			t.Fatalf("%q became %q: %v", words, passed, err)
		}
		if summary(line) != summary(again) {
			t.Fatalf("%q became %q", summary(line), summary(again))
		}
	})
}
