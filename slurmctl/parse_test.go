package slurmctl

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestCountTasks(t *testing.T) {
	for in, want := range map[string]int{"N/A": 1, "7": 1, "2-200%2": 199, "1,3,5-9:2%4": 5, "[4-9]": 6, "0-0": 1, "1-100:3": 34} {
		if got, err := countTasks(in); err != nil || got != want {
			t.Errorf("%q is %d, %v; want %d", in, got, err, want)
		}
	}
	for _, in := range []string{"x", "9-4", "1-", "1-5:0", "1,,2", "1,3,...%4"} {
		if got, err := countTasks(in); err == nil {
			t.Errorf("%q is taken as %d", in, got)
		}
	}
}

func TestSetExit(t *testing.T) {
	for in, want := range map[string][2]int{"768": {3, 0}, "9": {0, 9}, "0": {0, 0}, "3:0": {3, 0}, "0:15": {0, 15}, "137": {0, 9}} {
		var j Job
		if err := setExit(&j, in); err != nil || j.ExitCode != want[0] || j.ExitSignal != want[1] {
			t.Errorf("%q is %d:%d, %v", in, j.ExitCode, j.ExitSignal, err)
		}
	}
}

// TestOneJobHidesNoOther checks that all jobs are read, whatever one user requests.
func TestOneJobHidesNoOther(t *testing.T) {
	v := shortView()
	good := map[string]string{"A": "7", "i": "7", "F": "7", "K": "N/A", "U": "1", "Q": "1", "D": "1", "C": "1", "c": "1", "m": "0", "z": "*:*:*",
		"l": "10:00", "V": "1", "S": "N/A", "e": "N/A", "y": "0"}
	for letter, odd := range map[string][]string{
		"n": {"n1 n2", "n[1-", "n[0-999999999]", ","}, "x": {"n]", "\n"}, "l": {"INVALID", "99999999-00:00:00", "NOT_SET"},
		"m": {"97656248G", "9999999999999P", "18446744073709551615M"}, "c": {"4294967295"}, "C": {"4294967295", "4E"},
		"D": {"4294967294", "1-4294967294"}, "y": {"-2147483645"}, "e": {"253402215000"}, "Q": {"4294967295"}, "f": {"a|b&[c*2]"}, "z": {"65535:*:0", "70000:1:1"},
	} {
		for _, value := range odd {
			var record []string
			for _, c := range v.columns {
				if c.letter == letter {
					record = append(record, value)
				} else {
					record = append(record, good[c.letter])
				}
			}
			jobs, err := v.parse(v.print([][]string{record}))
			if err != nil || len(jobs) != 1 || jobs[0].ID != 7 {
				t.Errorf("%%%s is %q: %v", letter, value, err)
			} else if j := jobs[0]; letter == "l" && value != "NOT_SET" && j.TimeLimit != Unlimited || letter == "n" && len(j.ReqNodes) == 0 {
				t.Errorf("%%%s is %q: %+v", letter, value, j)
			}
		}
	}
}

func TestSplitState(t *testing.T) {
	for in, want := range map[string]Node{
		"idle":       {State: "idle"},
		"idle*":      {State: "idle", Flags: "*"},
		"mixed-":     {State: "mixed", Flags: "-"},
		"planned":    {State: "idle", Flags: "-"},
		"PLANNED":    {State: "idle", Flags: "-"},
		"drained*":   {State: "drained", Flags: "*"},
		"allocated+": {State: "allocated", Flags: "+"},
		"idle~":      {State: "idle", Flags: "~"},
		"down$":      {State: "down", Flags: "$"},
		"idle^":      {State: "idle", Flags: "^"},
		"mixed@":     {State: "mixed", Flags: "@"},
	} {
		var n Node
		n.State, n.Flags = splitState(in)
		if diff := cmp.Diff(want, n); diff != "" {
			t.Errorf("%q: %s", in, diff)
		}
	}
	for state, why := range map[string]string{"idle": "", "mixed-": "", "planned": "", "completing": "", "reserved": "", "idle~": "", "maint": "", "mixed$": "",
		"idle*": "not responding", "mixed@": "to be rebooted", "down": "down", "drained": "drained", "draining": "draining", "unknown": "", "unknown*": "not responding",
		"idle@": "to be rebooted", "allocated^": "to be rebooted", "reboot": "reboot", "reboot^": "reboot", "draining@": "draining", "drained^": "drained", "future": "future", "blocked": "blocked"} {
		var n Node
		if n.State, n.Flags = splitState(state); n.Unusable() != why || n.Usable() != (why == "") {
			t.Errorf("%q: usable %v, %q", state, n.Usable(), n.Unusable())
		}
	}
}

