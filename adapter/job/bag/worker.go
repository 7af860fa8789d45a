package bag

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	lastWords = 2 * time.Second  // between a task's SIGTERM and SIGKILL
	killWait  = 30 * time.Second // that Slurm usually leaves a step it ends
	tooFull   = 1 << 20          // free bytes of a disk with which a failed task is not to blame
)

// doubt is how long after a task's failure it is reported: Slurm may be ending the whole step.
var doubt = time.Second

// worker runs tasks on a node.
type worker struct {
	Setup
	out   io.Writer
	errs  io.Writer
	mu    sync.Mutex // of out, runs, and leaving
	runs  map[*taskRun]bool
	idle  chan struct{} // one has ended
	leave *time.Time    // when the node is given back

	ending context.Context // done once Slurm ends the step
	end    context.CancelFunc
}

// taskRun is a run of a task.
type taskRun struct {
	order
	cmd   *exec.Cmd
	ended chan struct{}

	mu    sync.Mutex
	asked time.Time // when it was asked to end; zero: it was not
	kept  bool      // its command to checkpoint has succeeded
}

// Work is a worker: it runs what the leader writes to in, until that ends, or until the leader wants the node and the tasks
// have ended. A signal says that Slurm ends the step.
func Work(in io.Reader, out, errs io.Writer, signals <-chan os.Signal) {
	w := &worker{out: out, errs: errs, runs: map[*taskRun]bool{}, idle: make(chan struct{}, 1)}
	w.ending, w.end = context.WithCancel(context.Background())
	defer w.end()
	w.tell(fromWorker{Hello: true})
	orders := make(chan toWorker)
	go func() {
		defer close(orders)
		lines := bufio.NewScanner(in)
		lines.Buffer(nil, mostToWorker)
		for lines.Scan() {
			var m toWorker
			if json.Unmarshal(lines.Bytes(), &m) == nil {
				orders <- m
			}
		}
	}()
	for {
		select {
		case m, ok := <-orders:
			if !ok { // the leader has ended: another one will run the tasks again
				w.drain(0)
				w.wait()
				return
			}
			w.obey(m)
		case <-signals:
			w.end()
			w.tell(fromWorker{Ending: true})
			w.drain(killWait)
		case <-w.idle:
		}
		w.mu.Lock()
		over := w.leave != nil && len(w.runs) == 0
		w.mu.Unlock()
		if over {
			return
		}
	}
}

func (w *worker) obey(m toWorker) {
	switch {
	case m.Setup != nil:
		w.Setup = *m.Setup
	case m.Run != nil:
		w.run(*m.Run)
	case m.Drain != nil:
		w.drain(duration(*m.Drain))
	}
}

// tell writes a line to the leader.
func (w *worker) tell(m fromWorker) {
	line, err := json.Marshal(m)
	if err != nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	_, _ = w.out.Write(append(line, '\n')) // a leader that has ended closes our input, too
}

// wait returns when no task runs.
func (w *worker) wait() {
	for {
		w.mu.Lock()
		n := len(w.runs)
		w.mu.Unlock()
		if n == 0 {
			return
		}
		<-w.idle
	}
}

// run starts a task.
func (w *worker) run(o order) {
	r := &taskRun{order: o, ended: make(chan struct{})}
	begun := time.Now()
	err := w.start(r)
	if err != nil {
		e := over{Task: o.Task, Run: o.Run, Status: 127, Why: err.Error()}
		if len(e.Why) > 500 {
			e.Why = e.Why[:500]
		}
		e.Full = w.full()
		w.tell(fromWorker{Ended: &e})
		return
	}
	w.mu.Lock()
	w.runs[r] = true
	late := w.leave
	w.mu.Unlock()
	if late != nil {
		go w.stop(r, *late)
	}
	if w.Keep.Kind == KeepPeriodic {
		go w.keepOften(r)
	}
	go func() {
		err := r.cmd.Wait()
		close(r.ended)
		took := time.Since(begun)
		if err != nil {
			w.doubt(r)
		}
		e := w.over(r, err, took)
		w.tell(fromWorker{Ended: &e})
		w.mu.Lock()
		delete(w.runs, r)
		w.mu.Unlock()
		select {
		case w.idle <- struct{}{}:
		default:
		}
	}()
}

// start starts a task's command with its output.
func (w *worker) start(r *taskRun) error {
	argv := w.argv(r.order)
	r.cmd = exec.Command(argv[0], argv[1:]...)
	r.cmd.Env = append(os.Environ(), w.environ(r.order)...)
	r.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if w.Keep.Folder {
		if err := os.MkdirAll(w.saved(r.ID), 0o777); err != nil { //nolint:gosec // the user's umask decides
			return err
		}
	}
	for i, file := range w.outputs(r.ID) {
		path := file + "." + r.Run
		if r.Saved {
			_ = os.Rename(file+partSuffix, path) // if it wrote something before its checkpoint
		}
		f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND|syscall.O_NOFOLLOW, 0o666) //nolint:gosec // the user's umask decides
		if err != nil {
			return err
		}
		defer f.Close()
		if i == 0 {
			r.cmd.Stdout = f
		}
		r.cmd.Stderr = f
	}
	return r.cmd.Start()
}

