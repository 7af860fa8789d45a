package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	"github.com/evoslurm/evoslurm/slurmctl/slurmtest"
)

// turmFormat lists the fields that turm asks squeue for.
const turmFormat = "jobid,name,state,username,timeused,StartTime,tres-alloc,partition,nodelist,stdout,stderr,command,statecompact,reason,ArrayJobID,ArrayTaskID,NodeList,WorkDir"

// TestOwnCluster: who names the own cluster, in a variable as sites' modules do or on the command line, in
// whatever case, gets what others get; another one is refused.
func TestOwnCluster(t *testing.T) {
	t.Parallel()
	s := newSite(t, slurmtest.Options{Accounting: true, ExtraConf: "JobSubmitPlugins=lua", // what sbatch says is read
		Files: map[string]string{"job_submit.lua": "function slurm_job_submit() return 0 end\nfunction slurm_job_modify() return 0 end\nreturn slurm.SUCCESS\n"}}, nil)
	const name = "SlurmTest"
	run := func(cluster, command string, args ...string) string {
		t.Helper()
		out, errs, err := s.As(0, "env", append([]string{"SLURM_CLUSTERS=" + cluster, command}, args...)...)
		if err != nil {
			return "failed: " + errs
		}
		return out
	}
	said := run(name, "evosbatch", "--output=/dev/null", "--profile=1@10m", "--wrap=sleep 600")
	id, named := strings.CutPrefix(strings.TrimSpace(said), "Submitted batch job ")
	if id, _, _ = strings.Cut(id, " "); !named {
		t.Fatalf("SLURM_CLUSTERS=%s evosbatch: %s", name, said)
	}
	if said := run("elsewhere", "evosbatch", "--clusters="+name, "--drive=chain", "--output=/dev/null", "--profile=1@10m,2@10m", "--wrap=sleep 600"); !strings.HasPrefix(said, "Submitted batch job ") {
		t.Errorf("--clusters=%s: %s", name, said)
	}
	s.eventually("it runs", func() bool { return s.job(id).State == "running" })
	s.eventually("the chain runs", func() bool {
		jobs, err := s.Jobs(0)
		return err == nil && len(jobs) == 2 && jobs[0].State == "running" && jobs[1].State == "running"
	})
	for _, args := range [][]string{{"-h", "-o", "%i %{step}"}, {"--json"}, {"-h"}, {"-h", "-S", "i"}, {"-h", "--start"}} {
		plain, _, err := s.As(0, "evosqueue", args...)
		s.must(err)
		if got := run(name, "evosqueue", args...); (got == "") != (plain == "") || strings.HasPrefix(got, "failed") || strings.HasPrefix(got, "CLUSTER") {
			t.Errorf("SLURM_CLUSTERS=%s evosqueue %q: %s; without: %s", name, args, got, plain)
		}
	}
	for _, args := range [][]string{{"evosqueue", "-o", "%i"}, {"evosbatch", "--profile=1@10m", "--wrap=true"}} {
		for _, cluster := range []string{"elsewhere", name + ",elsewhere"} {
			if got := run(cluster, args[0], args[1:]...); !strings.HasPrefix(got, "failed: "+args[0]+": error: ") || !strings.Contains(got, cluster) {
				t.Errorf("SLURM_CLUSTERS=%s %q: %s", cluster, args, got)
			}
		}
	}
}

