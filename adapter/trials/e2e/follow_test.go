package e2e_test

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/slurmctl"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest"
)

var followRounds = flag.Int("follow.rounds", 1, "how often TestFollow's jobs change their size, by four")

// instance runs on every node: it prints its start and its end, and takes a moment for the latter.
const instance = `sh -c '
echo "start $EVO_NODE $(date +%s%N) $$" >> $TRACE
trap "sleep 0.3; echo drained $EVO_NODE >> $TRACE; exit 0" TERM
while :; do sleep 0.1; done'`

// byScript ends its steps itself, and looks for processes on the nodes that it has not any
// more. Once all runs it measures what Slurm takes by itself for the same.
const byScript = `#!/bin/bash
export TRACE=$PWD/trace-$SLURM_JOB_ID
evosrun --follow=script --drain-time=2m -- ` + instance + ` &
sleep 3
while eval "$(evosctl next)" && [ -z "$EVO_DONE" ]; do
  echo "next $EVO_NODELIST $(date +%s%N)" >> $TRACE
  while read what node at pid; do
    case $what in
    start) last[${node#n}]=$pid;;
    esac
  done < $TRACE
  for node in ${!last[@]}; do
    if ! scontrol show hostnames $EVO_NODELIST | grep -qx n$node && kill -0 ${last[node]}; then echo "left n$node" >> $TRACE; fi
  done 2>/dev/null
  sleep 2
  node=$(scontrol show hostnames $EVO_NODELIST | tail -1)
  job=$(squeue -h -t R -w $node -o %A | tail -1)
  echo "srun $(date +%s%N) $(env -u SLURM_NODELIST -u SLURM_JOB_NODELIST -u SLURM_JOB_ID -u SLURM_JOBID -u SLURM_NTASKS -u SLURM_NPROCS -u SLURM_NNODES -u SLURM_JOB_NUM_NODES -u SLURM_TASKS_PER_NODE srun --jobid=$job -N1 -n1 -w $node --overlap date +%s%N)" >> $TRACE
done
wait $!
echo "follower $?"
`

// bySteps leaves the steps to the follower; a second follower's instances take longer to end. Steps
// are also ended by next, whose first call is killed while it waits. This continues until next
// reports that the last step has ended, and the job lasts until then: next fails for an ended job.
const bySteps = `#!/bin/bash
export TRACE=$PWD/trace-$SLURM_JOB_ID
while [ -z "$EVO_DONE" ]; do
  sleep 5
  timeout -s KILL 1 evosctl next
  eval "$(evosctl next)" || echo "next failed"
done &
ending=$!
evosrun --follow --drain-time=2m -- sh -c '
trap "sleep 1; echo rested $EVO_NODE >> $TRACE; exit 0" TERM
echo "beside $EVO_NODE" >> $TRACE
while :; do sleep 0.1; done' &
evosrun --follow --drain-time=3s -l --on-nodes='echo "nodes $EVO_NODES" >> $TRACE' -- ` + instance + `
echo "follower $?"
wait $!
echo "beside $?"
wait $ending
`

// TestFollow checks that what evosrun --follow runs is on every node of the job and on no other,
// through growths and shrinks, by merges and by companions, whichever process ends the steps, and
// while the sidecar is killed. It is drained before its node is given back.
func TestFollow(t *testing.T) {
	t.Parallel()
	s := newSite(t, slurmtest.Options{Accounting: true, PermitJobExpansion: true}, nil)
	for name, text := range map[string]string{"script": byScript, "steps": bySteps} {
		t.Run(name, func(t *testing.T) {
			s.t = t
			profile := "1@6s" + strings.Repeat(",3@6s,2@7s,4@6s,1@6s", *followRounds)
			file := s.script(name+".sh", text)
			ids := map[string]string{}
			for _, drive := range []string{"merge", "companion"} {
				ids[drive] = s.submit("--drive="+drive, "--profile="+profile, `--on-grow=echo "hook grow $EVO_STEP" >> $TRACE`,
					`--on-shrink=echo "hook shrink $EVO_STEP" >> $TRACE; sleep 2`, `--on-step=echo "hook step $EVO_STEP" >> $TRACE`, file)
			}
			s.eventually("both are in their second step", func() bool { return s.job(ids["merge"]).Step == 2 && s.job(ids["companion"]).Step == 2 })
			s.stop(syscall.SIGKILL)
			time.Sleep(4 * time.Second)
			s.start()
			for drive, id := range ids {
				out := s.output(id)
				if !slices.Contains(out, "follower 0") {
					t.Errorf("%s printed\n%s", drive, strings.Join(out, "\n"))
				}
				if name == "steps" && !slices.Contains(out, "beside 0") {
					t.Errorf("%s: of the second follower\n%s", drive, strings.Join(out, "\n"))
				}
				if slices.Contains(out, "next failed") {
					t.Errorf("%s printed\n%s", drive, strings.Join(out, "\n"))
				}
				s.followed(drive, id, name == "script")
			}
		})
	}
	t.Run("python", func(t *testing.T) {
		s.t = t
		s.python()
	})
	t.Run("signal", func(t *testing.T) {
		s.t = t
		s.signalled()
	})
	t.Run("offers", func(t *testing.T) {
		s.t = t
		s.followedOffers()
	})
	s.t = t
	s.stop(syscall.SIGTERM)
}

