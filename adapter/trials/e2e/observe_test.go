package e2e_test

import (
	"context"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/sidecar/observed"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest/must"
)

// reads lists the messages that a sidecar that observes may send, and those of Slurm's own daemons.
var reads = regexp.MustCompile(`^(REQUEST_(JOB_INFO|JOB_INFO_SINGLE|NODE_INFO|PARTITION_INFO|RESERVATION_INFO|BUILD_INFO|STATS_INFO|ASSOC_MGR_INFO|PING|CONTROL_STATUS)|MESSAGE_.*|REQUEST_COMPLETE_.*|ACCOUNTING_.*)$`)

var rpcLine = regexp.MustCompile(`(?m)^\s+([A-Z_]+)\s+\(\s*\d+\)\s+count:(\d+)`)

// rpcs counts slurmctld's messages by type.
func (s *site) rpcs() map[string]int {
	s.t.Helper()
	out, err := s.Cluster.Run(context.Background(), slurmtest.Root, "sdiag")
	s.must(err)
	all := map[string]int{}
	for _, m := range rpcLine.FindAllStringSubmatch(out, -1) {
		all[m[1]], _ = strconv.Atoi(m[2])
	}
	return all
}

var volatile = regexp.MustCompile(`\b(Reason|Scheduler|RunTime|LastSchedEval|SchedNodeList|StartTime|EndTime|CPULoad|FreeMem|LastBusyTime|SlurmdStartTime)=\S*`)

// dump returns what Slurm shows of jobs, reservations, and nodes, without what changes by itself.
func (s *site) dump() string {
	s.t.Helper()
	all := ""
	for _, what := range []string{"job", "reservation", "node"} {
		out, err := s.Cluster.Run(context.Background(), slurmtest.Root, "scontrol", "--oneliner", "show", what)
		s.must(err)
		all += volatile.ReplaceAllString(out, "")
	}
	return all
}

// TestObserve: an ordinary account observes a cluster. Its messages only read, and no job, reservation, or node differs
// afterwards. Later, root drives jobs with the same database.
func TestObserve(t *testing.T) {
	t.Parallel()
	watcher := account(t, "backup")
	s := newSite(t, slurmtest.Options{}, watcher, "mode: observe")
	submit := func(args ...string) string {
		out, errs, err := s.As(0, "sbatch", append([]string{"--parsable", "--exclusive", "--output=/dev/null"}, args...)...)
		if err != nil {
			t.Fatal(err, errs)
		}
		return strings.TrimSpace(out)
	}
	all := strconv.Itoa(len(s.nodes()))
	submit("--nodes="+all, "--time=1", "--wrap=sleep 25")
	waiting := submit("--nodes="+all, "--time=1", "--wrap=sleep 5")
	parked := submit("--nodes=1", "--time=20", "--begin=now+3650days", "--comment=evo:v2;p=1@4s,2@4s;;", "--wrap=sleep 60")
	s.eventually("the sidecar sees the parked job", func() bool { return strings.Contains(s.job(parked).Reason, "mode: observe") })

	before, was := s.rpcs(), s.dump()
	time.Sleep(6 * time.Second)
	if now := s.dump(); now != was {
		t.Errorf("before:\n%s\nafter:\n%s", was, now)
	}
	after := s.rpcs()
	for _, name := range slices.Sorted(maps.Keys(after)) {
		if n := after[name] - before[name]; n > 0 && !reads.MatchString(name) {
			t.Errorf("%d messages %s", n, name)
		}
	}
	if n := after["REQUEST_JOB_INFO"] - before["REQUEST_JOB_INFO"]; n < 3 {
		t.Errorf("%d polls in six seconds", n)
	}

	out, errs, err := s.As(0, "evosbatch", "--profile=1@4s,2@4s", "--wrap=true")
	if err == nil || !strings.Contains(errs, "--rigid") {
		t.Errorf("evosbatch while observing: %s%s", out, errs)
	}
	rigid := s.submit("--rigid", "--profile=1@4s,2@4s,1@4s", "--wrap", `while eval "$(evosctl next)" && [ -z "$EVO_DONE" ]; do echo $EVO_STEP of $EVO_STEPS on $EVO_NODES; done`)
	if out, errs, _ := s.As(0, "evosqueue"); !strings.Contains(out, "Observing: ") {
		t.Errorf("evosqueue: %s%s", out, errs)
	}
	if out, errs, _ := s.As(1, "evosctl", "doctor"); !strings.Contains(out, "is observing cluster") || strings.Contains(out, "only root submits") {
		t.Errorf("doctor: %s%s", out, errs)
	}
	s.eventually("the stock jobs and the rigid one have ended", func() bool {
		out, err := s.Cluster.Run(context.Background(), slurmtest.Root, "squeue", "-h", "-o", "%A")
		return err == nil && strings.TrimSpace(out) == parked
	})
	text := must.Read(s.t, s.Dir+"/out/out-"+rigid)
	if got := messages(strings.Split(strings.TrimSpace(string(text)), "\n")); !slices.Equal(got, []string{"2 of 3 on 2", "3 of 3 on 2"}) {
		t.Errorf("the rigid job printed %q", got)
	}
	s.stop(syscall.SIGTERM)
	s.recorded(waiting)

	config := must.Read(s.t, s.Dir+"/evoslurm.yaml")
	s.must(os.WriteFile(s.Dir+"/evoslurm.yaml", []byte(strings.Replace(string(config), "mode: observe", "mode: act", 1)), 0o644))
	for _, dir := range []string{"/db", "/run"} {
		s.must(os.Chown(s.Dir+dir, 0, 0))
	}
	s.account = nil
	s.start()
	s.eventually("root drives the parked job", func() bool { return s.job(parked).State == "running" })
	s.stop(syscall.SIGTERM)
}

