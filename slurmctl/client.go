package slurmctl

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

// DefaultTimeout bounds a command if Client.Timeout is zero.
const DefaultTimeout = 30 * time.Second

// killDelay is how long a command may take to stop after SIGTERM.
const killDelay = 2 * time.Second

// maxStderr bounds, in bytes, what the client keeps of a command's stderr and of the stdout of
// another user's process. Such a user could write there without end.
const maxStderr = 64 << 10

// Client runs Slurm's commands. The zero value is usable; a Client is safe for
// concurrent use and must not be copied once used.
type Client struct {
	Dir     string        // folder of the commands; "" to search PATH
	Env     []string      // NAME=value, added to a minimal clean environment
	Timeout time.Duration // per command; 0 for DefaultTimeout
	Remote  string        // another cluster of the site, which slurmdbd knows; "" for the machine's own

	// Ran, if set, is called after every command has ended, from many goroutines.
	Ran func(Ran)

	// Fence, if set, is asked before each command that may change something in Slurm. It returns what to run in
	// its place, a path and arguments, or why it must not run. With exit status 75 that says that it ran nothing.
	Fence func(argv []string) ([]string, error)
	// Renewed, if set, is called when the commands have become those of another version.
	Renewed func(before, now string)

	groups       groupIDs
	calls        atomic.Uint64
	wantsAccount atomic.Bool            // job updates must carry Account=: see change
	cluster      atomic.Pointer[string] // the cluster's name; nil until asked
	learnt       atomic.Pointer[learnt] // the commands' version; nil until asked
	kept         atomic.Pointer[kept]   // what Jobs shares with its next reading; nil before the first, and during one
	tasks        tasks                  // of arrays, as seen
}

// Ran describes a command that has ended.
type Ran struct {
	Args  []string // the command's name, then its arguments
	Began time.Time
	Took  time.Duration
	Err   error
}

// Calls returns how many commands the client has started so far.
func (c *Client) Calls() uint64 { return c.calls.Load() }

// command is one run of one of Slurm's commands.
type command struct {
	name  string
	args  []string
	env   []string // added last, overriding the rest
	user  *User    // nil for this process's user
	stdin io.Reader
	into  io.Writer           // receives stdout as it comes, in place of run's result; nil for none
	watch func(stderr []byte) // receives stderr as it grows, from one goroutine

	// Closing enough ends the command and its children with SIGKILL. The command has then done its
	// work, so this counts as success.
	enough <-chan struct{}

	ofUser bool // runs on behalf of a user: locale, time zone, and SLURM_ variables stay as they are
	open   bool // no deadline except the context's, if any
}

// reads reports whether a command changes nothing in Slurm.
func (cmd *command) reads() bool {
	switch cmd.name {
	case "squeue", "sinfo", "sdiag", "sacct":
		return true
	case "sacctmgr":
		return slices.Contains(cmd.args, "--readonly")
	case "srun":
		return slices.Contains(cmd.args, "--test-only")
	case "scontrol":
		for _, a := range cmd.args {
			if !strings.HasPrefix(a, "-") {
				return a == "show" || a == "ping" || a == "write"
			}
		}
	}
	return false
}

// run runs a command to its end and returns what it printed. An error is a *CommandError, unless an
// argument is not allowed for any command.
func (c *Client) run(ctx context.Context, cmd command) (stdout, stderr string, err error) {
	argv := append([]string{cmd.name}, cmd.args...)
	for _, a := range argv {
		if strings.ContainsRune(a, 0) {
			return "", "", fmt.Errorf("%s: an argument has a NUL byte", cmd.name)
		}
	}
	fail := func(err error) (string, string, error) {
		return "", "", &CommandError{Args: argv, ExitCode: -1, Err: err}
	}
	if err := ctx.Err(); err != nil {
		return fail(err)
	}
	env := c.environment(cmd)
	path, err := c.lookPath(cmd.name, env)
	if err != nil {
		return fail(err)
	}
	run := append([]string{path}, cmd.args...)
	if c.Fence != nil && !cmd.reads() {
		if run, err = c.Fence(run); err != nil {
			return fail(fmt.Errorf("%w: %w", ErrFenced, err))
		}
	}
	own := ctx
	if _, has := ctx.Deadline(); !cmd.open || !has {
		var cancel context.CancelFunc
		own, cancel = context.WithTimeout(ctx, c.timeout())
		defer cancel()
	}

	x := newProcess(own, run, cmd, env)
	c.calls.Add(1)
	if c.Ran != nil {
		began := time.Now()
		defer func() { c.Ran(Ran{argv, began, time.Since(began), err}) }()
	}
	err = x.runUntil(cmd.enough)
	if x.ProcessState != nil {
		MeterCPU(ctx, x.ProcessState.UserTime()+x.ProcessState.SystemTime())
	}
	select {
	case <-cmd.enough:
		if own.Err() == nil {
			err = nil
		}
	default:
	}
	x.sweep()
	stdout, stderr = x.stdout.String(), x.stderr.String()
	if err == nil {
		return stdout, stderr, nil
	}
	ce := &CommandError{Args: argv, ExitCode: -1, Stderr: stderr, Err: err, waiting: cmd.open}
	if x.ProcessState != nil {
		ce.ExitCode = x.ProcessState.ExitCode()
	}
	switch {
	case ctx.Err() != nil:
		ce.Err = ctx.Err()
	case own.Err() != nil:
		ce.Err = fmt.Errorf("no answer within %v: %w", c.timeout(), own.Err())
	case c.Fence != nil && alarmed(err):
		ce.Err = fmt.Errorf("%w: %w", errAlarm, err)
	case c.Fence != nil && ce.ExitCode == notRun:
		ce.ExitCode, ce.Err = -1, fmt.Errorf("%w: %w", ErrFenced, err)
	case errors.Is(err, syscall.EPERM) && x.SysProcAttr.Credential != nil:
		ce.Err = fmt.Errorf("only root may run a command as user %s: %w", cmd.user, err)
	}
	return stdout, stderr, ce
}