// doubt waits after a failure: when Slurm ends a step, it signals all processes, and a task may end before the worker knows.
func (w *worker) doubt(r *taskRun) {
	r.mu.Lock()
	asked := !r.asked.IsZero()
	r.mu.Unlock()
	if asked {
		return
	}
	select {
	case <-w.ending.Done():
		r.ask()
	case <-time.After(doubt):
	}
}

// over says how a run has ended.
func (w *worker) over(r *taskRun, err error, took time.Duration) over {
	r.mu.Lock()
	defer r.mu.Unlock()
	e := over{Task: r.Task, Run: r.Run, Seconds: took.Seconds(), Asked: !r.asked.IsZero()}
	if e.Asked {
		e.Took = time.Since(r.asked).Seconds()
	}
	var exit *exec.ExitError
	switch status, ok := r.cmd.ProcessState.Sys().(syscall.WaitStatus); {
	case ok && status.Signaled():
		e.Signal = int(status.Signal())
	case ok:
		e.Status = status.ExitStatus()
	}
	if err != nil && !errors.As(err, &exit) {
		e.Why = err.Error()
	}
	if w.Keep.Kind != KeepNone {
		e.Saved = w.kept(r.ID) || r.kept || e.Asked && e.Status == SavedStatus
	}
	e.Full = (e.Status != 0 || e.Signal != 0) && !e.Asked && w.full()
	return e
}

// full reports whether the disk of the outputs is.
func (w *worker) full() bool {
	var fs unix.Statfs_t
	return unix.Statfs(filepath.Dir(w.Output), &fs) == nil && fs.Blocks > 0 && fs.Bavail*uint64(fs.Bsize) < tooFull
}

// drain has all tasks end within the limit.
func (w *worker) drain(limit time.Duration) {
	by := time.Now().Add(limit - min(limit/4, time.Second))
	w.mu.Lock()
	defer w.mu.Unlock()
	w.leave = &by
	for r := range w.runs {
		go w.stop(r, by)
	}
}

// stop ends a task by a deadline, with a checkpoint if it makes one.
func (w *worker) stop(r *taskRun, by time.Time) {
	kill := by
	switch w.Keep.Kind {
	case KeepDemand:
		r.ask()
		if w.Keep.Command == nil {
			r.signal(unix.SignalNum("SIG" + w.Keep.Signal))
			break
		}
		if w.keep(r, time.Until(by)) {
			r.mu.Lock()
			r.kept = true
			r.mu.Unlock()
		}
		kill = w.terminate(r, by)
	case KeepPeriodic:
		kill = w.terminate(r, time.Now().Add(min(lastWords, time.Until(by))))
	default:
		last := min(lastWords, time.Until(by)/4)
		if r.endsBy(by.Add(-last)) {
			return
		}
		kill = w.terminate(r, by)
	}
	if !r.endsBy(kill) {
		r.signal(syscall.SIGKILL)
	}
}

// terminate asks a task to end, and returns when it has to have ended.
func (w *worker) terminate(r *taskRun, by time.Time) time.Time {
	r.ask()
	r.signal(syscall.SIGTERM)
	if last := time.Now().Add(lastWords); last.Before(by) {
		return last
	}
	return by
}

// keepOften checkpoints a task every so often.
func (w *worker) keepOften(r *taskRun) {
	for {
		select {
		case <-r.ended:
			return
		case <-time.After(w.Keep.Period):
		}
		if w.Keep.Command == nil {
			r.signal(unix.SignalNum("SIG" + w.Keep.Signal))
		} else {
			w.keep(r, w.Keep.Period)
		}
	}
}

// keep runs the command that checkpoints a task, and reports whether it has succeeded.
func (w *worker) keep(r *taskRun, limit time.Duration) bool {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	pid := strconv.Itoa(r.cmd.Process.Pid)
	words := fill(w.Keep.Command, "{}", string(r.Text), "{pid}", pid, "{dir}", w.saved(r.ID))
	cmd := exec.CommandContext(ctx, words[0], words[1:]...)
	cmd.Env, cmd.Stdout, cmd.Stderr = append(append(os.Environ(), w.environ(r.order)...), "EVO_PID="+pid), w.errs, w.errs
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
	err := cmd.Run()
	if err == nil {
		return true
	}
	select {
	case <-r.ended: // there is nothing to checkpoint
	default:
		_, _ = io.WriteString(w.errs, "evosrun: task "+strconv.Itoa(r.ID)+": the command to checkpoint it: "+err.Error()+"\n")
	}
	return false
}

// ask notes that the task was asked to end.
func (r *taskRun) ask() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.asked.IsZero() {
		r.asked = time.Now()
	}
}

// signal signals all processes of a task that runs.
func (r *taskRun) signal(s syscall.Signal) {
	select {
	case <-r.ended:
	default:
		_ = syscall.Kill(-r.cmd.Process.Pid, s) // it may just have ended
	}
}

// endsBy waits for the end of a task, until a deadline, and reports whether it has ended.
func (r *taskRun) endsBy(deadline time.Time) bool {
	select {
	case <-r.ended:
		return true
	case <-time.After(time.Until(deadline)):
		return false
	}
}