// TestObservePrivate: what PrivateData hides from an observer is not observed, and nodes and partitions stop it. The log and
// doctor name what is hidden, and doctor's remedy works.
func TestObservePrivate(t *testing.T) {
	watcher := account(t, "irc") // slurmdbd does not know it
	s := newSite(t, slurmtest.Options{Accounting: true, ExtraConf: "PrivateData=jobs,reservations"}, watcher, "mode: observe")
	_, errs, err := s.As(0, "sbatch", "--job-name=theirs", "--exclusive", "--output=/dev/null", "--wrap=sleep 600")
	if err != nil {
		t.Fatal(err, errs)
	}
	says := func(words ...string) {
		t.Helper()
		s.eventually("doctor and the log say what is hidden", func() bool {
			log := must.Read(s.t, s.log.Name())
			out, _, _ := s.As(1, "evosctl", "doctor")
			both := string(log) + out
			return strings.Contains(out, "hides from irc: ") && strings.Contains(string(log), "account=irc ") && !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(both, w) })
		})
	}
	says(`hidden="jobs,reservations"`, "jobs, reservations; what is hidden is not in the record")
	shows := func(what string) bool {
		cluster, err := s.client().Cluster(t.Context())
		return err == nil && strings.Contains(fmt.Sprintf("%+v", cluster), what)
	}
	s.eventually("the nodes are observed", func() bool { return shows("n8") })
	if shows("theirs") {
		t.Error("an ordinary account observes another user's job")
	}
	s.stop(syscall.SIGTERM)
	s.must(s.Cluster.Reconfigure(t.Context(), func(o *slurmtest.Options) { o.ExtraConf = "PrivateData=jobs,nodes,partitions,reservations" }))
	s.start()
	says("a sidecar with this account cannot poll Slurm", "cannot poll Slurm; making no changes", "ermission denied")
	out, _, _ := s.As(1, "evosctl", "doctor")
	remedy := regexp.MustCompile(`sacctmgr (add user irc [a-z=]+ [a-z=]+)`).FindStringSubmatch(out)
	if remedy == nil {
		t.Fatal(out)
	}
	_, err = s.Cluster.Run(t.Context(), slurmtest.Root, "sacctmgr", append([]string{"-i"}, strings.Fields(remedy[1])...)...)
	s.must(err)
	s.eventually("an operator observes the other user's job", func() bool { return shows("theirs") })
	if out, _, _ := s.As(1, "evosctl", "doctor"); !strings.Contains(out, "irc sees what PrivateData hides from users") {
		t.Error(out)
	}
	s.stop(syscall.SIGTERM)
}

// recorded checks that a start was recorded with predictions of a minute before or less, and the sidecar's calls.
func (s *site) recorded(job string) {
	s.t.Helper()
	days, err := observed.Days(s.Dir + "/db/observed")
	s.must(err)
	started, calls := false, 0
	for _, d := range days {
		for _, name := range d.Files {
			r, err := observed.Open(name)
			s.must(err)
			for one, err := r.Next(); err == nil; one, err = r.Next() {
				started = started || one.Start != nil && strconv.Itoa(int(one.Start.Job)) == job
				if one.Load != nil {
					calls += one.Load.Calls["squeue"]
				}
			}
			r.Close()
		}
	}
	if !started || calls < 5 {
		s.t.Errorf("in %v: started %v, %d calls of squeue", days, started, calls)
	}
}

// nodes lists the cluster's nodes.
func (s *site) nodes() []string {
	out, err := s.Cluster.Run(context.Background(), slurmtest.Root, "sinfo", "-h", "-N", "-o", "%N")
	s.must(err)
	return strings.Fields(out)
}
