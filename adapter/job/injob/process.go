package injob

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// srun's error when a node has not yet learned that the job has grown (seen on 24.11 right
	// after a merge); a second try succeeds.
	credentialError = "Invalid job credential"
	retryPause      = time.Second

	killDelay = 10 * time.Second // between SIGTERM and SIGKILL of srun
	maxTail   = 16 << 10         // bytes of stderr that are searched for the error
	maxLine   = 64 << 10         // bytes of a line that are kept until its end
)

// process is an srun with its output.
type process struct {
	make func(ctx context.Context) *exec.Cmd
	say  io.Writer   // for messages of our own
	tail *tail       // of its stderr
	out  []*labeller // what to flush at the end

	mu      sync.Mutex
	cmd     *exec.Cmd // nil: not running
	stopped bool
}

// process prepares one srun.
func (c Command) process(srun string, r run, o together) *process {
	p := &process{say: c.Stderr, tail: &tail{to: c.Stderr}}
	var stdout, stderr io.Writer = c.Stdout, p.tail
	if o.label {
		out, errs := newLabeller(c.Stdout, r.first, o.width), newLabeller(p.tail, r.first, o.width)
		stdout, stderr, p.out = out, errs, []*labeller{out, errs}
	}
	atTerminal := isTerminal(c.Stdin)
	p.make = func(ctx context.Context) *exec.Cmd {
		cmd := exec.CommandContext(ctx, srun, r.args...)
		cmd.Env, cmd.Stdout, cmd.Stderr = r.env, stdout, stderr
		if r.stdin != nil {
			cmd.Stdin = r.stdin
		}
		// At a terminal, srun stays in our process group, to read the terminal and to get ^C.
		// Otherwise it has its own group, so that a signal arrives only once: from us.
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: !atTerminal, Pdeathsig: syscall.SIGTERM}
		cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
		cmd.WaitDelay = killDelay
		return cmd
	}
	return p
}

// runToEnd runs srun, twice if the first attempt came too soon after a merge,
// and returns its exit status.
func (p *process) runToEnd(ctx context.Context) int {
	status := p.once(ctx)
	if status != 0 && p.tail.has(credentialError) && ctx.Err() == nil {
		fmt.Fprintln(p.say, "evosrun: the job has just grown and a node did not know it yet; trying once more")
		select {
		case <-time.After(retryPause):
		case <-ctx.Done():
			return status
		}
		status = p.once(ctx)
	}
	for _, l := range p.out {
		l.flush()
	}
	return status
}

func (p *process) once(ctx context.Context) int {
	cmd := p.make(ctx)
	p.mu.Lock()
	if p.stopped {
		p.mu.Unlock()
		return 0
	}
	err := cmd.Start()
	if err == nil {
		p.cmd = cmd
	}
	p.mu.Unlock()
	if err == nil {
		err = cmd.Wait()
	}
	p.mu.Lock()
	p.cmd = nil
	p.mu.Unlock()
	if cmd.ProcessState == nil {
		fmt.Fprintf(p.say, "evosrun: %v\n", err)
		return 1
	}
	if ws, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return 128 + int(ws.Signal())
	}
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) && cmd.ProcessState.Success() {
		fmt.Fprintf(p.say, "evosrun: %v\n", err) // output could not be written
		return 1
	}
	return cmd.ProcessState.ExitCode()
}

// signal passes a signal on.
func (p *process) signal(s os.Signal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cmd != nil {
		p.cmd.Process.Signal(s) // it may just have ended
	}
}

// stop ends srun and its tasks, or keeps it from starting.
func (p *process) stop() {
	p.mu.Lock()
	p.stopped = true
	p.mu.Unlock()
	p.signal(syscall.SIGTERM)
}

// tail passes on output and keeps its end.
type tail struct {
	to  io.Writer
	mu  sync.Mutex
	buf []byte
}

func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.buf = append(t.buf, b...)
	if extra := len(t.buf) - maxTail; extra > 0 {
		t.buf = append(t.buf[:0], t.buf[extra:]...)
	}
	return t.to.Write(b)
}

func (t *tail) has(text string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return bytes.Contains(t.buf, []byte(text))
}

// labeller counts srun's labels ("2: text") on from the rank of the part's first task.
type labeller struct {
	to           io.Writer
	first, width int
	mu           sync.Mutex
	line         []byte
	middle       bool // of a line that was too long to keep
}

func newLabeller(to io.Writer, first, width int) *labeller {
	return &labeller{to: to, first: first, width: width}
}

func (l *labeller) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := len(b)
	for len(b) > 0 {
		i := bytes.IndexByte(b, '\n')
		if i < 0 {
			l.line = append(l.line, b...)
			if len(l.line) > maxLine {
				return n, l.put(false)
			}
			return n, nil
		}
		l.line = append(l.line, b[:i+1]...)
		b = b[i+1:]
		if err := l.put(true); err != nil {
			return n, err
		}
	}
	return n, nil
}

// flush writes a last line that has no end.
func (l *labeller) flush() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.line) > 0 {
		_ = l.put(true) // no reader is left
	}
}

// put writes the kept line, or its beginning, in one write.
func (l *labeller) put(ended bool) error {
	line := l.line
	if !l.middle {
		line = l.relabel(line)
	}
	l.line, l.middle = l.line[:0], !ended
	_, err := l.to.Write(line)
	return err
}

func (l *labeller) relabel(line []byte) []byte {
	label, text, ok := strings.Cut(string(line), ": ")
	rank := 0
	if _, err := fmt.Sscanf(label, "%d", &rank); !ok || err != nil || fmt.Sprint(rank) != strings.TrimSpace(label) {
		return line // srun's own message
	}
	return fmt.Appendf(nil, "%*d: %s", l.width, l.first+rank, text)
}

func isTerminal(f *os.File) bool {
	if f == nil {
		return false
	}
	_, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	return err == nil
}
