package e2e_test

import (
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/slurmctl/slurmtest"
)

// coupledCodes runs a code on the nodes of each component. Each instance prints its start and its end.
const coupledCodes = `#!/bin/bash
export TRACE=$PWD/trace-$SLURM_JOB_ID
echo "hosts $(evosctl hostfile --component=ocean | wc -l) $(evosrun --component=atm sh -c 'echo $SLURMD_NODENAME' | sort -u | wc -l)" >> $TRACE
pids=
for CODE in ocean atm; do
  export CODE
  evosrun --component=$CODE --follow --drain-time=10s -- sh -c '
  echo "start $CODE $EVO_NODE" >> $TRACE
  trap "sleep 0.3; echo drained $CODE $EVO_NODE >> $TRACE; exit 0" TERM
  while :; do sleep 0.1; done' &
  pids="$pids $!"
done
for pid in $pids; do wait $pid; echo "follower $?"; done
`

// TestCoupled checks by merges and by companions that one code grows alone, that a node changes hands, and that one code
// shrinks alone, while the sidecar is killed between. An instance whose node stays in its component starts once.
func TestCoupled(t *testing.T) {
	t.Parallel()
	s := newSite(t, slurmtest.Options{Accounting: true, PermitJobExpansion: true}, nil)
	file := s.script("coupled.sh", coupledCodes)
	ids := map[string]string{}
	for _, drive := range []string{"merge", "companion"} {
		ids[drive] = s.submit("--drive="+drive, "--component=ocean", "--profile=1@20s,2@20s,3@20s,1@20s", "--component=atm", "--profile=2@40s,1@40s", file)
	}
	s.eventually("both are in their second step", func() bool { return s.job(ids["merge"]).Step >= 2 && s.job(ids["companion"]).Step >= 2 })
	s.stop(syscall.SIGKILL)
	time.Sleep(4 * time.Second)
	s.start()
	for drive, id := range ids {
		out := s.output(id) // srun's messages, too
		if ends := slices.DeleteFunc(slices.Clone(out), func(line string) bool { return !strings.HasPrefix(line, "follower ") }); !slices.Equal(ends, []string{"follower 0", "follower 0"}) {
			t.Errorf("%s printed\n%s", drive, strings.Join(out, "\n"))
		}
		text, err := os.ReadFile(s.Dir + "/out/trace-" + id)
		if err != nil {
			t.Fatal(err)
		}
		if why := coupledTrace(strings.Split(strings.TrimSpace(string(text)), "\n")); why != "" {
			t.Errorf("%s: %s\n%s", drive, why, text)
		}
	}
	s.stop(syscall.SIGTERM)
}

// coupledTrace returns what is wrong with a trace, or "".
func coupledTrace(lines []string) string {
	if lines[0] != "hosts 1 2" {
		return "the first step has other nodes"
	}
	started, on := map[string]int{}, map[string]string{} // by code; by node
	handed := 0
	for _, line := range lines[1:] {
		w := strings.Fields(line)
		if len(w) != 3 {
			return "a line of " + line
		}
		switch what, code, node := w[0], w[1], w[2]; {
		case what == "start" && on[node] != "":
			return node + " runs two instances"
		case what == "start":
			if _, before := on[node]; before {
				handed++
			}
			on[node], started[code] = code, started[code]+1
		case on[node] != code:
			return node + " drained another code"
		default:
			on[node] = ""
		}
	}
	if started["ocean"] != 3 || started["atm"] != 2 || handed != 1 {
		return "instances started again, or no node changed hands"
	}
	return ""
}
