package slurmctl

import (
	"context"
	"errors"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// stand replaces a command with a script. Use it only to test how commands are run; tests of
// Slurm's behaviour use Slurm.
func stand(t *testing.T, name, script string) *Client {
	t.Helper()
	dir := t.TempDir()
	syscall.ForkLock.RLock() // no process started by another test may hold it open for writing: "text file busy"
	err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+script), 0o755)
	syscall.ForkLock.RUnlock()
	if err != nil {
		t.Fatal(err)
	}
	return &Client{Dir: dir}
}

func TestEnvironment(t *testing.T) {
	t.Setenv("SLURM_JOB_ID", "7")
	t.Setenv("SQUEUE_STATES", "none")
	t.Setenv("SLURM_CONF", "/etc/x.conf")
	t.Setenv("SECRET", "1")
	c := &Client{Env: []string{"SLURM_TIME_FORMAT=relative", "SQUEUE_FORMAT=%i", "TZ=America/New_York", "LC_ALL=de_DE", "OWN=a=b", "SLURM_JOBID=8"}}
	want := []string{"HOME=" + os.Getenv("HOME"), "LC_ALL=C.UTF-8", "OWN=a=b", "PATH=" + os.Getenv("PATH"),
		"SLURM_BITSTR_LEN=0", "SLURM_CONF=/etc/x.conf", "SLURM_TIME_FORMAT=%s", "SQUEUE_FORMAT=mine", "TZ=UTC0"}
	got := c.environment(command{env: []string{"SQUEUE_FORMAT=mine"}})
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("environment is %q", got)
	}
	// A command that runs for a user keeps the user's variables that the caller passes.
	got = c.environment(command{ofUser: true})
	for _, kv := range []string{"TZ=America/New_York", "LC_ALL=de_DE", "SLURM_JOBID=8", "SLURM_TIME_FORMAT=relative"} {
		if !slices.Contains(got, kv) {
			t.Errorf("environment of a user's command lacks %s: %q", kv, got)
		}
	}
	got = c.environment(command{user: &User{UID: 4294967294, Name: "u", Home: "/h"}})
	for _, kv := range []string{"HOME=/h", "USER=u", "LOGNAME=u"} {
		if !slices.Contains(got, kv) {
			t.Errorf("environment of another user's command lacks %s: %q", kv, got)
		}
	}
}

func TestLookPath(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "squeue"), nil, 0o755); err != nil {
		t.Fatal(err)
	}
	c := &Client{Env: []string{"PATH=.::" + filepath.Join(dir, "none") + ":" + dir}}
	if got, err := c.lookPath("squeue", c.environment(command{})); err != nil || got != filepath.Join(dir, "squeue") {
		t.Error(got, err)
	}
	if _, err := c.Version(t.Context()); err == nil {
		t.Error("an empty file gave a version")
	}
	if _, err := c.Config(t.Context()); !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), "not in PATH") {
		t.Error(err)
	}
}

func TestCommandError(t *testing.T) {
	c := stand(t, "scontrol", `printf 'scontrol: error: Invalid job id specified\nscontrol: error: Invalid job id specified\n' >&2; exit 3`)
	err := c.Merge(t.Context(), 9)
	var ce *CommandError
	if !errors.As(err, &ce) || ce.ExitCode != 3 || !errors.Is(err, ErrUnknownJob) || errors.Is(err, ErrUnreachable) {
		t.Fatalf("%#v", err)
	}
	if got, want := err.Error(), "scontrol update JobId=9 NumNodes=0: Invalid job id specified (exit status 3)"; got != want {
		t.Errorf("got %q", got)
	}
	evil := "x\x1b[2J\ny"
	err = c.UpdateJob(t.Context(), 9, JobUpdate{Comment: &evil})
	if s := err.Error(); strings.ContainsAny(s, "\n\x1b") {
		t.Errorf("not one plain line: %q", s)
	}
}

