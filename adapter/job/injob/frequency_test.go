package injob

import (
	"slices"
	"strings"
	"testing"

	"github.com/evoslurm/evoslurm/slurmctl/slurmtest/must"
)

func TestFrequencyOfStep(t *testing.T) {
	for _, c := range []struct{ step, environ, want string }{
		{"low", "", "low low"},
		{"2100000", "SLURM_CPU_FREQ_REQ=low EVO_CPU_FREQ=low", "2100000 2100000"},
		{"2100000", "SLURM_CPU_FREQ_REQ=Low EVO_CPU_FREQ=low", "2100000 2100000"}, // as srun writes it for its tasks
		{"", "SLURM_CPU_FREQ_REQ=low EVO_CPU_FREQ=low", " "},
		{"", "", " "},
		{"low", "SLURM_CPU_FREQ_REQ=high", "high "}, // the user's own
		{"", "SLURM_CPU_FREQ_REQ=high", "high "},
		{"low", "SLURM_CPU_FREQ_REQ=high EVO_CPU_FREQ=medium", "high medium"},
		{"medium", "EVO_CPU_FREQ=low", "medium medium"},
	} {
		a := merged()
		a.CPUFreq = c.step
		e, err := ExportsOf(a, env(strings.Fields(c.environ)...))
		must.OK(t, err)
		after := e.Apply(strings.Fields(c.environ))
		if got := lookup(after, "SLURM_CPU_FREQ_REQ") + " " + lookup(after, "EVO_CPU_FREQ"); got != c.want {
			t.Errorf("%+v: %q", c, got)
		}
	}
	for environ, want := range map[string]string{"EVO_STEP=2": "", "EVO_STEP=2 SLURM_CPU_FREQ_REQ=high EVO_CPU_FREQ=high": "high", "": "low"} { // of a chain
		a := merged()
		a.Drive, a.CPUFreq = "chain", "low"
		if got := lookup(atFrequency(a, strings.Fields(environ)), "SLURM_CPU_FREQ_REQ"); got != want {
			t.Errorf("in a chain's step with %q: %s, want %s", environ, got, want)
		}
	}
	a := merged()
	a.Parts, a.Done = nil, true
	e, err := ExportsOf(a, env("SLURM_CPU_FREQ_REQ=low", "EVO_CPU_FREQ=low"))
	must.OK(t, err)
	if got := lookup(e.Apply([]string{"SLURM_CPU_FREQ_REQ=low"}), "SLURM_CPU_FREQ_REQ"); got != "" {
		t.Errorf("after the last step: %s", got)
	}
}

// The sruns of a job that is several Slurm jobs lose what Slurm set for one of them, and keep the frequency.
func TestFrequencyOverCompanions(t *testing.T) {
	for step, want := range map[string]string{"low": "low", "": ""} {
		a := companions()
		a.CPUFreq = step
		c := Command{Allocation: a, Environ: []string{"SLURM_JOB_ID=12", "SLURM_NNODES=2", "SLURM_CPU_FREQ_REQ=high", "EVO_CPU_FREQ=high"}}
		args, err := parseSrun([]string{"true"})
		must.OK(t, err)
		runs, _, err := c.several(args)
		must.OK(t, err)
		for _, r := range runs {
			if got := lookup(r.env, "SLURM_CPU_FREQ_REQ"); got != want || lookup(r.env, "SLURM_NNODES") != "" {
				t.Errorf("step with %q: environment %q", step, r.env)
			}
		}
	}
}

func TestFrequencyOfLaunch(t *testing.T) {
	for step, want := range map[string]bool{"low": true, "": false} {
		a := companions()
		a.CPUFreq = step
		argv, _, err := Launch(a, []string{"n5", "orted"}, nil)
		must.OK(t, err)
		if got := slices.Contains(argv, "--cpu-freq=low"); got != want || argv[len(argv)-1] != "orted" {
			t.Errorf("step with %q: %q", step, argv)
		}
	}
}
