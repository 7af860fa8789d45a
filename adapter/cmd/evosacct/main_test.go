package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/cmd/internal/contribtest"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest/must"
)

var now = time.Date(2026, 11, 20, 14, 0, 0, 0, time.Local)

func ago(m int) time.Time { return now.Add(-time.Duration(m) * time.Minute) }

func example() []api.Job {
	return []api.Job{
		{ID: 9, Name: "later|", User: "bob", UID: 2, Account: "b", Partition: "main", State: "queued", Submit: ago(10), Profile: "4@10m", Start: now.Add(time.Hour)},
		{ID: 7, Name: "amr", User: "alice", UID: 1, Account: "a", Partition: "main", State: "ended", EndState: "TIMEOUT", Submit: ago(100), Start: ago(90), End: ago(40), Profile: "2@20m,5@20m", CPUFreq: "2@20m:low,5@20m", HeldIdle: 1234,
			Past: []api.Span{{Step: 1, Start: ago(90), End: ago(70), Nodes: 2, NodeList: "n[1-2]"}, {Step: 1, Start: ago(70), End: ago(60), Nodes: 1, NodeList: "n1"},
				{Step: 2, Start: ago(60), End: ago(40), Nodes: 5, NodeList: "n[1-5]"}}},
		{ID: 8, Name: "runs", User: "alice", UID: 1, Account: "a", Partition: "debug", State: "waiting", Submit: ago(30), Start: ago(20), End: now.Add(time.Hour), Profile: "3@1h", HeldIdle: 66,
			Past: []api.Span{{Step: 1, Start: ago(20), Nodes: 3, NodeList: "n[6-8]"}}},
	}
}

func acct(t *testing.T, args ...string) (string, error) {
	t.Helper()
	o, cmd := build()
	if err := cmd.ParseFlags(args); err != nil {
		return "", err
	}
	if err := o.prepare(now, func() (string, error) { return "1", nil }); err != nil {
		return "", err
	}
	var b bytes.Buffer
	err := o.write(&b, example(), now, &meter{}, recorded)
	return b.String(), err
}

// recorded returns the sidecar's events about job 7, whose growth came two minutes late.
func recorded(id uint32) ([]api.Event, error) {
	if id == 9 {
		return nil, errors.New("the log is gone")
	}
	if id != 7 {
		return nil, nil
	}
	event := func(at time.Time, kind, detail string) api.Event {
		return api.Event{At: at, Job: id, Kind: kind, Detail: json.RawMessage(detail)}
	}
	due := ago(62)
	return []api.Event{event(ago(90), "started", `{"step":1}`),
		event(ago(65), "delayed", fmt.Sprintf(`{"step":2,"why":"node n5 is down","was":%d}`, due.Unix())), event(due, "step ended", `{"step":1}`),
		event(ago(60), "step begun", fmt.Sprintf(`{"step":2,"planned":%d,"nodes":"n[1-5]"}`, ago(60).Unix()))}, nil
}