// TestAsSqueue holds what evosqueue shows of evolving jobs to what squeue does: the same
// bytes, whatever is asked for.
func TestAsSqueue(t *testing.T) {
	t.Parallel()
	s := newSite(t, slurmtest.Options{}, nil)
	script := `eval "$(evosctl next)"; srun sleep 300`
	running := s.submit("--job-name=größer % \"{step}\"\nname", "--comment=a,b|c", "--profile=1@1s,2@10m", "--wrap", script)
	queued := s.submit("--job-name=waits", "--profile=7@10m,8@20m", "--wrap", "true")
	stock, _, err := s.As(1, "sbatch", "--parsable", "--output=/dev/null", "--wrap", "sleep 300")
	s.must(err)
	s.eventually("the first has grown, the second is planned", func() bool {
		a, b := s.job(running), s.job(queued)
		return a.Step == 2 && a.State == "running" && !b.Start.IsZero()
	})
	s.eventually("its step runs", func() bool { out, _, _ := s.As(0, "squeue", "-h", "-s"); return strings.Contains(out, running+".0") })
	ours := "--jobs=" + running + "," + queued
	turm := strings.ReplaceAll(turmFormat, ",", ":###turm###,") + ":###turm###"
	run := func(env, name string, args ...string) string {
		t.Helper()
		out, errs, err := s.As(0, "env", append(append(strings.Fields(env), name), args...)...)
		if err != nil {
			t.Fatalf("%s %q: %v\n%s", name, args, err, errs)
		}
		return out
	}
	same := func(env string, args ...string) {
		t.Helper()
		var want, got string
		for range 20 { // a second may pass between the two
			narrow := args
			if !slices.Contains(args, "-s") {
				narrow = append([]string{ours}, args...)
			}
			want, got = run(env, "squeue", narrow...), run(env, "evosqueue", args...)
			if want == got {
				return
			}
		}
		t.Errorf("%s %q (-squeue +evosqueue):\n%s", env, args, cmp.Diff(want, got))
	}
	same("", "--array", "--noheader", "--Format", turm)
	same("", "-o", "%all")
	same("", "-o", "%.18i %.9P %.8j %.8u %.2t %.10M %.6D %R")
	same("", "-O", "jobarrayid:.18 ,partition:.9 ,name:.8 ,username:.8 ,statecompact:.2 ,timeused:.10 ,numnodes:.6 ,reasonlist:0")
	same("", "-O", "JobID,Name,NumNodes,tres-alloc:40,comment,UserName:.4,State:3")
	same("", "-h", "-S", "-i", "-o", "job %i%%50 %j|%k|%N")
	same("", "-S", "i", "-o", "%i", "-t", "all")
	same("", "-t", "R", "-O", "NodeList")
	same("", "--me", "-A", "nosuch", "-o", "%i")
	same("", "-q", "normal", "-o", "%i %q")
	same("", "-w", "n1", "-t", "R", "-o", "%i %B")
	same("", "-u", s.Cluster.Users()[1].Name, "-o", "%i")
	same("", "--part", "main", "--noconvert", "-P", "-a", "-o", "%i %P %m")
	same("SQUEUE_FORMAT=%i,%S SLURM_TIME_FORMAT=relative")
	same("SQUEUE_FORMAT=%i,%e SLURM_TIME_FORMAT=%s SQUEUE_SORT=-i")
	same("SQUEUE_FORMAT2=jobid,starttime SQUEUE_STATES=PD")
	same("SQUEUE_USERS=root SQUEUE_FORMAT=%i")
	same("", "-s", running+".0", "-o", "%i|%j|%N|%u")
	same("", "-s", "-j", running)
	same("", "-j", running, "-s", "-O", "StepID,StepName:30")

	t.Run("with fields of its own", func(t *testing.T) {
		want := fmt.Sprintf("%10s|   2/2|1@1s,2@\n%10s|   0/2|7@10m,8\n", running, queued)
		if got := run("", "evosqueue", "-h", "-S", "i", "-o", "%.10i|%.6{step}|%7{profile}"); got != want {
			t.Errorf("-o: %q, want %q", got, want)
		}
		if got := run("", "evosqueue", "-h", "-S", "i", "-O", "jobid:.10|,evostep:.6|,EvoProfile:7"); got != want {
			t.Errorf("-O: %q, want %q", got, want)
		}
		s.eventually("--start has the planned one", func() bool { // which may move by a second meanwhile
			got := run("", "evosqueue", "--start", "-h")
			return strings.Contains(got, " "+queued+" ") && !strings.Contains(got, " "+running+" ") && strings.Contains(got, s.job(queued).Start.Local().Format("2006-01-02T15:04:05"))
		})
		if got := run("", "evosqueue", "-h", "-s"); !strings.Contains(got, running+".0 ") || strings.Contains(got, strings.TrimSpace(stock)+".batch") {
			t.Errorf("--steps: %q", got)
		}
		if got := run("", "evosqueue", "-h", "-q", "nosuch"); got != "" {
			t.Errorf("a table of jobs of another QOS: %q", got)
		}
		if got := run("", "evosqueue", "-h", "-S", "-i"); strings.Index(got, running) < strings.Index(got, queued) {
			t.Errorf("a table, the newest first: %q", got)
		}
		_, errs, err := s.As(0, "evosqueue", "-o", "%i %?")
		if !strings.Contains(errs, "Invalid job format specification: ?") {
			t.Errorf("an unknown letter: %v, %q", err, errs)
		}
	})
	t.Run("JSON", func(t *testing.T) {
		var want, got struct {
			Jobs     []map[string]any `json:"jobs"`
			Meta     map[string]any   `json:"meta"`
			Evoslurm struct{ Version int }
		}
		diff := "no such job"
		for range 40 { // what is written of its plan may change between the two looks
			want.Jobs, got.Jobs = nil, nil
			for _, c := range []struct {
				text string
				into any
			}{{run("", "squeue", "--json"), &want}, {run("", "evosqueue", "--json", "-t", "PD"), &got}} {
				if err := json.Unmarshal([]byte(c.text), c.into); err != nil {
					t.Fatalf("%v\n%s", err, c.text)
				}
			}
			if len(want.Jobs) < 3 || len(got.Jobs) != 1 || got.Evoslurm.Version != 1 || got.Meta == nil {
				t.Fatalf("%d jobs of %d, version %d of the schema, meta %v", len(got.Jobs), len(want.Jobs), got.Evoslurm.Version, got.Meta)
			}
			own, _ := got.Jobs[0]["evoslurm"].(map[string]any)
			if own["profile"] != "7@10m,8@20m" {
				t.Errorf("the sidecar's part: %v", own)
			}
			delete(got.Jobs[0], "evoslurm")
			for _, j := range want.Jobs {
				if fmt.Sprint(j["job_id"]) == queued {
					diff = cmp.Diff(j, got.Jobs[0])
				}
			}
			if diff == "" {
				break
			}
			time.Sleep(250 * time.Millisecond)
		}
		if diff != "" {
			t.Errorf("-squeue +evosqueue:\n%s", diff)
		}
		var doc struct{ Jobs []map[string]any }
		if err := yaml.Unmarshal([]byte(run("", "evosqueue", "--yaml")), &doc); err != nil || len(doc.Jobs) != 2 || doc.Jobs[0]["evoslurm"] == nil {
			t.Errorf("YAML: %v, %d jobs", err, len(doc.Jobs))
		}
	})
	t.Run("metrics", func(t *testing.T) {
		sock := http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", s.Dir+"/run/api.sock")
		}}}
		get := func(path string) (int, string) {
			r, err := sock.Get("http://sidecar/" + path)
			s.must(err)
			defer r.Body.Close()
			text, err := io.ReadAll(r.Body)
			s.must(err)
			return r.StatusCode, string(text)
		}
		status, text := get("metrics")
		for _, want := range []string{`evoslurm_jobs{state="running"} 1`, `evoslurm_jobs{state="queued"} 1`, "evoslurm_nodes 8", "evoslurm_allocated_nodes 2", "evoslurm_growth_late_seconds_count 1", "evoslurm_growth_wait_seconds_count 1", "evoslurm_start_late_seconds_count 1", "evoslurm_database_writable 1"} {
			if status != 200 || !strings.Contains(text, "\n"+want+"\n") {
				t.Errorf("%d, no %s in\n%s", status, want, text)
			}
		}
		if strings.Contains(text, "waits") || strings.Contains(text, s.Cluster.Users()[0].Name) {
			t.Errorf("somebody is named:\n%s", text)
		}
		if status, text := get("readyz"); status != 200 {
			t.Errorf("not ready: %d %s", status, text)
		}
	})
	for _, id := range []string{running, queued, strings.TrimSpace(stock)} {
		_, _ = s.Cluster.Run(context.Background(), slurmtest.Root, "scancel", id)
	}
}
