package main

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/creack/pty"
	"github.com/gdamore/tcell/v2"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/cmd/internal/contribtest"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// TestManual sees that the manual has every option and every key.
func TestManual(t *testing.T) {
	text := contribtest.Options(t, "evostop.1", newCommand().Flags())
	for _, line := range strings.Split(keysHelp, "\n")[1:] {
		if keys := strings.TrimSpace(strings.Split(strings.TrimSpace(line), "  ")[0]); !strings.Contains(text, keys) {
			t.Errorf("key %s is not in the manual", keys)
		}
	}
}

// sidecar is a source that tests change.
type sidecar struct {
	sync.Mutex
	jobs []api.Job
	err  error
}

func (s *sidecar) Jobs(_ context.Context, all bool) (jobs []api.Job, err error) {
	s.Lock()
	defer s.Unlock()
	for _, j := range s.jobs {
		if all || j.State != "ended" {
			jobs = append(jobs, j)
		}
	}
	return jobs, s.err
}

func (s *sidecar) Job(_ context.Context, id uint32) (api.Job, error) {
	s.Lock()
	defer s.Unlock()
	for _, j := range s.jobs {
		if j.ID == id {
			return j, s.err
		}
	}
	return api.Job{}, api.Unknown(id)
}

func (s *sidecar) Status(context.Context) (api.Status, error) {
	s.Lock()
	defer s.Unlock()
	return api.Status{Cluster: "this", Nodes: 8, Strategy: "noX"}, s.err
}

func (s *sidecar) Cluster(context.Context) (api.Cluster, error) {
	return api.Cluster{Others: []api.OtherJob{{ID: 40, Start: now.Add(-time.Hour), End: now.Add(time.Hour), NodeList: "n8"}}}, nil
}

func (s *sidecar) Events(_ context.Context, q api.EventQuery) ([]api.Event, error) {
	return []api.Event{{Job: q.Job, Text: "adopted, profile 2@10m"}}, nil
}

// slurm accepts cancellations; with an error it refuses.
type slurm struct {
	sync.Mutex
	cancelled []slurmctl.JobID
	err       error
}

func (s *slurm) Cancel(_ context.Context, ids ...slurmctl.JobID) error {
	s.Lock()
	defer s.Unlock()
	s.cancelled = append(s.cancelled, ids...)
	return s.err
}

var now = time.Date(2026, 11, 20, 14, 0, 0, 0, time.UTC)

func jobs() []api.Job {
	return []api.Job{
		{ID: 7, Name: "amr", User: "bob", UID: 2, State: "running", Profile: "2@10m,5@30m", Step: 1, Steps: 2, Nodes: 2, NodeList: "n[1-2]", NextChange: now.Add(5 * time.Minute), NextNodes: 5,
			Plan:       []api.Span{{Step: 1, Start: now.Add(-5 * time.Minute), End: now.Add(5 * time.Minute), Nodes: 2}, {Step: 2, Start: now.Add(5 * time.Minute), End: now.Add(35 * time.Minute), Nodes: 5}},
			Past:       []api.Span{{Step: 1, Start: now.Add(-5 * time.Minute), Nodes: 2}},
			Components: []api.JobComponent{{Name: "ocean", Profile: "1@10m,4@30m", Nodes: 1, NodeList: "n1"}}},
		{ID: 9, Name: "evil\x1b]0;x\a[red]", User: "alice", UID: 3, State: "queued", Steps: 1, Profile: "8@1h", Reason: "waits for 8 nodes", NextChange: now.Add(time.Minute), NextNodes: 8},
		{ID: 3, Name: "over", User: "alice", UID: 3, State: "ended", EndState: "TIMEOUT"},
	}
}