func TestRows(t *testing.T) {
	for args, want := range map[string]string{
		"-n -P -o jobid,step,user,state,nnodes,elapsed,nodeseconds,nodelist": `7||alice|TIMEOUT|5|00:50:00|9000|n[1-5]
7/1|1|alice|COMPLETED|2|00:30:00|3000|n[1-2]
7/2|2|alice|TIMEOUT|5|00:20:00|6000|n[1-5]
8||alice|RUNNING|3|00:20:00|3600|n[6-8]
8/1|1|alice|RUNNING|3|00:20:00|3600|n[6-8]
`,
		"-p -X -a -o JobID,Submit,Start,End": `JobID|Submit|Start|End|
7|2026-11-20T12:20:00|2026-11-20T12:30:00|2026-11-20T13:20:00|
8|2026-11-20T13:30:00|2026-11-20T13:40:00|Unknown|
9|2026-11-20T13:50:00|Unknown|Unknown|
`,
		"-X -a -o jobid%3,jobname%4,state,user%-6,account": "Job JobN      State User      Account\n--- ---- ---------- ------ ----------\n  7  amr    TIMEOUT alice           a\n  8 runs    RUNNING alice           a\n  9 lat+    PENDING bob             b\n",
		"-n -P -o jobid,promised,late,promise,cause":       "7||120.0|0 of 1 kept|\n7/1||||\n7/2|2026-11-20T12:58:00|120.0|late|node n5 is down\n8||||\n8/1||||\n",
		"-n -X -P -o jobid -S now-30minutes":               "8\n",
		"-n -X -P -o jobid,profile":                        "7|2@20m:low,5@20m\n8|3@1h\n",
		"-n -P -o jobid,heldidle":                          "7|1234\n7/1|\n7/2|\n8|66\n8/1|\n",
		"-n -P -o jobid,wasted,lent":                       "7|600|0\n7/1|600|0\n7/2|0|0\n8|0|0\n8/1|0|0\n", // step 1 of 7 asked for 2400
		"-P -a --totals=user":                              "User|Jobs|NodeSeconds|HeldIdle|Energy\nalice|2|12600|1300|\nbob|1|0|0|\n",
		"-n -P -a --totals=account":                        "a|2|12600|1300|\nb|1|0|0|\n",
		"-n -P -a --totals=partition":                      "main|2|9000|1234|\ndebug|1|3600|66|\n",
		"-n -X -P -o jobid -S 13:00 -E 13:25":              "7\n",
		"-n -X -P -o jobid -j 9,7":                         "7\n9\n",
		"-n -X -P -o jobid -a -s to,PENDING":               "7\n9\n",
		"-n -X -P -o jobid -u bob":                         "9\n",
		"-n -X -P -o jobid -a -r debug":                    "8\n",
		"-n -X -P -o jobid -a -A b":                        "9\n",
		"-n -X -P -o jobid -a --name amr,x":                "7\n",
	} {
		got, err := acct(t, strings.Fields(args)...)
		if err != nil || got != want {
			t.Errorf("%s (%v):\n%s\nwant\n%s", args, err, got, want)
		}
	}
	for args, want := range map[string]string{"-j x": `invalid job ID "x"`, "-j 20_": `invalid job ID "20_"`, "-S sometime": "invalid time", "-S 13:00 -E 12:00": "before its start", "-o nothing": "there are JobID, JobIDRaw, Step", "-o jobid%x": "width", "--totals=node": "there are totals by account, partition, user", "-a -o late": "the log is gone"} {
		if _, err := acct(t, strings.Fields(args)...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", args, err, want)
		}
	}
	if got, err := acct(t, "--json", "-j", "7"); err != nil || !strings.Contains(got, `"end_state": "TIMEOUT"`) {
		t.Errorf("JSON: %v %s", err, got)
	}
}

// TestTasks checks that tasks of an array have their labels, that the waiting ones share a line, and that --jobs takes
// arrays and tasks.
func TestTasks(t *testing.T) {
	task := func(id, n uint32, state string) api.Job {
		return api.Job{ID: id, Array: 20, ArrayTask: n, ArrayLimit: 2, Name: "sweep", User: "alice", UID: 1, State: state, EndState: "COMPLETED", Submit: ago(100), End: ago(30),
			Past: []api.Span{{Step: 1, Start: ago(60), End: ago(30), Nodes: 2}}}
	}
	rest := api.Job{ID: 20, Array: 20, ArrayRest: "5-1000000", ArrayLimit: 2, State: "queued", Submit: ago(100)}
	jobs := []api.Job{rest, task(24, 4, "queued"), task(21, 1, "ended"), task(23, 3, "queued"), task(22, 2, "ended"), {ID: 21, State: "ended", EndState: "FAILED", Submit: ago(200), End: ago(190)}}
	jobs[1].Past, jobs[3].Past = nil, nil
	for args, want := range map[string]string{
		"-X -a -S 10:00":  "20_1 21 COMPLETED|20_2 22 COMPLETED|20_[3-1000000%2] 23 PENDING|21 21 FAILED|",
		"-j 20":           "20_1 21 COMPLETED|20_1/1 21 COMPLETED|20_2 22 COMPLETED|20_2/1 22 COMPLETED|20_[3-1000000%2] 23 PENDING|",
		"-X -j 20_2,20_4": "20_2 22 COMPLETED|20_4 24 PENDING|",
		"-X -j 20_9":      "20_[5-1000000%2] 20 PENDING|",
		"-X -j 22":        "20_2 22 COMPLETED|",
	} {
		o, cmd := build()
		must.OK(t, cmd.ParseFlags(append(strings.Fields(args), "-n", "-P", "-o", "jobid,jobidraw,state")))
		must.OK(t, o.prepare(now, func() (string, error) { return "1", nil }))
		var b bytes.Buffer
		must.OK(t, o.write(&b, jobs, now, &meter{}, recorded))
		if got := strings.NewReplacer("|", " ", "\n", "|").Replace(b.String()); got != want {
			t.Errorf("%s: %s, want %s", args, got, want)
		}
	}
}

