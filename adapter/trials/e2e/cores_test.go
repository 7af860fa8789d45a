package e2e_test

import (
	"strings"
	"syscall"
	"testing"

	"github.com/evoslurm/evoslurm/slurmctl/slurmtest"
)

// sharesCores runs one command beside another one on the job's node, and prints which CPUs each may use.
const sharesCores = `#!/bin/bash
export TRACE=$PWD/trace-$SLURM_JOB_ID CPUS='sed -n s/Cpus_allowed_list:.//p /proc/$$/status'
evosrun $FOLLOW --cores=1 -- sh -c '
  all=$(eval $CPUS); echo "alone $all"; : > $TRACE.alone
  while [ "$(eval $CPUS)" = "$all" ]; do sleep 0.1; done; echo "folded $(eval $CPUS)"; : > $TRACE.folded
  until [ "$(eval $CPUS)" = "$all" ]; do sleep 0.1; done; echo "unfolded $(eval $CPUS)"' &
until [ -e $TRACE.alone ]; do sleep 0.1; done
evosrun --cores=1 sh -c 'echo "second $(eval $CPUS)"; until [ -e $TRACE.folded ]; do sleep 0.1; done'
echo "the second ended with $?"
wait $!
echo "the first ended with $?"
[ ! -e evobag-$SLURM_JOB_ID ] || cat evobag-$SLURM_JOB_ID/out/1
for i in {1..50}; do left=$(ls /tmp/evoslurm-$UID | grep cores-$SLURM_JOB_ID-) || break; sleep 0.1; done; echo "left $left"
`

// TestCores checks on a real Slurm that two evosruns share a node's cores, also if one works off a bag of tasks, that the one left
// gets all back, and that no file stays.
func TestCores(t *testing.T) {
	t.Parallel()
	s := newSite(t, slurmtest.Options{Accounting: true, PermitJobExpansion: true}, nil)
	file := s.script("cores.sh", sharesCores)
	for _, options := range []string{"--export=ALL", "--export=ALL,FOLLOW=--follow", "--export=ALL,FOLLOW=--tasks=1-1"} {
		out := messages(s.output(s.submit("--profile=1@2m", options, file)))
		said := map[string]string{}
		for _, line := range out {
			what, cpus, _ := strings.Cut(line, " ")
			said[what] = cpus
		}
		alone, folded, second := said["alone"], said["folded"], said["second"]
		if len(out) != 7 || alone == "" || said["unfolded"] != alone || folded == second || len(folded)+len(second) > len(alone) || said["left"] != "" {
			t.Errorf("%s: the job printed\n%s", options, strings.Join(out, "\n"))
		}
	}
	s.stop(syscall.SIGTERM)
}