// followedOffers lets malleable jobs grow over free nodes and give way to a stock job, with evosrun
// --follow or the script answering; the sidecar is killed when the first job has been asked to
// leave.
func (s *site) followedOffers() {
	s.t.Helper()
	follow := func(before, ends string) string {
		return "#!/bin/bash\nexport TRACE=$PWD/trace-$SLURM_JOB_ID\n" + before + "evosrun --follow=" + ends + " --drain-time=1m -- " + instance + "\n"
	}
	byItself := s.submit("--drive=merge", "--profile=1-4@10m", "--grace=3m", s.script("offers.sh", follow("", "steps")))
	answers := "(while eval \"$(evosctl wait-event --shell=sh)\"; do evosctl accept $EVO_OFFER_NODES >/dev/null; done) &\n"
	byScript := s.submit("--drive=companion", "--profile=1-4@10m", "--grace=3m", s.script("answers.sh", follow(answers, "script")))
	traced := func(what string) (nodes []string) {
		for _, id := range []string{byItself, byScript} {
			text, _ := os.ReadFile(s.Dir + "/out/trace-" + id)
			for _, line := range strings.Split(string(text), "\n") {
				if w := strings.Fields(line); len(w) > 1 && w[0] == what {
					nodes = append(nodes, w[1])
				}
			}
		}
		return nodes
	}
	s.eventually("instances run on all nodes", func() bool { return len(traced("start")) == 8 })
	stock, errs, err := s.As(0, "sbatch", "--parsable", "--nodes=6", "--exclusive", "--time=5", "--wrap=sleep 300")
	if err != nil {
		s.t.Fatalf("%v: %s", err, errs)
	}
	s.eventually("one is drained", func() bool { return len(traced("drained")) > 0 })
	s.stop(syscall.SIGKILL)
	s.start()
	s.eventually("the stock job runs", func() bool {
		out, _, _ := s.As(0, "squeue", "--noheader", "--format=%t", "--jobs="+strings.TrimSpace(stock))
		return strings.TrimSpace(out) == "R"
	})
	if drained := traced("drained"); len(drained) != 6 || len(traced("start")) != 8 {
		s.t.Errorf("drained on %v; started on %v", drained, traced("start"))
	}
	for _, id := range []string{byItself, byScript} {
		for _, o := range s.job(id).Offers {
			if o.Enforced {
				s.t.Errorf("job %s: %+v", id, o)
			}
		}
	}
	if _, errs, err := s.As(0, "scancel", byItself, byScript, strings.TrimSpace(stock)); err != nil {
		s.t.Errorf("%v: %s", err, errs)
	}
	s.eventually("all have ended", func() bool { out, _, _ := s.As(0, "squeue", "-h"); return strings.TrimSpace(out) == "" })
}

// signalled: of three srun steps the one on the node that evosctl shrink gives back gets the signal, and has
// ended before that is done.
func (s *site) signalled() {
	s.t.Helper()
	job := s.script("signal.sh", `#!/bin/bash
eval "$(evosctl env --shell=sh)"
for node in $(scontrol show hostnames "$EVO_NODELIST"); do
  srun --nodes=1 --ntasks=1 --nodelist=$node --overlap sh -c 'trap "echo told $SLURMD_NODENAME; exit" TERM; touch up-$SLURM_JOB_ID-$SLURMD_NODENAME; while :; do sleep 0.1; done' &
done
while [ "$(ls up-$SLURM_JOB_ID-* 2>/dev/null | wc -l)" -lt 3 ]; do sleep 0.1; done
eval "$(evosctl shrink 1 --signal=TERM --shell=sh)"
echo "has $(scontrol show hostnames "$EVO_NODELIST" | tr '\n' ' ')"
`)
	id := s.submit("--drive=merge", "--profile=3@10m", job)
	var told, has []string
	for _, line := range messages(s.output(id)) {
		switch w := strings.Fields(line); {
		case len(w) > 1 && w[0] == "told" && has == nil:
			told = append(told, w[1])
		case len(w) > 1 && w[0] == "has":
			has = w[1:]
		}
	}
	if len(told) != 1 || len(has) != 2 || slices.Contains(has, told[0]) {
		s.t.Errorf("%v were announced, and it has %v:\n%s", told, has, strings.Join(s.output(id), "\n"))
	}
}