// TestScreen types at evostop on a screen that can be read.
func TestScreen(t *testing.T) {
	from := &sidecar{jobs: jobs()}
	screen := tcell.NewSimulationScreen("UTF-8")
	scancel := &slurm{}
	top := newTop([]place{{from: from, slurm: scancel}}, options{delay: 20 * time.Millisecond})
	top.now = func() time.Time { return now }
	done := make(chan error, 1)
	go func() { done <- top.run(t.Context(), screen) }()
	text := func() string {
		var b strings.Builder
		top.app.QueueUpdate(func() {
			cells, width, _ := screen.GetContents()
			for i, c := range cells {
				if i%max(width, 1) == 0 {
					b.WriteByte('\n')
				}
				b.WriteString(string(c.Runes))
			}
		})
		return b.String()
	}
	await := func(what string, holds func(string) bool) {
		t.Helper()
		for end := time.Now().Add(time.Minute); !holds(text()); time.Sleep(10 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("%s: the screen is\n%s", what, text())
			}
		}
	}
	has := func(want ...string) func(string) bool {
		return func(text string) bool {
			for _, w := range want {
				if !strings.Contains(text, w) {
					return false
				}
			}
			return true
		}
	}
	before := func(a, b string) func(string) bool {
		return func(text string) bool {
			i, j := strings.Index(text, a), strings.Index(text, b)
			return i >= 0 && i < j
		}
	}
	key := func(r rune) { screen.InjectKey(tcell.KeyRune, r, tcell.ModNone) }
	enter := func() { screen.InjectKey(tcell.KeyEnter, 0, tcell.ModNone) }

	await("anything", has("JOBID"))
	await("all of the head in 80 columns", has("2 of evolving jobs; strategy noX", "1 running, 0 waiting, 1 queued; by number"))
	screen.SetSize(140, 30) // 80x25 till then
	await("the queue", has("JOBID", "amr", "+3", "14:05:00", "evil?]0;x?[red]", "waits for 8 nodes", "1 running", "1 queued", "strategy noX"))
	if strings.Contains(text(), "over") {
		t.Error("an ended job is shown")
	}
	key('o')
	await("by user", before("alice", "bob"))
	key('R')
	await("reversed", before("bob", "alice"))
	key('a')
	await("ended ones, too", has("over"))
	key('a')
	key('u')
	await("asked for a user", has("jobs of user"))
	for _, r := range "bobq" { // a letter that is a key elsewhere
		key(r)
	}
	screen.InjectKey(tcell.KeyBackspace2, 0, tcell.ModNone)
	enter()
	await("bob's alone", func(text string) bool { return has("amr", "jobs of bob")(text) && !strings.Contains(text, "waits for") })
	enter()
	await("details", has("Requested   2@10m,5@30m", "Component   ocean  1@10m,4@30m  now 1 node n1", "Planned     step 1", "to 14:05:00  2 nodes", "Actual      step 1", "to now  2 nodes", "Events", "adopted, profile 2@10m"))
	screen.InjectKey(tcell.KeyEscape, 0, tcell.ModNone)
	await("back", has("JOBID"))
	key('c')
	await("asked before it cancels", has("cancel job 7, amr of bob? y or n"))
	key('x')
	enter()
	await("another answer", has("want y or n"))
	screen.InjectKey(tcell.KeyBackspace2, 0, tcell.ModNone)
	key('n')
	enter()
	await("nothing is cancelled", has("jobs of bob", "q quit"))
	key('c')
	await("asked again", has("cancel job 7"))
	key('y')
	enter()
	await("the cancellation is shown", has("Job 7 is cancelled."))
	scancel.Lock()
	if !slices.Equal(scancel.cancelled, []slurmctl.JobID{7}) {
		t.Errorf("cancelled %v, want 7 alone, once", scancel.cancelled)
	}
	scancel.err = errors.New("scancel: Access/permission denied")
	scancel.Unlock()
	key('c')
	await("asked a third time", has("cancel job 7"))
	key('y')
	enter()
	await("Slurm's refusal is shown", has("Job 7 is not cancelled: scancel: Access/permission denied"))
	key('g')
	await("the chart, with stock jobs", has("7 amr", "8 nodes", "now", "▒ other jobs"))
	screen.InjectKey(tcell.KeyTab, 0, tcell.ModNone)
	await("the queue again", has("JOBID"))
	key('d')
	await("asked for seconds", has("seconds between"))
	key('x')
	enter()
	await("what is wrong", has("want 0.5 to 3600"))
	screen.InjectKey(tcell.KeyEscape, 0, tcell.ModNone)
	key('h')
	await("help", has("as in top and turm"))
	key('q')
	await("the queue once more", has("JOBID"))
	from.Lock()
	task := api.Job{ID: 21, Array: 20, ArrayTask: 1, ArrayLimit: 2, User: "bob", State: "queued", Profile: "2@10m"}
	other := task
	other.ID, other.ArrayTask = 22, 2
	from.jobs = append([]api.Job{other, task, {ID: 30, Array: 30, ArrayRest: "5-99", User: "bob", State: "queued"}}, from.jobs...)
	from.Unlock()
	await("waiting tasks on one line", has("20_[1-2%2]", "30_[5-99]"))
	key('r')
	await("each on its own", has("20_1", "20_2", "30_[5-99]"))
	key('r')
	from.Lock()
	from.jobs = from.jobs[2:3]
	from.Unlock()
	await("one line", func(text string) bool { return !strings.Contains(text, "20_") })
	key('c')
	await("tasks that run stay", has("The tasks 30_[5-99] wait in the array's record"))
	from.Lock()
	from.jobs = jobs()
	from.Unlock()
	await("the jobs again", has("amr"))
	from.Lock()
	from.err = errors.New("connection refused")
	from.Unlock()
	await("a silent sidecar is shown, and the last view stays", has("No news: connection refused", "amr"))
	key('q')
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// TestTerminal checks that evostop on a real (pseudo) terminal reports a missing sidecar and
// restores the terminal. Without a terminal, it names an alternative.
func TestTerminal(t *testing.T) {
	program := t.TempDir() + "/evostop"
	if out, err := exec.Command("go", "build", "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if out, err := exec.Command(program).CombinedOutput(); err == nil || !strings.Contains(string(out), "not a terminal; use evosqueue -i") {
		t.Errorf("without a terminal: %v\n%s", err, out)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // it is killed then, and the test fails
	defer cancel()
	cmd := exec.CommandContext(ctx, program)
	cmd.Env = append(os.Environ(), "TERM=xterm", "LANG=C.UTF-8", "EVOSLURM_CONFIG=", "EVOSLURM_API=unix://"+t.TempDir()+"/none.sock")
	terminal, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 30, Cols: 120})
	if err != nil {
		t.Fatal(err)
	}
	defer terminal.Close()
	var seen strings.Builder
	b := make([]byte, 4096)
	for asked := false; ; {
		n, err := terminal.Read(b)
		if err != nil {
			break
		}
		seen.Write(b[:n])
		if !asked && strings.Contains(seen.String(), "answer:") /* words are drawn one by one */ {
			asked = true
			if _, err := terminal.WriteString("q"); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	for _, want := range []string{"\x1b[?1049h", "\x1b[?1049l"} {
		if !strings.Contains(seen.String(), want) {
			t.Errorf("no %q in what the terminal got: %q", want, seen.String())
		}
	}
}

// TestDelay checks that an invalid delay is rejected before any query.
func TestDelay(t *testing.T) {
	for _, bad := range []string{"nan", "inf", "-1", "0", "1e9"} {
		cmd := newCommand()
		cmd.SetArgs([]string{"--delay=" + bad})
		if err := cmd.Execute(); err == nil || !strings.Contains(err.Error(), "want 0.5 to 3600 seconds") {
			t.Errorf("--delay=%s: %v", bad, err)
		}
	}
}

// TestClusters: with several clusters, m shows the next one, and a job is cancelled on the one that is shown.
func TestClusters(t *testing.T) {
	screen := tcell.NewSimulationScreen("UTF-8")
	a, b := &slurm{}, &slurm{}
	other := jobs()
	other[0].Name = "onb"
	away := &sidecar{jobs: other}
	top := newTop([]place{{"a", &sidecar{jobs: jobs()}, a}, {"b", away, b}, {"c", &sidecar{err: errors.New("it is away")}, a}}, options{delay: 20 * time.Millisecond})
	top.now = func() time.Time { return now }
	done := make(chan error, 1)
	go func() { done <- top.run(t.Context(), screen) }()
	await := func(what string, want ...string) {
		t.Helper()
		text := ""
		for end := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
			top.app.QueueUpdate(func() {
				cells, _, _ := screen.GetContents()
				text = ""
				for _, c := range cells {
					text += string(c.Runes)
				}
			})
			if !slices.ContainsFunc(want, func(w string) bool { return !strings.Contains(text, w) }) {
				return
			}
			if time.Now().After(end) {
				t.Fatalf("%s: the screen is\n%s", what, text)
			}
		}
	}
	key := func(r rune) { screen.InjectKey(tcell.KeyRune, r, tcell.ModNone) }
	await("the first", "(1 of 3)", "amr")
	screen.InjectKey(tcell.KeyEnter, 0, tcell.ModNone)
	await("details", "Requested")
	key('m')
	await("the second, and its queue", "(2 of 3)", "onb", "JOBID")
	key('c')
	await("asked", "cancel job")
	for _, r := range "ym" { // an answer, not a key
		key(r)
	}
	screen.InjectKey(tcell.KeyBackspace2, 0, tcell.ModNone)
	screen.InjectKey(tcell.KeyEnter, 0, tcell.ModNone)
	await("cancelled", "is cancelled")
	key('m')
	await("one that is away", "c (3 of 3)", "No news: it is away")
	key('m')
	await("the first again", "(1 of 3)", "amr")
	key('q')
	if err := <-done; err != nil {
		t.Error(err)
	}
	if len(a.cancelled) != 0 || len(b.cancelled) != 1 {
		t.Errorf("cancelled on a and c: %v, on b: %v", a.cancelled, b.cancelled)
	}
}
