package e2e_test

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/evoslurm/evoslurm/adapter/trials/rig"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest/must"
)

var placedJobs = flag.Int("clusters.jobs", 12, "how many jobs TestClusters places by four policies, while a sidecar and a slurmctld are killed")

// placedOn is how sbatch names the cluster of a job.
var placedOn = regexp.MustCompile(`(?m)^Submitted batch job (\d+) on cluster (\w)$`)

// clusters are three clusters of a site, each with its sidecar. The commands know all of them.
type clusters map[string]*rig.Rig

func newClusters(t *testing.T, sizes map[string]int, config ...string) clusters {
	t.Helper()
	all := clusters{}
	dir, err := os.MkdirTemp("", "evoslurm-clusters-") // which users reach
	must.OK(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	must.OK(t, os.Chmod(dir, 0o755))
	must.OK(t, os.WriteFile(dir+"/replicas", []byte("10K a in put\n"), 0o644))
	must.OK(t, os.WriteFile(dir+"/fetch", []byte("#!/bin/sh\necho \"$EVO_STAGE_FROM $* as $(id -u)\"\n"), 0o755))
	var first *slurmtest.Cluster
	for _, name := range slices.Sorted(maps.Keys(sizes)) {
		configured := "#!/bin/sh\necho export EVOSLURM_CONFIG=" + dir + "/" + name + ".yaml\n" // in /etc, if the nodes were machines
		must.OK(t, os.WriteFile(dir+"/"+name+".sh", []byte(configured), 0o755))
		c := slurmtest.Start(t, slurmtest.Options{Name: name, Nodes: sizes[name], Accounting: first == nil, Beside: first, PermitJobExpansion: true, ExtraConf: "AccountingStorageEnforce=associations\nTaskProlog=" + dir + "/" + name + ".sh"})
		if first == nil {
			first = c
		}
		more := "poll_interval: 500ms\nclusters: {dir: " + dir + ", wait: 2m, replicas: " + dir + "/replicas, bandwidths: [\"a b 500\", \"* * 1000\"], stage_in: " + dir + "/fetch}\n" + strings.Join(config, "")
		r, err := rig.New(c, bin, more)
		must.OK(t, err)
		t.Cleanup(func() { os.RemoveAll(r.Dir) })
		must.OK(t, os.WriteFile(dir+"/"+name+".yaml", []byte(r.Configuration(more)), 0o644))
		all[name] = r
	}
	return all
}

// started starts the sidecars, and returns the site of cluster a, and what stops each sidecar.
func (c clusters) started(t *testing.T) (*site, map[string]func()) {
	t.Helper()
	stops := map[string]func(){}
	for name, r := range c {
		stops[name] = r.StartIn(t, rig.Account{})
	}
	s := &site{Rig: c["a"], t: t}
	for _, r := range c {
		s.eventually("the sidecar is there", func() bool { _, _, err := r.As(0, "evosqueue"); return err == nil })
	}
	return s, stops
}

// TestClusters: jobs go to the cluster that completes them first, and none is lost or there twice while a sidecar and a slurmctld
// are killed. The commands show all clusters.
func TestClusters(t *testing.T) {
	t.Parallel()
	all := newClusters(t, map[string]int{"a": 2, "b": 4, "c": 1})
	s, stops := all.started(t)
	s.chooses()
	s.stages()

	// Many at once, while a sidecar and a slurmctld are killed.
	saved := "" // what b's slurmctld had saved of its jobs when it was killed
	placed := s.many(func(job string) {
		stops["c"]()
		save := all["b"].Cluster.Dir() + "/state/job_state"
		s.eventually("b has saved "+job, func() bool {
			text, _ := os.ReadFile(save)
			saved = string(text)
			return job == "" || strings.Contains(saved, job+"\x00")
		})
		must.OK(t, all["b"].Cluster.KillController(t.Context()))
	}, func() {
		must.OK(t, all["b"].Cluster.StartController(t.Context()))
		stops["c"] = all["c"].StartIn(t, rig.Account{})
	})
	s.eventually("all clusters are there again", func() bool { _, _, err := s.As(1, "evosqueue", "-M", "all"); return err == nil })
	for i, on := range placed {
		found := all.with(t, fmt.Sprint("many", i))
		if found == "" && on.early && on.cluster == "b" && !strings.Contains(saved, fmt.Sprint("many", i, "\x00")) { // stock jobs are lost, too
			t.Logf("many%d is lost: slurmctld was killed before it saved the job", i)
		} else if found != on.cluster {
			t.Errorf("many%d is on clusters %q, want %q", i, found, on.cluster)
		}
	}
	s.viewed(stops["b"])
}

// went is where a job went.
type went struct {
	cluster string
	early   bool // it was begun before what was away was back
}

// many submits jobs by all policies, four at once, and returns where each went. A third of them go before a sidecar and a slurmctld
// are away; that gets the name of the last job on cluster b, or "". These are back once a further one went.
func (s *site) many(away func(job string), back func()) (placed []went) {
	s.t.Helper()
	policies := []string{"earliest", "worst-fit", "close-to-files", "cluster-min"}
	placed = make([]went, *placedJobs)
	var again atomic.Bool
	done := make(chan int)
	for worker := range 4 {
		go func() {
			for i := worker; i < len(placed); i += 4 {
				among := []string{"all", "a,b"}[i/4%2] // a question to all waits for the sidecar that is away
				early := !again.Load()
				out, errs, err := s.As(i%2, "evosbatch", "-M", among, "--placement="+policies[(i+i/4)%4], "--stage-in=in put", fmt.Sprint("--job-name=many", i), "--output=/dev/null", "--profile=1@1m,2@1m", "--wrap=true")
				if m := placedOn.FindStringSubmatch(out); err == nil && m != nil {
					placed[i] = went{m[2], early}
				} else {
					s.t.Errorf("many%d: %v\n%s%s", i, err, out, errs)
				}
				done <- i
			}
		}()
	}
	last := ""
	for n := range placed {
		if i := <-done; placed[i].cluster == "b" {
			last = fmt.Sprint("many", i)
		}
		switch n {
		case len(placed) / 3:
			away(last)
		case len(placed)/3 + 1:
			back()
			again.Store(true)
		}
	}
	return placed
}

// chooses sees to which cluster a job goes.
func (s *site) chooses() {
	t := s.t
	t.Helper()
	submit := func(name string, args ...string) (cluster, said string) {
		t.Helper()
		out, errs, err := s.As(0, "evosbatch", append(append([]string{"-M", "all", "--job-name=" + name, "--output=/dev/null"}, args...), "--wrap=sleep 600")...)
		m := placedOn.FindStringSubmatch(out)
		if err != nil || m == nil {
			t.Errorf("%s: %v\n%s%s", name, err, out, errs)
			return "", errs
		}
		return m[2], errs
	}

	// What only one cluster can ever run goes there, and the others say why not.
	cluster, said := submit("large", "--profile=3@10m,4@1m")
	if cluster != "b" || !regexp.MustCompile(`(?m)^a +- +- +- +.*2 nodes`).MatchString(said) && !strings.Contains(said, "partition main has 2") {
		t.Errorf("four nodes: on %q\n%s", cluster, said)
	}
	// The largest one is busy: the next is where there is room.
	if cluster, said = submit("two", "--profile=2@10m"); cluster != "a" {
		t.Errorf("two nodes: on %q\n%s", cluster, said)
	}
	// A dry run submits nothing.
	if out, errs, err := s.As(0, "evosbatch", "-M", "all", "--dry-run", "--profile=1@10m", "--wrap=true"); err != nil || !strings.Contains(out, "--clusters=") || !strings.Contains(errs, "CLUSTER") {
		t.Errorf("--dry-run: %v\n%s%s", err, out, errs)
	}
	for policy, want := range map[string]string{"worst-fit": "", "close-to-files": "--placement=close-to-files", "nonsense": "--placement: "} {
		out, errs, err := s.As(0, "evosbatch", "-M", "all", "--dry-run", "--placement="+policy, "--profile=1@10m", "--wrap=true")
		if (err != nil) != (want != "") || !strings.Contains(errs, want) {
			t.Errorf("--placement=%s: %v\n%s%s", policy, err, out, errs)
		}
	}
}

// stages sees that a job whose file is on a busy cluster goes to the next one, and gets the file there before its script begins.
func (s *site) stages() {
	t := s.t
	t.Helper()
	dir, err := os.MkdirTemp("", "evoslurm-staged-") // where users write
	must.OK(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	must.OK(t, os.Chmod(dir, 0o777))
	must.OK(t, os.WriteFile(dir+"/job.sh", []byte("#!/bin/sh\n#SBATCH --output="+dir+"/out\n\n#EVO --profile=1@1m\n#EVO --stage-in='in put'\necho script $1 as $SLURM_JOB_NAME\n"), 0o644))
	out, errs, err := s.As(0, "evosbatch", "-M", "all", "--placement=close-to-files", dir+"/job.sh", "one")
	if m := placedOn.FindStringSubmatch(out); err != nil || m == nil || m[2] != "c" || !regexp.MustCompile(`(?m)^c +0s +11s +1m11s +1/1`).MatchString(errs) {
		t.Errorf("a file on a: %v\n%s%s", err, out, errs)
		return
	}
	want := fmt.Sprintf("a -- in put as %d\nscript one as job.sh\n", s.Cluster.Users()[0].UID)
	s.eventually("the script runs once its file is there: "+want, func() bool {
		got, _ := os.ReadFile(dir + "/out")
		return string(got) == want
	})
}

// viewed sees that commands show all clusters, also once a sidecar is away.
func (s *site) viewed(stop func()) {
	t := s.t
	t.Helper()
	out, errs, err := s.As(0, "evosqueue", "-M", "all", "-o", "%j")
	if err != nil || !strings.HasPrefix(out, "CLUSTER: a\n") || !strings.Contains(out, "\n\nCLUSTER: b\n") || !strings.Contains(out, "\n\nCLUSTER: c\n") || strings.Index(out, "large") < strings.Index(out, "CLUSTER: b") {
		t.Errorf("evosqueue: %v\n%s%s", err, out, errs)
	}
	if out, errs, err := s.As(0, "evosacct", "-M", "b,a", "-X", "-o", "jobname,cluster"); err != nil || strings.Index(out, "CLUSTER: b") > strings.Index(out, "CLUSTER: a") || !regexp.MustCompile(`large +b`).MatchString(out) {
		t.Errorf("evosacct: %v\n%s%s", err, out, errs)
	}
	stop()
	if out, errs, err := s.As(0, "evosqueue", "-M", "b,a", "-o", "%j"); err == nil || !strings.HasPrefix(out, "CLUSTER: a\n") || !strings.Contains(errs, "cluster b: ") {
		t.Errorf("evosqueue without b's sidecar: %v\n%s%s", err, out, errs)
	}
}

// with returns the names of the clusters with a job of that name, each as often as it has one.
func (c clusters) with(t *testing.T, job string) (found string) {
	t.Helper()
	for _, name := range slices.Sorted(maps.Keys(c)) {
		out, err := c[name].Cluster.Run(t.Context(), slurmtest.Root, "squeue", "-h", "-t", "all", "-o", "%j")
		must.OK(t, err)
		found += strings.Repeat(name, strings.Count("\n"+out, "\n"+job+"\n"))
	}
	return found
}