// TestTimeout checks that a hanging command and its children end in time, even if it ignores
// SIGTERM.
func TestTimeout(t *testing.T) {
	pid := filepath.Join(t.TempDir(), "pid")
	c := stand(t, "scontrol", "trap '' TERM; sleep 300 & echo $! >"+pid+"; wait; wait; sleep 300")
	c.Timeout = 300 * time.Millisecond
	err := c.Reconfigure(t.Context())
	if !errors.Is(err, ErrUnreachable) || !errors.Is(err, context.DeadlineExceeded) {
		t.Fatal(err)
	}
	text, err := os.ReadFile(pid)
	if err != nil {
		t.Fatal(err)
	}
	child, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(time.Minute); running(child); {
		if time.Now().After(deadline) {
			t.Fatal("the command's child still runs")
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// running reports whether a process exists and is not a zombie.
func running(pid int) bool {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return false
	}
	_, after, _ := strings.Cut(string(stat), ") ")
	return !strings.HasPrefix(after, "Z") && syscall.Kill(pid, 0) == nil
}

func TestCallerCancels(t *testing.T) {
	c := stand(t, "scontrol", "exec sleep 300")
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		for c.Calls() == 0 {
			time.Sleep(time.Millisecond)
		}
		cancel()
	}()
	err := c.Reconfigure(ctx)
	if !errors.Is(err, context.Canceled) || errors.Is(err, ErrUnreachable) {
		t.Error(err)
	}
}

// TestStderrIsBounded checks that endless stderr output is read but not kept.
func TestStderrIsBounded(t *testing.T) {
	c := stand(t, "scontrol", "yes error | head -c 3000000 >&2; exit 1")
	var ce *CommandError
	if err := c.Reconfigure(t.Context()); !errors.As(err, &ce) || len(ce.Stderr) != maxStderr {
		t.Errorf("%d bytes", len(ce.Stderr))
	}
}

func TestCancelOnlyGone(t *testing.T) {
	for script, ok := range map[string]bool{
		"exit 0": true,
		"echo 'scancel: error: Kill job error on job id 7: Invalid job id specified' >&2; exit 1":                                                               true,
		"echo 'scancel: error: Kill job error on job id 7: Job/step already completing or completed' >&2; exit 1":                                               true,
		"echo 'scancel: error: Kill job error on job id 7: Access/permission denied' >&2; exit 210":                                                             false,
		"echo 'scancel: error: Kill job error on job id 7: Invalid job id specified' >&2; echo 'scancel: error: Kill job error on job id 8: Other' >&2; exit 1": false,
		"exit 1": false,
	} {
		if err := stand(t, "scancel", script).Cancel(t.Context(), 7, 8); (err == nil) != ok {
			t.Errorf("%s: %v", script, err)
		}
	}
}

// TestManyCancels cancels more jobs than one scancel accepts.
func TestManyCancels(t *testing.T) {
	c := stand(t, "scancel", "exit 0")
	ids := make([]JobID, perCancel+1)
	for i := range ids {
		ids[i] = JobID(i + 1)
	}
	if err := c.Cancel(t.Context(), ids...); err != nil || c.Calls() != 2 {
		t.Error(err, c.Calls())
	}
}

// TestHint checks that salloc's lines only say when to look, and that other programs' messages are
// ignored.
func TestHint(t *testing.T) {
	for in, want := range map[string]struct {
		lines   int32
		granted bool
	}{
		"salloc: Granted job allocation 7\n": {1, true},
		"salloc: Granted job allocation 7":   {0, false}, // incomplete line
		"salloc: Pending job allocation 7\nsalloc: job 7 queued\nsalloc: Granted job allocation 7\n": {2, true},
		"salloc: Pending job allocation 7\nsalloc: job 7 queued\n":                                   {1, false},
		"salloc: x\nsalloc: hello salloc: Granted job allocation 7\n":                                {0, false},
		strings.Repeat("salloc: Pending job allocation 7\n", 1000):                                   {mostHints, false},
	} {
		for _, step := range []int{1, 7, len(in)} { // chunk sizes
			h := hint{news: make(chan struct{}, 1)}
			for i := step; i < len(in)+step; i += step {
				h.look([]byte(in[:min(i, len(in))]))
			}
			if lines, granted := h.lines.Load(), h.granted.Load(); lines != want.lines || granted != want.granted {
				t.Errorf("%.80q by %d bytes: %d, %v", in, step, lines, granted)
			}
			if news := len(h.news) > 0; news != (want.lines > 0) {
				t.Errorf("%.80q: news %v", in, news)
			}
		}
	}
}

func TestLookupUser(t *testing.T) {
	u, err := LookupUser(0)
	if err != nil || u.Name != "root" || u.GID != 0 || u.Home == "" {
		t.Error(u, err)
	}
	if _, err := LookupUser(4294967290); err == nil {
		t.Error("a user that is not there was found")
	}
}

// TestGroupIDs checks that a group is looked up once a minute, also one that does not exist, and that failures are not
// remembered.
func TestGroupIDs(t *testing.T) {
	var g groupIDs
	asked := 0
	fails := errors.New("the directory is away")
	var broken error
	lookup := func(name string) (*user.Group, error) {
		if asked++; name == "none" {
			return nil, user.UnknownGroupError(name)
		}
		return &user.Group{Gid: "7"}, broken
	}
	now := time.Now()
	for _, c := range []struct {
		name  string
		after time.Duration
		fails error
		id    string
		asked int
	}{{"a", 0, fails, "", 1}, {"a", 0, nil, "7", 2}, {"a", 59 * time.Second, fails, "7", 2}, {"none", 0, nil, "", 3}, {"none", time.Second, nil, "", 3}, {"a", time.Minute, nil, "7", 4}} {
		broken = c.fails
		if id, err := g.id(c.name, now.Add(c.after), lookup); id != c.id || asked != c.asked || (err != nil) != (c.fails != nil && id == "") {
			t.Errorf("%+v: %q, %v, looked up %d times", c, id, err, asked)
		}
	}
}

// TestFormatIsNoArgument checks that separators travel in the environment. Other users can read a
// command's arguments while it runs, but not its environment.
func TestFormatIsNoArgument(t *testing.T) {
	seen := filepath.Join(t.TempDir(), "seen")
	for _, release := range []string{"22.05.8", "24.11.5", "26.05.5"} {
		c := stand(t, "squeue", `case "$*" in *--version*) echo slurm-wlm `+release+`;; *) echo "$@" >>`+seen+`; env | grep ^SQUEUE_ >&2; exit 1;; esac`)
		_, err := c.JobsByID(t.Context(), 1, 2)
		var ce *CommandError
		if !errors.As(err, &ce) || !strings.HasPrefix(ce.Stderr, "SQUEUE_FORMAT") || !strings.Contains(ce.Stderr, ">") {
			t.Fatal(err)
		}
	}
	args, err := os.ReadFile(seen)
	if err != nil || len(args) == 0 || strings.ContainsAny(string(args), "<>%") {
		t.Errorf("arguments are %s (%v)", args, err)
	}
}

// TestOfAnotherUser checks that a command that runs as another user has its own session and cannot
// fill the memory. It then cannot reach a terminal or process group of this process.
func TestOfAnotherUser(t *testing.T) {
	c := stand(t, "salloc", `read -r pid _ _ _ group session _ </proc/$$/stat; echo "$pid $group $session"; head -c 1000000 /dev/zero`)
	if err := os.Chmod(filepath.Dir(c.Dir), 0o755); err != nil {
		t.Fatal(err)
	}
	stdout, _, err := c.run(t.Context(), command{name: "salloc", user: &User{UID: 65534, GID: 65534}})
	if err != nil {
		t.Fatal(err)
	}
	line, _, _ := strings.Cut(stdout, "\n")
	if f := strings.Fields(line); len(f) != 3 || f[1] != f[0] || f[2] != f[0] {
		t.Errorf("process, group and session are %q", line)
	}
	if len(stdout) > maxStderr {
		t.Errorf("%d bytes of its output are kept", len(stdout))
	}
}

// TestNoDescriptors checks that a command that failed to start for lack of descriptors, or reached no slurmctld, does
// not count as an answer from Slurm.
func TestNoDescriptors(t *testing.T) {
	for _, lack := range []syscall.Errno{syscall.EMFILE, syscall.ENFILE, syscall.EAGAIN, syscall.ENOMEM} {
		err := error(&CommandError{Args: []string{"scontrol"}, ExitCode: -1, Err: os.NewSyscallError("pipe2", lack)})
		if !errors.Is(err, ErrUnreachable) || errors.Is(err, ErrUnknownJob) {
			t.Errorf("%v", err)
		}
	}
	// Slurm 24.11.5: without slurmctld, and without a socket of auth/slurm
	for _, said := range []string{"Unexpected message received for job 1", "Error creating the reservation: Unexpected message received", "slurm_update error: Protocol authentication error"} {
		if err := error(&CommandError{Args: []string{"scontrol"}, ExitCode: 1, Stderr: said}); !errors.Is(err, ErrUnreachable) {
			t.Errorf("%v is an answer", err)
		}
	}
	if err := error(&CommandError{Args: []string{"scontrol"}, ExitCode: -1, Err: syscall.EACCES}); errors.Is(err, ErrUnreachable) {
		t.Errorf("%v", err)
	}
}

// TestFence checks that commands that may change something in Slurm run through the fence, and others do not.
func TestFence(t *testing.T) {
	c := stand(t, "scontrol", "echo ran \"$@\" >>$(dirname $0)/ran\n")
	var fenced [][]string
	c.Fence = func(argv []string) ([]string, error) {
		fenced = append(fenced, argv)
		if slices.Contains(argv, "ReservationName=no") {
			return nil, errors.New("not now")
		}
		return append([]string{"/usr/bin/env"}, argv...), nil
	}
	if err := c.DeleteReservation(t.Context(), "yes"); err != nil {
		t.Error(err)
	}
	if err := c.DeleteReservation(t.Context(), "no"); err == nil || !strings.Contains(err.Error(), "not now") {
		t.Errorf("refused by the fence: %v", err)
	}
	if _, err := c.Reservations(t.Context()); err != nil {
		t.Error(err)
	}
	if len(fenced) != 2 || filepath.Base(fenced[0][0]) != "scontrol" {
		t.Errorf("fenced %q", fenced)
	}
	ran, err := os.ReadFile(filepath.Join(c.Dir, "ran"))
	if want := "ran delete ReservationName=yes\nran --verbose --all --oneliner show reservation\n"; err != nil || string(ran) != want {
		t.Errorf("ran %q (%v), want %q", ran, err, want)
	}
	c.Fence = func(argv []string) ([]string, error) { return []string{"/bin/sh", "-c", "kill -ALRM $$"}, nil }
	if err := c.DeleteReservation(t.Context(), "yes"); !errors.Is(err, errAlarm) {
		t.Errorf("ended by the alarm: %v", err)
	}
	c.Fence = func([]string) ([]string, error) { return []string{"/bin/sh", "-c", "exit 75"}, nil }
	if err := c.DeleteReservation(t.Context(), "yes"); !errors.Is(err, ErrFenced) || !errors.Is(err, ErrUnreachable) {
		t.Errorf("not run by the fence: %v", err)
	}
}