// python runs a job whose steps a Python program goes through, which is killed between the
// answer and its use, and started again; its hooks note what changes.
func (s *site) python() {
	s.t.Helper()
	library, err := filepath.Abs("../../../contrib/python")
	s.must(err)
	program := s.script("steps.py", `import evoslurm, os, subprocess
for step in evoslurm.steps():
    if step.number == 2 and not os.path.exists("killed"):
        open("killed", "w").close()
        os.kill(os.getpid(), 9)
    ran = subprocess.run(["evosrun", "sh", "-c", "echo $SLURMD_NODENAME"], stdout=subprocess.PIPE, text=True, check=True).stdout
    print(step.number, step.drive, sorted(ran.split()) == sorted(step.nodes), len(step.nodes), flush=True)
`)
	job := s.script("python.sh", `#!/bin/bash
#EVO --profile=1@5s,3@5s,2@5s --drive=companion --on-grow='echo hook grow $EVO_ARRIVED | tr -d 0-9' --on-shrink='echo hook $EVO_EVENT'
export PYTHONPATH=`+library+` PYTHONDONTWRITEBYTECODE=1
python3 `+program+` 2>&1 || echo killed
python3 `+program+` 2>&1
`)
	inC := s.submit(s.inC())
	id := s.submit(job)
	got := slices.DeleteFunc(messages(s.output(id)), func(line string) bool { return strings.Contains(line, "Killed") })
	if want := []string{"1 companion True 1", "hook grow n[-]", "killed", "2 companion True 3", "hook shrink", "3 companion True 2"}; !slices.Equal(got, want) {
		s.t.Errorf("the job printed %q, want %q", got, want)
	}
	got = slices.DeleteFunc(messages(s.output(inC)), func(line string) bool { return strings.Contains(line, "Killed") })
	if want := []string{"1 1 nodes", "killed", "2 3 nodes", "grown 4", "4 3 nodes", "5 2 nodes", "1"}; !slices.Equal(got, want) {
		s.t.Errorf("the job in C printed %q, want %q", got, want)
	}
	s.eventually("the sidecar has seen its end", func() bool { return s.job(id).State == "ended" })
	fits, errs, err := s.As(0, "evosctl", "profile", "-q", id)
	if err != nil || !regexp.MustCompile(`^1@\d+s,3@\d+s,2@\d+s\n$`).MatchString(fits) {
		s.t.Errorf("the profile that would have fitted: %q, %v, %s", fits, err, errs)
	}
	dry, errs, err := s.As(0, "evosbatch", "--dry-run", "--profile=auto:python.sh", "--wrap=true")
	if err != nil || !strings.Contains(dry, "evo:v2;p="+strings.TrimSpace(fits)+";") || !strings.Contains(errs, "--profile=auto:python.sh: "+strings.TrimSpace(fits)+", by job "+id) {
		s.t.Errorf("the last run's profile, that of job %s, is %q: %q, %v, %q", id, fits, dry, err, errs)
	}
	if _, errs, err := s.As(0, "evosbatch", "--dry-run", "--profile=auto:nobody", "--wrap=true"); err == nil || !strings.Contains(errs, `no job of yours with the name "nobody" has completed`) {
		s.t.Errorf("of a job that nobody ran: %v, %q", err, errs)
	}
	if out, _, _ := s.As(0, "evosctl", "profile", id); !strings.HasSuffix(out, "\n"+fits) {
		s.t.Errorf("in full: %s", out)
	}
}