// TestExternalNodes: sinfo shows nodes of other systems as idle, and Slurm gives them to no usual job (26.05.5, recorded).
func TestExternalNodes(t *testing.T) {
	nodes, parts, err := parseNodes(table{recorded, len(sinfoNames)}, read(t, "26.05", "sinfo-external.txt"))
	if err != nil || len(parts) != 1 || len(parts[0].Nodes) != 5 {
		t.Fatalf("%+v, %v", parts, err)
	}
	why := map[string]string{}
	for _, n := range nodes {
		why[n.Name] = n.Unusable()
	}
	if diff := cmp.Diff(map[string]string{"d1": "", "n1": "", "n2": "", "n3": "", "x1": "external"}, why); diff != "" {
		t.Error(diff)
	}
}

// TestExternalJobs: squeue shows an external job as it shows others, by default with the name "external", also on a node of another
// system. So the job has its nodes until its time limit. 26.05.5 printed the rows; the batch host is the one that submitted it.
func TestExternalJobs(t *testing.T) {
	jobs, err := longView(2605, nil).withSep(recorded).parse(read(t, "26.05", "squeue-long-external.txt"))
	if err != nil || len(jobs) != 2 {
		t.Fatalf("%+v, %v", jobs, err)
	}
	for i, node := range []string{"n1", "x1"} {
		j := jobs[i]
		if j.State != Running || j.Name != "external" || !slices.Equal(j.NodeList, []string{node}) || j.TimeLimit != 7*time.Minute || j.EndTime.Sub(j.StartTime) != j.TimeLimit {
			t.Errorf("on %s: %+v", node, j)
		}
	}
}

// TestRequeued: a job that Slurm requeues at once (sbatch --requeue=expedite) waits before all others, and one that it requeues
// held waits until it is released, whatever squeue calls that. 26.05.5 printed the rows.
func TestRequeued(t *testing.T) {
	text := read(t, "26.05", "squeue-long-requeued.txt")
	for _, held := range []string{"REQUEUE_HOLD", "SPECIAL_EXIT", "RESV_DEL_HOLD"} {
		jobs, err := longView(2605, nil).withSep(recorded).parse(strings.Replace(text, "REQUEUE_HOLD", held, 1))
		if err != nil || len(jobs) != 2 {
			t.Fatal(jobs, err)
		}
		if j := jobs[0]; j.State != Pending || j.Priority != math.MaxUint32 || j.Held() || j.Reason != "Resources" {
			t.Errorf("expediting: %+v", j)
		}
		if j := jobs[1]; j.State != Pending || !j.Held() || j.Reason != "job requeued in held state" {
			t.Errorf("%s: %+v", held, j)
		}
	}
}

// TestReservationComment checks that times and nodes in a comment are ignored.
func TestReservationComment(t *testing.T) {
	line := "ReservationName=a StartTime=100 EndTime=200 Duration=00:01:40 Nodes=n1 NodeCnt=1 PartitionName=main Flags= " +
		"Users=u Groups=(null) Accounts=(null) State=ACTIVE BurstBuffer=(null) Comment=x EndTime=900 Nodes=n9 State=INACTIVE\n"
	got, err := parseReservations("Warning: something\n" + line)
	if err != nil || len(got) != 1 {
		t.Fatal(got, err)
	}
	if r := got[0]; r.End.Unix() != 200 || len(r.Nodes) != 1 || r.Nodes[0] != "n1" || !r.Active {
		t.Errorf("%+v", r)
	}
	for _, none := range []string{"No reservations in the system\n", ""} {
		if got, err := parseReservations(none); err != nil || len(got) != 0 {
			t.Error(got, err)
		}
	}
}

func TestConfigHelpers(t *testing.T) {
	c, err := parseConfig("Configuration data as of 1\nSLURM_VERSION = 24.05.1\nSchedulerParameters = bf_interval=5, PERMIT_JOB_EXPANSION\n" +
		"PrologFlags = Alloc,Contain\nAuthInfo = cred_expire=9,socket=/run/m\nSlurmUser = root(0)\nKillWait = 30 sec\n\n" +
		"Cgroup Support Configuration:\nSLURM_VERSION = 1\n")
	if err != nil {
		t.Fatal(err)
	}
	if !c.HasPrologFlag("contain") || c.HasPrologFlag("X11") || c.MungeSocket() != "/run/m" || c.Version != "24.05.1" {
		t.Errorf("%+v", c)
	}
	if v, ok := c.SchedulerParameter("bf_interval"); !ok || v != "5" || c.Has("bf") {
		t.Errorf("bf_interval is %q, %v", v, ok)
	}
	if !c.Has("permit_job_expansion") {
		t.Error("a blank after a comma hides a parameter")
	}
	if _, err := parseConfig("Unable to contact\n"); err == nil {
		t.Error("text that is no configuration was taken for one")
	}
}

