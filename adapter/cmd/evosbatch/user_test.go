package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/internal/drivemode"
	"github.com/evoslurm/evoslurm/adapter/job/request"
	"github.com/evoslurm/evoslurm/slurmctl"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest/must"
)

// TestAsUsers has the cluster's unprivileged users submit, and reads the jobs
// the way the sidecar does.
func TestAsUsers(t *testing.T) {
	cluster := slurmtest.Start(t, slurmtest.Options{Nodes: 2})
	program := build(t, cluster)
	client := &slurmctl.Client{Env: cluster.Env()}
	for _, u := range cluster.Users() {
		script := filepath.Join(u.Home, "job.sh")
		body := "#!/bin/sh\n#EVO --profile=1@1m,2@2m --drive=companion\necho $0 \"$@\"; hostname\n"
		must.OK(t, os.WriteFile(script, []byte(body), 0o755))
		comment := "a | b;c=\n\"quoted\" 100% – é"
		out, err := cluster.Run(t.Context(), u, program, "--parsable", "--comment", comment, "job.sh", "$(id)", "; true")
		must.OK(t, err)
		var id slurmctl.JobID
		if _, err := fmt.Sscan(out, &id); err != nil {
			t.Fatalf("%q: %v", out, err)
		}
		checkParked(t, client, id, u, comment, body)
		// Once started, it runs what was submitted, with the arguments unchanged.
		if _, err := cluster.Run(t.Context(), u, "scontrol", "update", fmt.Sprintf("JobId=%d", id), "StartTime=now"); err != nil {
			t.Fatal(err)
		}
		waitEnd(t, client, id)
		printed, err := os.ReadFile(filepath.Join(u.Home, fmt.Sprintf("slurm-%d.out", id)))
		if err != nil || !strings.Contains(string(printed), " $(id) ; true\n") {
			t.Errorf("%q, %v", printed, err)
		}
	}
}

// checkParked checks a job that waits for the sidecar.
func checkParked(t *testing.T, client *slurmctl.Client, id slurmctl.JobID, u slurmtest.User, comment, body string) {
	t.Helper()
	jobs, err := client.JobsByID(t.Context(), id)
	if err != nil || len(jobs) != 1 {
		t.Fatalf("%v, %v", jobs, err)
	}
	j := jobs[0]
	if j.User != u.Name || j.State != slurmctl.Pending || j.Reason != "BeginTime" || j.NumNodes != 1 || !j.Exclusive {
		t.Errorf("%+v", j)
	}
	s, ok, err := request.ParseMarker(j.Comment)
	if !ok || err != nil || s.Profile.String() != "1@1m,2@2m" || s.Drive != drivemode.Companion || s.Comment != comment {
		t.Errorf("marker %q: %+v, %v, %v", j.Comment, s, ok, err)
	}
	got, err := client.BatchScript(t.Context(), id)
	if err != nil || got != body {
		t.Errorf("script %q, %v", got, err)
	}
}

// build returns the path of evosbatch.
func build(t *testing.T, cluster *slurmtest.Cluster) string {
	t.Helper()
	program := filepath.Join(cluster.Dir(), "evosbatch")
	if out, err := exec.Command("go", "build", "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return program
}

// waitEnd waits until a job has completed.
func waitEnd(t *testing.T, client *slurmctl.Client, id slurmctl.JobID) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	for {
		jobs, err := client.JobsByID(ctx, id)
		must.OK(t, err)
		if len(jobs) == 0 || jobs[0].State == slurmctl.Completed {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// TestLimits checks that requests that limits never allow are rejected, even if users see no nodes,
// and that the computed time limit stays within them.
func TestLimits(t *testing.T) {
	// what is left of malleable jobs below the limits
	cut := map[string]string{"--malleable=2-8": "p=2-5@10m;", "--malleable=2-4 --qos=single": "p=2@10m;", "--malleable=3-9 -p big -t 20": "p=3-5@20m;"}
	for _, private := range []string{"none", "jobs,accounts,nodes,reservations,usage,users"} {
		t.Run("PrivateData="+private, func(t *testing.T) {
			cluster := slurmtest.Start(t, slurmtest.Options{Nodes: 8, Accounting: true,
				Partitions: []slurmtest.Partition{{Name: "main", Default: true, MaxTime: "60", Extra: "DefaultTime=10"}, {Name: "big", Extra: "MinNodes=3 MaxNodes=6"}},
				ExtraConf:  "AccountingStorageEnforce=associations,limits,qos\nPrivateData=" + private})
			program := build(t, cluster)
			u := cluster.Users()[0]
			for _, args := range [][]string{
				{"modify", "user", u.Name, "set", "GrpTRES=node=5", "MaxWall=30"},
				{"add", "qos", "single", "MaxJobsPerUser=1"},
				{"modify", "user", u.Name, "set", "qos+=single"},
			} {
				if _, err := cluster.Run(t.Context(), slurmtest.Root, "sacctmgr", append([]string{"-i"}, args...)...); err != nil {
					t.Fatal(err)
				}
			}
			for _, c := range []struct {
				args []string
				want string // words of the refusal; "": it is taken
			}{
				{[]string{"--profile=2@5m,6@5m"}, "may have 5 in all (GrpTRES=node=5)"},
				{[]string{"--profile=2@20m,4@20m"}, "allows 30 min (MaxWall)"},
				{[]string{"--profile=3@5m,2@5m", "-p", "big"}, "at least 3 (MinNodes)"},
				{[]string{"--profile=3@5m,7@5m", "-p", "big"}, "(MaxNodes)"},
				{[]string{"--profile=2@5m,4@5m", "--qos=single"}, "QOS single may have 1 job at once (MaxJobsPerUser)"},
				{[]string{"--profile=4@5m,2@5m", "--qos=single"}, ""},
				{[]string{"--profile=2@10m,4@10m", "--expand-limit=3"}, ""},
				{[]string{"--malleable=6-8"}, "may have 5 in all (GrpTRES=node=5)"},
				{[]string{"--malleable=2-8"}, ""},
				{[]string{"--malleable=2-4", "--qos=single"}, ""},
				{[]string{"--malleable=3-9", "-p", "big", "-t", "20"}, ""},
			} {
				out, err := cluster.Run(t.Context(), u, program, append(c.args, "--parsable", "-o", "/dev/null", "--wrap=true")...)
				if c.want == "" && err == nil {
					checkCut(t, cluster, u, c.args, strings.TrimSpace(out), cut[strings.Join(c.args, " ")])
				} else if c.want == "" {
					t.Errorf("%q: %v", c.args, err)
				} else if err == nil || !strings.Contains(err.Error(), c.want) {
					t.Errorf("%q: %s %v; want a refusal with %q", c.args, out, err, c.want)
				}
			}
		})
	}
}

// checkCut checks the marker and the time limit of a job that was taken.
func checkCut(t *testing.T, cluster *slurmtest.Cluster, u slurmtest.User, args []string, id, want string) {
	t.Helper()
	limit, err := cluster.Run(t.Context(), u, "squeue", "-h", "-j", id, "-o", "%l")
	if err != nil || strings.Contains(args[0], "10m") && strings.TrimSpace(limit) != "30:00" {
		t.Errorf("%q: time limit %q, %v; want 30:00", args, limit, err)
	}
	marker, err := cluster.Run(t.Context(), u, "squeue", "-h", "-j", id, "-o", "%k")
	if err != nil || !strings.Contains(marker, want) {
		t.Errorf("%q: marker %q, %v; want %q", args, marker, err, want)
	}
}