// TestWithPast checks that all pages of the history are added, each job once, in its last state.
func TestWithPast(t *testing.T) {
	listed := []api.Job{{ID: 1, Submit: ago(9), State: "running"}, {ID: 2, Submit: ago(9), State: "ended", Reason: "known", Past: []api.Span{{}}}}
	pages := map[api.Place]api.History{
		{}:                 {Jobs: []api.Job{{ID: 1, Submit: ago(9), State: "ended"}, {ID: 2, Submit: ago(9), State: "ended"}}, Next: "8.3"},
		{Ended: 8, Row: 3}: {Jobs: []api.Job{{ID: 3, State: "ended"}, {ID: 2, Submit: ago(99), State: "ended"}}}, // an ID that was used before
	}
	o, cmd := build()
	must.OK(t, cmd.ParseFlags([]string{"-j", "1,2,3,20_3", "-u", "ann", "-S", "12:00", "-E", "13:00"}))
	must.OK(t, o.prepare(now, func() (string, error) { return "1", nil }))
	q := o.query()
	if fmt.Sprint(q.Jobs, q.Tasks, q.Users) != "[1 2 3] [1 2 3 20_3] [ann]" || !q.Start.Equal(ago(120)) || !q.End.Equal(ago(60).Add(time.Second)) {
		t.Errorf("%+v", q)
	}
	all, err := withPast(listed, q, func(q api.HistoryQuery) (api.History, error) { return pages[q.Before], nil })
	got := ""
	for _, j := range all {
		got += fmt.Sprint(j.ID, j.State, j.Reason, " ")
	}
	if want := "1ended 2endedknown 3ended 2ended "; err != nil || got != want {
		t.Errorf("%q, %v, want %q", got, err, want)
	}
}

// TestNextStepsNodes checks that nodes that come for the next step while a step waits do not count
// as that step's, nor do those that remain after some have left. Loans of a malleable job do. No
// node-second is lost.
func TestNextStepsNodes(t *testing.T) {
	grows := []api.Span{{Step: 1, Start: ago(60), End: ago(50), Nodes: 2, NodeList: "n[1-2]"}, {Step: 1, Start: ago(50), End: ago(49), Nodes: 3, NodeList: "n[1-3]"},
		{Step: 1, Start: ago(49), End: ago(48), Nodes: 4, NodeList: "n[1-4]"}, {Step: 2, Start: ago(48), End: ago(40), Nodes: 4, NodeList: "n[1-4]"},
		{Step: 2, Start: ago(40), End: ago(39), Nodes: 1, NodeList: "n1"}, {Step: 3, Start: ago(39), End: ago(30), Nodes: 1, NodeList: "n1"}}
	for _, c := range []struct {
		profile, bounds string
		want            string
	}{
		{"2@10m,4@10m,1@10m", "", "1 2 n[1-2] 1620; 2 4 n[1-4] 1980; 3 1 n1 540; "},
		{"2@10m,4@10m,1@10m", "2-3@10m,4@10m,1@10m", "1 3 n[1-3] 1620; 2 4 n[1-4] 1980; 3 1 n1 540; "},
		{"no profile", "", "1 4 n[1-4] 1620; 2 4 n[1-4] 1980; 3 1 n1 540; "},
		{"1@10m,4@10m,1@10m", "", "1 2 n[1-2] 1620; 2 4 n[1-4] 1980; 3 1 n1 540; "}, // it has what Slurm gave it
	} {
		got, sum := "", 0.0
		rows := (&meter{}).steps(api.Job{Profile: c.profile, Bounds: c.bounds, Past: grows}, nil, now)
		for _, r := range rows {
			got += fmt.Sprintf("%d %d %s %.0f; ", r.step, r.nodes, r.nodeList, r.nodeSeconds)
			sum += r.nodeSeconds
		}
		if got != c.want {
			t.Errorf("%s, bounds %q: %s, want %s", c.profile, c.bounds, got, c.want)
		}
		if job := whole(api.Job{State: "ended"}, rows, nil, now); job.nodeSeconds != sum || job.nodes != 4 {
			t.Errorf("%s: the job has %d nodes, %v node-seconds, its steps %v", c.profile, job.nodes, job.nodeSeconds, sum)
		}
	}
}