// inC returns a job whose steps a program in C goes through, killed as python's is; it grows on demand.
func (s *site) inC() string {
	s.t.Helper()
	library, err := filepath.Abs("../../../contrib/c")
	s.must(err)
	out := s.t.TempDir()
	source, program := filepath.Join(out, "steps.c"), filepath.Join(out, "steps")
	s.must(os.WriteFile(source, []byte(`#include <evoslurm.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>
int main(void)
{
	struct evos_step *step, *ended;
	int rc = evos_current(&step);
	setvbuf(stdout, NULL, _IOLBF, 0);
	while (rc == EVOS_OK) {
		if (step->number == 2 && access("killed-c", F_OK)) {
			fclose(fopen("killed-c", "w"));
			raise(SIGKILL);
		}
		printf("%d %d nodes\n", step->number, step->nodes);
		if (step->number == 2) {
			ended = step;
			if ((rc = evos_grow(1, 0, "2s", "5m", &step)) != EVOS_OK)
				break;
			evos_free(ended);
			printf("grown %d\n", step->nodes);
		}
		ended = step;
		rc = evos_next(ended, NULL, 0, &step);
		evos_free(ended);
	}
	if (rc != EVOS_DONE)
		printf("error: %s\n", evos_error());
	printf("%d\n", rc);
	return 0;
}
`), 0o644))
	for _, words := range [][]string{{"make", "-s", "-C", library, "OUT=" + out}, {"gcc", "-I" + library, "-o", program, source, out + "/libevoslurm.a"}} {
		if text, err := exec.Command(words[0], words[1:]...).CombinedOutput(); err != nil {
			s.t.Fatalf("%v: %v\n%s", words, err, text)
		}
	}
	binary, err := os.ReadFile(program)
	s.must(err)
	program = s.script("steps-in-c", string(binary))
	return s.script("c.sh", "#!/bin/bash\n#EVO --profile=1@5s,3@20s,2@5s\n"+program+" 2>&1 || echo killed\n"+program+" 2>&1\n")
}

// followed judges the trace of a job.
func (s *site) followed(drive, id string, steps bool) {
	s.t.Helper()
	text, err := os.ReadFile(s.Dir + "/out/trace-" + id)
	s.must(err)
	bad := func(format string, args ...any) {
		s.t.Helper()
		s.t.Errorf("%s: %s:\n%s", drive, fmt.Sprintf(format, args...), text)
	}
	running, beside := map[string]bool{}, map[string]bool{}
	starts, nexts := 0, 0
	var boundary int64
	var arrived []string
	var took []int64
	var beyond []time.Duration
	hooks := map[string]int{}
	for line := range strings.Lines(string(text)) {
		w := strings.Fields(line)
		switch w[0] {
		case "start":
			if running[w[1]] {
				bad("%s twice", w[1])
			}
			running[w[1]] = true
			starts++
			if at, _ := strconv.ParseInt(w[2], 10, 64); slices.Contains(arrived, w[1]) {
				took = append(took, at-boundary)
			}
		case "drained":
			if !running[w[1]] {
				bad("%s was not running", w[1])
			}
			delete(running, w[1])
		case "beside":
			beside[w[1]] = true
		case "rested":
			delete(beside, w[1])
		case "next":
			nexts++
			nodes, err := slurmctl.ExpandNodes(w[1])
			s.must(err)
			boundary, _ = strconv.ParseInt(w[2], 10, 64)
			took, arrived = nil, nil
			for node := range running {
				if !slices.Contains(nodes, node) {
					bad("on %s it was not drained before the step ended", node)
				}
			}
			for _, node := range nodes {
				if !running[node] {
					arrived = append(arrived, node)
				}
			}
		case "srun":
			for node := range arrived {
				if !running[arrived[node]] {
					bad("it did not run on %s", arrived[node])
				}
			}
			called, _ := strconv.ParseInt(w[1], 10, 64)
			began, _ := strconv.ParseInt(w[2], 10, 64)
			if len(took) > 0 {
				beyond = append(beyond, time.Duration(slices.Max(took)-(began-called)))
			}
		case "hook":
			if hooks[line]++; hooks[line] > 1 {
				bad("%s a second time", strings.TrimSpace(line))
			}
		case "left":
			bad("a process was left on %s", w[1])
		}
	}
	if len(running)+len(beside) > 0 { // or killed when their nodes were given back
		bad("not drained: %v, %v", running, beside)
	}
	if want := 1 + 4**followRounds; starts != want {
		bad("%d starts, want %d", starts, want)
	}
	if want := 8 * *followRounds; len(hooks) != want {
		bad("%d hooks, want %d", len(hooks), want)
	}
	if steps && nexts != 4**followRounds {
		bad("%d steps", nexts)
	}
	if len(beyond) > 0 {
		slices.Sort(beyond)
		s.t.Logf("%s: running on all new nodes after evosctl next answered, beyond what srun takes: median %v, 95 of 100 %v, longest %v, of %d",
			drive, beyond[len(beyond)/2].Round(time.Millisecond), beyond[(len(beyond)*95-1)/100].Round(time.Millisecond), beyond[len(beyond)-1].Round(time.Millisecond), len(beyond))
	}
}