// notRun is the exit status of a fence that did not run a command (EX_TEMPFAIL). No command of Slurm has it.
const notRun = 75

// ErrFenced means that the fence refused or ended a command: there is no right to change something in Slurm, or it ran
// out. It counts as [ErrUnreachable].
var ErrFenced = errors.New("the right to change something in Slurm ran out")

// errAlarm means that the fence ended a command, which may have had its effect.
var errAlarm = fmt.Errorf("%w before the command ended", ErrFenced)

// alarmed reports whether a fence's alarm ended a command.
func alarmed(err error) bool {
	exit, _ := errors.AsType[*exec.ExitError](err)
	if exit == nil {
		return false
	}
	status, is := exit.Sys().(syscall.WaitStatus)
	return is && status.Signaled() && status.Signal() == syscall.SIGALRM
}

// process is a running command.
type process struct {
	*exec.Cmd
	stdout interface {
		io.Writer
		String() string
	}
	stderr *tail
	late   *time.Timer // sends SIGKILL to processes that survive SIGTERM; nil if no SIGTERM was sent
}

func newProcess(ctx context.Context, argv []string, cmd command, env []string) *process {
	x := &process{Cmd: exec.CommandContext(ctx, argv[0], argv[1:]...), stdout: &bytes.Buffer{}, stderr: &tail{watch: cmd.watch}}
	if cmd.user.foreign() {
		x.stdout = &tail{}
	}
	x.Env, x.Stdin, x.Stdout, x.Stderr = env, cmd.stdin, x.stdout, x.stderr
	if cmd.into != nil {
		x.Stdout = cmd.into
	}
	if !cmd.ofUser {
		x.Dir = "/"
	}
	// A process group of its own: a ^C for the daemon must not reach its commands, and stopping a
	// command must also stop its children. A command that runs as another user also gets its own
	// session. That user controls it and could otherwise type (TIOCSTI) and signal through the
	// sidecar's terminal.
	foreign := cmd.user.foreign()
	x.SysProcAttr = &syscall.SysProcAttr{Setpgid: !foreign, Setsid: foreign, Credential: cmd.user.credential()}
	x.Cancel = func() error { return x.stop(cmd.user.foreign()) }
	x.WaitDelay = 2 * killDelay
	if cmd.user.foreign() {
		x.WaitDelay = killDelay // the user may keep its pipes open
	}
	return x
}

// stop ends the whole group, because a wrapper script may have replaced the command. Processes that
// survive SIGTERM get SIGKILL. Another user's process gets SIGKILL at once, because its user may
// have stopped it.
func (x *process) stop(atOnce bool) error {
	group, end := -x.Process.Pid, syscall.SIGKILL
	if !atOnce {
		end = syscall.SIGTERM
		x.late = time.AfterFunc(killDelay, func() { _ = syscall.Kill(group, syscall.SIGKILL) })
	}
	if syscall.Kill(group, end) == syscall.ESRCH {
		return os.ErrProcessDone // it ended on its own
	}
	return nil
}