// TestSpent: of a malleable job that has 1 node by its profile, further nodes are lent; what it has after its time is
// wasted. The figures are those of evosctl report.
func TestSpent(t *testing.T) {
	j := api.Job{Profile: "1@60m,2@10m", Bounds: "1-4@60m,2@10m", Past: []api.Span{{Step: 1, Start: ago(90), End: ago(80), Nodes: 1}, {Step: 1, Start: ago(80), End: ago(60), Nodes: 3}, {Step: 1, Start: ago(60), End: ago(20), Nodes: 1}, {Step: 2, Start: ago(20), Nodes: 2}}}
	rows := (&meter{}).steps(j, nil, now)
	for i, want := range [][2]float64{{40 * 60, 10 * 60}, {0, 20 * 60}} {
		if rows[i].lent != want[0] || rows[i].wasted != want[1] {
			t.Errorf("step %d: %v lent and %v wasted, want %v", i+1, rows[i].lent, rows[i].wasted, want)
		}
	}
}

// TestExist: users and states that there are not are refused, in sacct's words.
func TestExist(t *testing.T) {
	for args, want := range map[string]string{"-u no-such-user": "Invalid user id: no-such-user", "-u root,4294967294": "Invalid user id: 4294967294", "--uid 0 -u ,root": "",
		"-s CD,nosuch": "unrecognized job state value 'nosuch'", "-s r,Timeout,cg": ""} {
		o, cmd := build()
		must.OK(t, cmd.ParseFlags(strings.Fields(args)))
		if err := o.exist(); fmt.Sprint(err) != want && !(err == nil && want == "") {
			t.Errorf("%s: %v, want %q", args, err, want)
		}
	}
}

func TestManual(t *testing.T) {
	text := contribtest.Options(t, "evosacct.1", newCommand().Flags())
	for _, c := range all {
		if !strings.Contains(text, "\n.B "+c.name+"\n") {
			t.Errorf("column %s is not in the manual", c.name)
		}
	}
}

// TestComplete checks that values of options are completed: known values here, others by Slurm
// (package complete).
func TestComplete(t *testing.T) {
	for _, c := range []struct{ words, want string }{{"-s RUN", "RUNNING"}, {"--state=COMPLETED,CANC", "COMPLETED,CANCELLED"}, {"-o JobID,NNod", "JobID,NNodes"}} {
		var out bytes.Buffer
		cmd := newCommand()
		cmd.SetOut(&out)
		cmd.SetErr(&bytes.Buffer{})
		cmd.SetArgs(append([]string{"__complete"}, strings.Fields(c.words)...))
		if err := cmd.Execute(); err != nil || out.String() != c.want+"\n:4\n" {
			t.Errorf("%s: %q, %v", c.words, out.String(), err)
		}
	}
}