func FuzzJobs(f *testing.F) {
	for version, release := range releases {
		if release >= longFormat {
			f.Add(read(f, version, "squeue-long.txt"), release)
		} else {
			f.Add(read(f, version, "squeue-short.txt"), release)
		}
	}
	f.Fuzz(func(t *testing.T, out string, release int) {
		v := shortView()
		if release >= longFormat {
			v = longView(release, nil)
		}
		jobs, err := v.withSep(recorded).parse(out)
		if err != nil {
			return
		}
		if want := strings.Count(out, recorded) / len(v.columns); len(jobs) != want {
			t.Errorf("%d jobs of %d records", len(jobs), want)
		}
		for _, j := range jobs {
			if j.ID == 0 || j.ArrayTasks < 1 || j.NumNodes < 0 {
				t.Errorf("%+v", j)
			}
		}
	})
}

func FuzzNodes(f *testing.F) {
	for version := range releases {
		f.Add(read(f, version, "sinfo.txt"))
	}
	f.Fuzz(func(t *testing.T, out string) {
		nodes, parts, err := parseNodes(table{recorded, len(sinfoLetters)}, out)
		if err != nil {
			return
		}
		inParts, inNodes := 0, 0
		for _, n := range nodes {
			inParts += len(n.Partitions)
		}
		for _, p := range parts {
			inNodes += len(p.Nodes)
		}
		if inParts != inNodes {
			t.Errorf("nodes are in %d partitions, partitions have %d nodes", inParts, inNodes)
		}
	})
}

func FuzzReservations(f *testing.F) {
	for version := range releases {
		f.Add(read(f, version, "reservations.txt"))
	}
	f.Add("No reservations in the system\n")
	f.Fuzz(func(t *testing.T, out string) {
		all, err := parseReservations(out)
		if err != nil {
			return
		}
		for _, r := range all {
			if len(r.Nodes) > MaxNodes || strings.ContainsAny(r.Name, " \t\n") {
				t.Errorf("%+v", r)
			}
		}
	})
}

func TestTopologyRefused(t *testing.T) {
	for _, out := range []string{
		"SwitchName=a Level=0 Nodes=n[1-4]\nSwitchName=a Level=0 Nodes=n5\n",
		"SwitchName=a Level=zero Nodes=n1\n",
		"SwitchName=a Level=0 Nodes=n[1-9999999]\n",
		"SwitchName=a Level=0 Nodes=n[1-100000]\nSwitchName=b Level=0 Nodes=m[1-100000]\n",
	} {
		if got, err := parseTopology(out); err == nil {
			t.Errorf("%q: %+v", out, got)
		}
	}
	if none, err := parseTopology("scontrol: error: No topology information available\n"); err != nil || len(none.Switches) > 0 {
		t.Errorf("%+v, %v", none, err)
	}
}

func FuzzTopology(f *testing.F) {
	for version, plugins := range topologies {
		for _, plugin := range plugins {
			f.Add(read(f, version, "topology-"+plugin+".txt"))
		}
	}
	f.Add("SwitchName=a Level=1 Switches=a,b\nSwitchName=b Level=2 Switches=a\nAggregatedBlock=b1 Nodes=n1\n")
	f.Fuzz(func(t *testing.T, out string) {
		got, err := parseTopology(out)
		if err != nil {
			return
		}
		nodes := 0
		for i, s := range got.Switches {
			nodes += len(s.Nodes)
			hops := 0
			for at := i; at >= 0; at = got.Switches[at].Above {
				if hops++; hops > len(got.Switches) {
					t.Fatalf("%s is above itself", s.Name)
				}
			}
		}
		if nodes > MaxNodes || len(got.Switches) > MaxSwitches {
			t.Errorf("%d switches, %d nodes", len(got.Switches), nodes)
		}
	})
}

func FuzzConfig(f *testing.F) {
	for version := range releases {
		f.Add(read(f, version, "config.txt"))
	}
	f.Fuzz(func(t *testing.T, out string) {
		c, err := parseConfig(out)
		if err != nil {
			return
		}
		if c.Version == "" || c.KillWait() < 0 {
			t.Errorf("%+v", c)
		}
		c.Has("x")
		c.MungeSocket()
		_, _, _ = c.SlurmUser()
	})
}

// BenchmarkParseJobs reads about a thousand jobs.
func BenchmarkParseJobs(b *testing.B) {
	one := read(b, "24.11", "squeue-long.txt")
	out := strings.Repeat(one, 1000/strings.Count(one, "\n")*2)
	v := longView(2411, nil).withSep(recorded)
	b.SetBytes(int64(len(out)))
	for b.Loop() {
		if _, err := v.parse(out); err != nil {
			b.Fatal(err)
		}
	}
}
