package submit

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/evoslurm/evoslurm/slurmctl/slurmtest/must"
)

func TestFromScriptLines(t *testing.T) {
	script := `#!/bin/bash
# a comment
#SBATCH -N 2 -J "my job" # --nodes=9

#SBATCH --time=
#SBATCH 5
  #SBATCH --hold
#SLURM --gres=gpu
#SBATCHES --mem=3
set -e
#SBATCH --array=1-3
`
	options, err := newOptionTable().fromScript([]byte(script), "job.sh")
	if err == nil {
		t.Fatalf("the words \"ES\" are read as %v", options)
	}
	script = strings.Replace(script, "ES --mem=3", " -vvx n[1-3] --comment='a #b'", 1)
	script = strings.Replace(script, "--time=\n", "--time\n", 1)
	if options, err = newOptionTable().fromScript([]byte(script), "job.sh"); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, o := range options {
		got = append(got, o.String())
	}
	want := []string{
		"--nodes=2 (job.sh, line 3)", "--job-name=my job (job.sh, line 3)", "--time=5 (job.sh, line 5)", "--gres=gpu (job.sh, line 8)",
		"--verbose (job.sh, line 9)", "--verbose (job.sh, line 9)", "--exclude=n[1-3] (job.sh, line 9)", "--comment=a #b (job.sh, line 9)",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestFromScriptRefuses(t *testing.T) {
	for script, want := range map[string]string{
		"#!/bin/sh\n#SBATCH hetjob\n#SBATCH -N2":    "job.sh, line 2: heterogeneous jobs",
		"#!/bin/sh\n#SBATCH -N2\n#SBATCH PackJob x": "job.sh, line 3: heterogeneous jobs",
		"#SBATCH -J 'x":                      "job.sh, line 1: unmatched '",
		"#SBATCH -N 2\n#SBATCH -vN":          "job.sh, line 2: option requires an argument",
		"#SBATCH -N 2\n\n#SBATCH --what -v":  "job.sh, line 3: unrecognized option '--what'",
		"#SBATCH -N 2\n#SBATCH -N 2 word -v": "job.sh, line 2: invalid directive \"word\"",
	} {
		if _, err := newOptionTable().fromScript([]byte(script), "job.sh"); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v, want %q", script, err, want)
		}
	}
}

func TestLayers(t *testing.T) {
	table := newOptionTable()
	script, err := table.fromScript([]byte("#SBATCH --time=1 --comment=script --profile=energy -p one --begin=noon"), "job.sh")
	must.OK(t, err)
	line, err := table.Parse(strings.Fields("-t 3 --profile=2@10m -t 4"), "")
	must.OK(t, err)
	l := layers{script: script, command: line.Options,
		environment: table.fromEnvironment([]string{"SBATCH_TIMELIMIT=2", "SBATCH_PARTITION=two", "SBATCH_WAIT=", "HOME=/", "SBATCH_GRES=", "SBATCH_EXCLUSIVE=user", "junk"})}
	for name, want := range map[string]string{"time": "4", "partition": "two", "comment": "script", "begin": "noon", "exclusive": "user", "wait": "", "profile": "energy"} {
		if o, ok := l.last(name); !ok || o.Value != want {
			t.Errorf("%s is %q, %v, want %q", name, o.Value, ok, want)
		}
	}
	for _, name := range []string{"nodes", "gres"} {
		if o, ok := l.last(name); ok {
			t.Errorf("%s is %q", name, o.Value)
		}
	}
	if l.has("comment") || !l.has("time") {
		t.Errorf("the command line has a comment, or no time")
	}
}

func FuzzFromScript(f *testing.F) {
	for _, seed := range []string{"", "#!/bin/sh\n#SBATCH -N 2\n", "#SBATCH hetjob", "#SBATCH \\\n#SBATCH \"", "#SLURM -J", "x\n#SBATCH --\n"} {
		f.Add([]byte(seed))
	}
	table := newOptionTable()
	f.Fuzz(func(t *testing.T, script []byte) {
		options, err := table.fromScript(script, "job.sh")
		if err == nil && len(options) > 0 && !strings.Contains(string(script), "#S") {
			t.Fatalf("%v out of nothing", options)
		}
	})
}
