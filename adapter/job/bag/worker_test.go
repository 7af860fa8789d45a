package bag

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// works starts a worker; tell writes to it, and ended returns the next end of a run.
func works(t *testing.T, s Setup) (dir string, tell func(toWorker), ended func() over, signals chan os.Signal, exited chan struct{}) {
	t.Helper()
	if s.Dir == "" {
		s.Dir = t.TempDir()
	}
	for _, name := range []string{outFolder, savedFolder} {
		if err := os.MkdirAll(filepath.Join(s.Dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	s.Output = filepath.Join(s.Dir, outFolder, "%a")
	in, to := io.Pipe()
	from, out := io.Pipe()
	signals, exited = make(chan os.Signal, 1), make(chan struct{})
	go func() {
		defer close(exited)
		Work(in, out, os.Stderr, signals)
		out.Close()
	}()
	lines := bufio.NewScanner(from)
	next := func() (m fromWorker) {
		t.Helper()
		if !lines.Scan() || json.Unmarshal(lines.Bytes(), &m) != nil {
			t.Fatalf("the worker wrote %q", lines.Text())
		}
		return m
	}
	ended = func() over {
		t.Helper()
		m := next()
		for m.Ending {
			m = next()
		}
		return *m.Ended
	}
	if !next().Hello {
		t.Fatal("no hello")
	}
	tell = func(m toWorker) {
		line, _ := json.Marshal(m)
		_, _ = to.Write(append(line, '\n'))
	}
	t.Cleanup(func() { to.Close() })
	tell(toWorker{Setup: &s})
	return s.Dir, tell, ended, signals, exited
}

func drainIn(limit time.Duration) toWorker {
	s := limit.Seconds()
	return toWorker{Drain: &s}
}

func sh(script string) []string { return []string{"sh", "-c", script, "sh"} }

// A task finds its text, however odd, and the worker reports its end.
func TestWorkerRuns(t *testing.T) {
	t.Setenv("EVO_RESTART", "1")
	dir, tell, ended, _, exited := works(t, Setup{Command: sh(`printf '%s|' "$1" "$EVO_TASK" "$EVO_TASK_ID" "$EVO_RESTART" "$EVO_CHECKPOINT"; echo err >&2; exit $2`), Keep: Keeping{Kind: KeepNone}})
	odd := "$(touch x) 'a\" \xff;"
	tell(toWorker{Run: &order{Task: 4, ID: 5, Run: "1-1", Text: []byte(odd)}})
	e := ended()
	if e.Task != 4 || e.Run != "1-1" || e.Status != 0 || e.Signal != 0 || e.Asked || e.Saved {
		t.Errorf("%+v", e)
	}
	text, err := os.ReadFile(filepath.Join(dir, outFolder, "5.1-1"))
	if want := fmt.Sprintf("%s|%s|5|||err\n", odd, odd); err != nil || string(text) != want {
		t.Errorf("%q, %v; want %q", text, err, want)
	}
	tell(drainIn(time.Minute))
	<-exited
}

func TestWorkerFails(t *testing.T) {
	for name, c := range map[string]struct {
		command []string
		want    over
		why     string
	}{
		"status":  {sh("exit 7"), over{Status: 7}, ""},
		"signal":  {sh("kill -SEGV $$"), over{Signal: 11}, ""},
		"nothing": {[]string{"/nonexistent/command"}, over{Status: 127}, "no such file"},
		"99":      {sh("exit 99"), over{Status: 99}, ""}, // nobody asked it for a checkpoint
	} {
		t.Run(name, func(t *testing.T) {
			_, tell, ended, _, _ := works(t, Setup{Command: c.command, Keep: Keeping{Kind: KeepDemand, Signal: "TERM"}})
			tell(toWorker{Run: &order{ID: 1, Run: "1-1", Text: []byte("t")}})
			e := ended()
			if e.Status != c.want.Status || e.Signal != c.want.Signal || e.Asked || e.Saved || !strings.Contains(e.Why, c.why) {
				t.Errorf("%+v", e)
			}
		})
	}
}

// What becomes of a task whose node is wanted.
func TestWorkerDrains(t *testing.T) {
	writes := `echo state >"$EVO_CHECKPOINT"`
	for name, c := range map[string]struct {
		command string
		keep    Keeping
		limit   time.Duration
		want    over // without times
	}{
		"none, ends in time":  {"sleep 0.3", Keeping{Kind: KeepNone}, time.Minute, over{}},
		"none, killed":        {"exec sleep 60", Keeping{Kind: KeepNone}, 2 * time.Second, over{Signal: 15, Asked: true}},
		"none, ignores it":    {"trap '' TERM; while :; do sleep 0.05; done", Keeping{Kind: KeepNone}, time.Second, over{Signal: 9, Asked: true}},
		"demand, 99":          {"trap 'exit 99' TERM; while :; do sleep 0.05; done", Keeping{Kind: KeepDemand, Signal: "TERM"}, time.Minute, over{Status: 99, Asked: true, Saved: true}},
		"demand, a file":      {"trap '" + writes + "; exit 1' USR1; while :; do sleep 0.05; done", Keeping{Kind: KeepDemand, Signal: "USR1"}, time.Minute, over{Status: 1, Asked: true, Saved: true}},
		"demand, no handler":  {"exec sleep 60", Keeping{Kind: KeepDemand, Signal: "TERM"}, time.Minute, over{Signal: 15, Asked: true}},
		"demand, ignores it":  {"trap '' TERM; while :; do sleep 0.05; done", Keeping{Kind: KeepDemand, Signal: "TERM"}, time.Second, over{Signal: 9, Asked: true}},
		"demand, done":        {"trap 'exit 0' TERM; while :; do sleep 0.05; done", Keeping{Kind: KeepDemand, Signal: "TERM"}, time.Minute, over{Asked: true}},
		"command":             {"exec sleep 60", Keeping{Kind: KeepDemand, Command: sh(`test -d /proc/$EVO_PID && echo "$EVO_PID" >"$EVO_CHECKPOINT"`)}, time.Minute, over{Signal: 15, Asked: true, Saved: true}},
		"command fails":       {"exec sleep 60", Keeping{Kind: KeepDemand, Command: sh("exit 3")}, time.Minute, over{Signal: 15, Asked: true}},
		"command hangs":       {"exec sleep 60", Keeping{Kind: KeepDemand, Command: sh("sleep 60")}, time.Second, over{Signal: 15, Asked: true}},
		"periodic, by signal": {"trap '" + writes + "' USR1; while :; do sleep 0.05; done", Keeping{Kind: KeepPeriodic, Signal: "USR1", Period: 200 * time.Millisecond}, time.Minute, over{Signal: 15, Asked: true, Saved: true}},
		"periodic, command":   {"exec sleep 60", Keeping{Kind: KeepPeriodic, Command: sh(writes), Period: 200 * time.Millisecond}, time.Minute, over{Signal: 15, Asked: true, Saved: true}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, tell, ended, _, exited := works(t, Setup{Command: sh(c.command), Keep: c.keep})
			tell(toWorker{Run: &order{ID: 1, Run: "1-1", Text: []byte("t")}})
			if c.keep.Kind == KeepPeriodic {
				eventually(t, "a checkpoint is made", func() bool { return Setup{Dir: dir}.kept(1) })
			} else {
				time.Sleep(500 * time.Millisecond) // until the trap is set
			}
			tell(drainIn(c.limit))
			e := ended()
			if e.Asked && (e.Took < 0 || e.Took > 30) {
				t.Errorf("it took %v", e.Took)
			}
			e.Seconds, e.Took, e.Run = 0, 0, ""
			if e != c.want {
				t.Errorf("%+v, want %+v", e, c.want)
			}
			<-exited
		})
	}
}

// A task goes on from its checkpoint: its output is behind what it wrote before.
func TestWorkerRestarts(t *testing.T) {
	for name, c := range map[string]struct {
		keep Keeping
		want string
	}{
		"by itself":    {Keeping{Kind: KeepDemand, Signal: "TERM"}, "half\nagain 1 state\n"},
		"by a command": {Keeping{Kind: KeepDemand, Signal: "TERM", Restart: append(sh(`echo "$1 goes on from $(cat "$2")"`), "{}", "{dir}")}, "half\nt goes on from state\n"},
	} {
		t.Run(name, func(t *testing.T) {
			dir, tell, ended, _, _ := works(t, Setup{Command: sh(`echo again $EVO_RESTART $(cat $EVO_CHECKPOINT)`), Keep: c.keep})
			write(t, filepath.Join(dir, outFolder, "1.part"), "half\n")
			write(t, filepath.Join(dir, savedFolder, "1"), "state")
			tell(toWorker{Run: &order{ID: 1, Run: "2-1", Text: []byte("t"), Saved: true}})
			if e := ended(); e.Status != 0 {
				t.Errorf("%+v", e)
			}
			text, err := os.ReadFile(filepath.Join(dir, outFolder, "1.2-1"))
			if err != nil || string(text) != c.want {
				t.Errorf("%q, %v", text, err)
			}
		})
	}
}

// A task that Slurm's signal ends before its worker has failed no more than others whose node goes.
func TestWorkerDoubts(t *testing.T) {
	doubt = time.Hour
	t.Cleanup(func() { doubt = time.Second })
	for name, command := range map[string]string{"killed": "kill -TERM $$", "99": "exit 99"} {
		file := filepath.Join(t.TempDir(), "runs")
		_, tell, ended, signals, exited := works(t, Setup{Command: sh(">" + file + "; " + command), Keep: Keeping{Kind: KeepNone}})
		tell(toWorker{Run: &order{ID: 1, Run: "1-1", Text: []byte("t")}})
		eventually(t, "it runs", func() bool { _, err := os.Stat(file); return err == nil })
		signals <- syscall.SIGTERM
		if e := ended(); !e.Asked {
			t.Errorf("%s: %+v", name, e)
		}
		<-exited
	}
}

// A worker that Slurm ends tells the leader at once.
func TestWorkerTellsItsEnd(t *testing.T) {
	in, to := io.Pipe()
	defer to.Close()
	signals := make(chan os.Signal, 1)
	signals <- syscall.SIGTERM
	var out bytes.Buffer
	Work(in, &out, os.Stderr, signals)
	if out.String() != `{"hello":true}`+"\n"+`{"ending":true}`+"\n" {
		t.Errorf("it wrote %q", out.String())
	}
}

// A checkpoint is a file, or a folder that has more than what its launcher hides there.
func TestKept(t *testing.T) {
	s := Setup{Dir: t.TempDir()}
	for _, dir := range []string{"2", "3", "4"} {
		if err := os.MkdirAll(filepath.Join(s.Dir, savedFolder, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, file := range []string{"1", "3/.port", "4/.port", "4/ckpt_sh_1.dmtcp"} {
		write(t, filepath.Join(s.Dir, savedFolder, file), "")
	}
	for id, want := range []bool{false, true, false, false, true} {
		if got := s.kept(id); got != want {
			t.Errorf("checkpoint %d: %v", id, got)
		}
	}
}

// A worker without its leader ends, with its tasks; so does one that Slurm signals.
func TestWorkerEnds(t *testing.T) {
	dir := t.TempDir()
	_, tell, ended, signals, exited := works(t, Setup{Dir: dir, Command: sh("trap 'exit 99' TERM; while :; do sleep 0.05; done"), Keep: Keeping{Kind: KeepDemand, Signal: "TERM"}})
	tell(toWorker{Run: &order{ID: 1, Run: "1-1", Text: []byte("t")}})
	time.Sleep(500 * time.Millisecond)
	signals <- syscall.SIGTERM
	if e := ended(); !e.Saved {
		t.Errorf("%+v", e)
	}
	<-exited

	in, to := io.Pipe()
	pid := filepath.Join(dir, "pid")
	done := make(chan struct{})
	go func() { defer close(done); Work(in, io.Discard, os.Stderr, nil) }()
	for _, m := range []toWorker{{Setup: &Setup{Dir: dir, Output: filepath.Join(dir, outFolder, "%a"), Command: sh("echo $$ >" + pid + ".new; mv " + pid + ".new " + pid + "; exec sleep 60"), Keep: Keeping{Kind: KeepNone}}}, {Run: &order{ID: 2, Run: "1-2", Text: []byte("t")}}} {
		line, _ := json.Marshal(m)
		_, _ = to.Write(append(line, '\n'))
	}
	var text []byte
	eventually(t, "it runs", func() bool { text, _ = os.ReadFile(pid); return len(text) > 0 })
	to.Close()
	<-done
	var n int
	fmt.Sscan(string(text), &n)
	if n < 2 || syscall.Kill(n, 0) == nil {
		t.Errorf("process %d lives on", n)
	}
}
