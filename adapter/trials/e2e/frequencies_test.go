package e2e_test

import (
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/evoslurm/evoslurm/slurmctl/slurmtest"
)

// asksForFrequency prints which CPU frequency Slurm has for the steps of srun and of evosrun, in each step of the job. The
// second evosrun has an option of its own.
const asksForFrequency = `#!/bin/bash
ask='scontrol show step $SLURM_JOB_ID.$SLURM_STEP_ID | grep -oE "CPU_max_freq=[A-Za-z0-9]+|CPUFreqReq=Default"'
show() {
  echo "$1 $(srun -N1 -n1 sh -c "$ask") $(evosrun -N1 -n1 sh -c "$ask") $(evosrun -N1 -n1 --cpu-freq=medium sh -c "$ask")"
}
at=${EVO_STEP-1}
until (eval "$(evosctl env)" && [ "$EVO_STEP" = $at ]); do sleep 0.2; done # the sidecar has seen the chain's step
show $at
[ -z "$EVO_STEP" ] || exit 0 # a step of a chain
until eval "$(evosctl next)" && [ -n "$EVO_DONE" ]; do show $EVO_STEP; done
`

// TestFrequencies checks that each step's srun asks Slurm for the frequency of the step, in every drive mode.
func TestFrequencies(t *testing.T) {
	t.Parallel()
	s := newSite(t, slurmtest.Options{Accounting: true, PermitJobExpansion: true}, nil)
	file := s.script("frequencies.sh", asksForFrequency)
	const own = " CPU_max_freq=Medium"
	want := []string{"1 CPU_max_freq=Low CPU_max_freq=Low" + own, "2 CPU_max_freq=2100000 CPU_max_freq=2100000" + own, "3 CPUFreqReq=Default CPUFreqReq=Default" + own}
	modes := []string{"merge", "companion", "chain"}
	ids := map[string]string{}
	for _, drive := range modes {
		ids[drive] = s.submit("--drive="+drive, "--output=out-"+drive, "--profile=1@20s:low,2@20s:2.1GHz,1@20s", file)
	}
	s.eventually("evosqueue shows the frequencies", func() bool { return s.job(ids["merge"]).CPUFreq == "1@20s:low,2@20s:2.1GHz,1@20s" })
	for _, drive := range modes {
		got := slices.DeleteFunc(s.output(drive), func(line string) bool { return !strings.Contains(line, "CPU") })
		if !slices.Equal(got, want) {
			t.Errorf("%s: the steps asked for %q, want %q", drive, got, want)
		}
	}
	s.stop(syscall.SIGTERM)
}