// runUntil runs the command to its end, or until enough is closed.
func (x *process) runUntil(enough <-chan struct{}) error {
	if err := x.Start(); err != nil {
		return err
	}
	over := make(chan struct{})
	defer close(over)
	go func() {
		select {
		case <-enough:
			_ = syscall.Kill(-x.Process.Pid, syscall.SIGKILL)
		case <-over:
		}
	}()
	return x.Wait() // calls Cancel before it returns, or not at all
}

// sweep ends processes that a stopped command left behind.
func (x *process) sweep() {
	if x.late != nil && x.late.Stop() {
		_ = syscall.Kill(-x.Process.Pid, syscall.SIGKILL)
	}
}

// output runs a command and returns its standard output.
func (c *Client) output(ctx context.Context, name string, args ...string) (string, error) {
	stdout, _, err := c.run(ctx, command{name: name, args: args})
	return stdout, err
}

func (c *Client) timeout() time.Duration {
	if c.Timeout > 0 {
		return c.Timeout
	}
	return DefaultTimeout
}

const defaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// environment returns the environment of a command. It omits the caller's SLURM_*, SQUEUE_*, …
// variables, which would change what the commands do. It also fixes how times, numbers, and text
// are printed: epoch seconds, UTC, array expressions in full.
func (c *Client) environment(cmd command) []string {
	var env envList
	env.set("PATH", defaultPath)
	for _, name := range []string{"PATH", "SLURM_CONF", "HOME"} {
		if v, ok := os.LookupEnv(name); ok {
			env.set(name, v)
		}
	}
	for _, kv := range c.Env {
		name, value, ok := strings.Cut(kv, "=")
		if ok && (cmd.ofUser || !changesCommands(name)) {
			env.set(name, value)
		}
	}
	if u := cmd.user; u != nil {
		env.set("HOME", u.home())
		env.set("USER", u.Name)
		env.set("LOGNAME", u.Name)
	}
	if !cmd.ofUser {
		env.set("LC_ALL", "C.UTF-8")
		env.set("TZ", "UTC0")
		env.set("SLURM_TIME_FORMAT", "%s")
		env.set("SLURM_BITSTR_LEN", "0")
	}
	if c.Remote != "" {
		env.set("SLURM_CLUSTERS", c.Remote)
	}
	for _, kv := range cmd.env {
		name, value, _ := strings.Cut(kv, "=")
		env.set(name, value)
	}
	return env
}

// changesCommands reports whether Slurm's commands read a variable as an option or use it to find
// their job.
func changesCommands(name string) bool {
	switch name {
	case "SLURM_CONF", "SLURM_CONF_SERVER", "SLURM_JWT", "SLURM_DEBUG_FLAGS":
		return false
	}
	for _, p := range []string{"SLURM_", "SLURMD_", "SQUEUE_", "SINFO_", "SCONTROL_", "SCANCEL_", "SBATCH_", "SALLOC_", "SDIAG_"} {
		if strings.HasPrefix(name, p) {
			return true
		}
	}
	return false
}

// envList is an environment without duplicate names.
type envList []string

func (e *envList) set(name, value string) {
	for i, kv := range *e {
		if strings.HasPrefix(kv, name+"=") {
			(*e)[i] = name + "=" + value
			return
		}
	}
	*e = append(*e, name+"="+value)
}

func (e envList) get(name string) string {
	for _, kv := range e {
		if v, ok := strings.CutPrefix(kv, name+"="); ok {
			return v
		}
	}
	return ""
}

// lookPath finds a command in Dir or in the command's own PATH.
func (c *Client) lookPath(name string, env envList) (string, error) {
	if c.Dir != "" && name != perl {
		return filepath.Join(c.Dir, name), nil
	}
	for _, dir := range filepath.SplitList(env.get("PATH")) {
		if !filepath.IsAbs(dir) {
			continue
		}
		path := filepath.Join(dir, name)
		if st, err := os.Stat(path); err == nil && st.Mode().IsRegular() && st.Mode()&0o111 != 0 {
			return path, nil
		}
	}
	return "", fmt.Errorf("%s is not in PATH (is Slurm's client package installed?): %w", name, fs.ErrNotExist)
}

// tail keeps the beginning of what is written to it and shows it as it grows.
type tail struct {
	buf   bytes.Buffer
	watch func([]byte)
}

func (t *tail) Write(p []byte) (int, error) {
	if room := maxStderr - t.buf.Len(); room > 0 {
		t.buf.Write(p[:min(room, len(p))])
		if t.watch != nil {
			t.watch(t.buf.Bytes())
		}
	}
	return len(p), nil
}

func (t *tail) String() string { return t.buf.String() }

// formatID writes a job ID in the form that the commands accept.
func formatID(id JobID) string { return strconv.FormatUint(uint64(id), 10) }
