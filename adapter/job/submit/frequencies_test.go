package submit

import (
	"slices"
	"strings"
	"testing"

	"github.com/evoslurm/evoslurm/slurmctl/slurmtest/must"
)

// TestFrequencies shows sbatch's words and variables of a whole job, and of each step of a chain.
func TestFrequencies(t *testing.T) {
	const profile = "--profile=2@10m:low,5@30m,1@5m:2.1GHz "
	for _, c := range []struct {
		words, script string
		own           bool
		export        string
		variables     []string // of the job, or of the chain's steps
	}{
		{profile + "job.sh", "", false, "", []string{"SLURM_CPU_FREQ_REQ=low EVO_CPU_FREQ=low"}},
		{profile + "job.sh", "", true, "", []string{""}},
		{"job.sh", "#EVO " + profile, false, "", []string{"SLURM_CPU_FREQ_REQ=low EVO_CPU_FREQ=low"}},
		{"--profile=2@1m job.sh", "#EVO " + profile, false, "", []string{""}},
		{"--profile=2@1m,1@1m:high job.sh", "", false, "", []string{""}},
		{profile + "--export=MINE job.sh", "", false, "--export=MINE,SLURM_CPU_FREQ_REQ,EVO_CPU_FREQ", []string{"SLURM_CPU_FREQ_REQ=low EVO_CPU_FREQ=low"}},
		{profile + "--export=ALL,MINE=1 job.sh", "", false, "", []string{"SLURM_CPU_FREQ_REQ=low EVO_CPU_FREQ=low"}},
		{profile + "--export=NONE job.sh", "", false, "", []string{""}},
		{profile + "job.sh", "#SBATCH --export=NIL", false, "", []string{""}},
		{profile + "--drive=chain job.sh", "", false, "", []string{"SLURM_CPU_FREQ_REQ=low EVO_CPU_FREQ=low", "", "SLURM_CPU_FREQ_REQ=2100000 EVO_CPU_FREQ=2100000"}},
		{profile + "--drive=chain job.sh", "", true, "", []string{"", "", ""}},
		{profile + "--drive=chain --export=MINE job.sh", "", false, "--export=MINE,EVO_STEP=1,EVO_STEPS=3,SLURM_CPU_FREQ_REQ=low,EVO_CPU_FREQ=low", []string{"SLURM_CPU_FREQ_REQ=low EVO_CPU_FREQ=low", "", "SLURM_CPU_FREQ_REQ=2100000 EVO_CPU_FREQ=2100000"}},
	} {
		r, err := build(c.words, c.script)
		must.OK(t, err)
		r.ownFrequency = c.own
		call, err := r.wholeCall()
		must.OK(t, err)
		all := []string{joinVariables(r.variables())}
		if r.request.Drive != "" {
			if call, err = r.linkCall(0, 0, 0); err != nil {
				t.Fatal(err)
			}
			if all[0] != "" {
				t.Errorf("%s: all steps of the chain get %s", c.words, all[0])
			}
			all = nil
			for i := range r.request.Profile {
				all = append(all, strings.Join(r.stepVariables(i)[2:], " "))
			}
		}
		if !slices.Equal(all, c.variables) {
			t.Errorf("%s: variables %q, want %q", c.words, all, c.variables)
		}
		if words := strings.Join(r.words(call), " "); c.export != "" && !strings.Contains(words, " "+c.export+" ") || c.export == "" && strings.Contains(words, ",EVO_CPU_FREQ") {
			t.Errorf("%s: %s", c.words, words)
		}
	}
}

func joinVariables(all [][2]string) string {
	var words []string
	for _, v := range all {
		words = append(words, v[0]+"="+v[1])
	}
	return strings.Join(words, " ")
}

func TestNoFrequencies(t *testing.T) {
	for words, want := range map[string]string{
		"--profile=2@10m:low --cpu-freq=high job.sh":       "--cpu-freq=high: the profile says the CPU frequency of its steps",
		"--profile=2@10m:low --max-nodes=4 job.sh":         "a claim (--max-nodes) exclude each other",
		"--profile=2@10m:low --grace=10s job.sh":           "--malleable",
		"--component=a --profile=2@10m:low job.sh":         "leave it out of a component's profile",
		"--moldable=2@10m:low,4@5m job.sh":                 "leave it out of alternatives",
		"--profile=2@10m:fast job.sh":                      `"fast" is no CPU frequency`,
		"--profile=2@10m:low --cpu-freq=OnDemand-x job.sh": "--cpu-freq=OnDemand-x: the profile says",
	} {
		if _, err := build(words, ""); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", words, err, want)
		}
	}
	if _, err := build("--profile=2@10m:low job.sh", "#SBATCH --cpu-freq=low"); err == nil || !strings.Contains(err.Error(), "--cpu-freq=low") {
		t.Errorf("with a line of sbatch: %v", err)
	}
}

// A job gets nothing of the frequency that its submitting job runs at, unless the user set it.
func TestFrequencyIsNotInherited(t *testing.T) {
	for environ, want := range map[string]string{
		"SLURM_CPU_FREQ_REQ=low EVO_CPU_FREQ=low HOME=/h":  "HOME=/h X=1",
		"SLURM_CPU_FREQ_REQ=high EVO_CPU_FREQ=low HOME=/h": "SLURM_CPU_FREQ_REQ=high HOME=/h X=1",
		"SLURM_CPU_FREQ_REQ=high HOME=/h":                  "SLURM_CPU_FREQ_REQ=high HOME=/h X=1",
		"HOME=/h EVO_CPU_FREQ=low":                         "HOME=/h X=1",
	} {
		if got := strings.Join(withVariables(strings.Fields(environ), [][2]string{{"X", "1"}}), " "); got != want {
			t.Errorf("%s: %s, want %s", environ, got, want)
		}
	}
}
