package e2e_test

import (
	"context"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/evoslurm/evoslurm/slurmctl/slurmtest"
)

// TestByTheJob: on a site where jobs grow by companions alone, an operator's account suffices, since the jobs' own
// processes submit what brings their nodes, whichever command they call.
func TestByTheJob(t *testing.T) {
	t.Parallel()
	s := newSite(t, slurmtest.Options{Accounting: true, PrologFlags: "Contain"}, account(t, "backup"))
	_, err := s.Cluster.Run(context.Background(), slurmtest.Root, "sacctmgr", "-i", "modify", "user", s.account.Name, "set", "adminlevel=Operator")
	s.must(err)
	s.byJob()
	s.t = t
	s.stop(syscall.SIGTERM)
}

// byJob has companions brought by every command that can have a job grow.
func (s *site) byJob() {
	t := s.t
	t.Run("next", func(t *testing.T) {
		s.t = t
		if got := messages(s.output(s.submit("--drive=companion", s.script("evolve.sh", evolve)))); !slices.Equal(got, evolved) {
			t.Errorf("the job printed\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(evolved, "\n"))
		}
	})
	for name, job := range map[string][]string{
		"grow": {"--profile=1@1m", `eval "$(evosctl grow 2)"; evosrun --ntasks-per-node=1 hostname | wc -l`},
		"accept": {"--malleable=1-3", "--time=2", `while [ "$(evosctl hostfile | wc -l)" != 3 ]; do eval "$(evosctl wait-event --shell=sh)"; evosctl accept $EVO_OFFER_NODES >/dev/null; done
evosctl hostfile | wc -l`},
		// Another job of the user, which asks for the hold's nodes all the time, does not keep them.
		"slips": {"--profile=1@8s,3@20s", `until hold=$(scontrol show -o reservation | grep -o "evo_${SLURM_JOB_ID}_2_[0-9]*" | head -n 1) && [ "$hold" ]; do sleep 0.1; done
while :; do salloc --no-shell -N2 -t 60 -J slips --reservation=$hold; done >/dev/null 2>&1 &
eval "$(evosctl next)"; evosrun --ntasks-per-node=1 hostname | wc -l
kill $!; wait; scancel --name=slips`},
		"follow": {"--profile=1@5s,3@5s,1@2s", `export TRACE=nodes-$SLURM_JOB_ID
evosrun --follow --drain-time=2s -- sh -c 'echo $EVO_NODE >> $TRACE; exec sleep 60' >/dev/null 2>&1; sort -u $TRACE | wc -l`},
	} {
		t.Run(name, func(t *testing.T) {
			s.t = t
			id := s.submit(append([]string{"--drive=companion"}, slices.Insert(job, len(job)-1, "--wrap")...)...)
			if got := messages(s.output(id)); !slices.Equal(got, []string{"3"}) {
				t.Errorf("the job printed %q, want 3", got)
			}
		})
	}
	t.Run("another user cannot have it grow", func(t *testing.T) {
		s.t = t
		id := s.submit("--drive=companion", "--profile=1@60s,2@60s", "--wrap", "sleep 100")
		s.eventually("the job runs", func() bool { return s.job(id).State == "running" })
		out, err := s.Cluster.Run(context.Background(), slurmtest.Root, "env", append(s.Env(), "evosctl", "next", "--job="+id, "--timeout=20s")...)
		if err == nil || !strings.Contains(err.Error()+out, "only a process of") {
			t.Errorf("root ended the step: %v: %s", err, out)
		}
		_, err = s.Cluster.Run(context.Background(), s.Cluster.Users()[0], "scancel", id)
		s.must(err)
		s.output(id)
	})
}
