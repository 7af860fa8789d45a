package pluginhost

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The first arguments that make this executable a keeper, and the process that a keeper starts,
// which becomes the plugin.
const (
	keeperName = "evoslurm-strategy-keeper"
	becomeName = "evoslurm-strategy-start"
)

// order holds a keeper's instructions.
type order struct {
	Path      string
	Memory    int64     // bytes, of all processes together
	User      *identity // nil: the keeper's own
	SocketDir string    // removed at the end
}

type identity struct{ UID, GID uint32 }

// Bounds of one plugin.
const (
	maxProcesses  = 64
	maxTasks      = 256 // threads and processes, beyond those that its user already has
	maxFiles      = 1024
	maxFileSize   = 64 << 20 // bytes
	watchInterval = 100 * time.Millisecond
	// A plugin maps memory that it never touches: Go about 1.8 GB, Python with gRPC 0.7 GB
	// (measured). RLIMIT_DATA counts writable memory; this bounds the rest.
	mappedBeyond = 8 << 30
)

func init() {
	if len(os.Args) != 2 {
		return
	}
	switch os.Args[0] {
	case keeperName:
		os.Exit(keep(os.Args[1]))
	case becomeName:
		fmt.Fprintln(os.Stderr, "keeper:", become(os.Args[1]))
		os.Exit(125)
	}
}

// keep runs a plugin as its only child and returns only when all its descendants are gone. Standard
// input is the sidecar's end of a pipe: when it closes, on purpose or because the sidecar was
// killed, keep ends everything.
func keep(text string) int {
	runtime.LockOSThread() // the plugin dies with the thread that started it
	fail := func(err error) int {
		fmt.Fprintln(os.Stderr, "keeper:", err)
		return 125
	}
	var o order
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		return fail(err)
	}
	defer os.RemoveAll(o.SocketDir)
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil { // orphans become ours
		return fail(err)
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil { // no set-user-ID programs
		return fail(err)
	}
	plugin, err := begin(o, text)
	if err != nil {
		return fail(err)
	}
	os.Stdout.Close()

	stop := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		close(stop)
	}()
	ended, gone := make(chan syscall.WaitStatus, 1), make(chan struct{})
	go reap(plugin, ended, gone)
	defer endAll(gone)
	tick := time.NewTicker(watchInterval)
	defer tick.Stop()
	for {
		select {
		case <-stop:
			return 0
		case status := <-ended:
			switch {
			case status.Signaled():
				fmt.Fprintf(os.Stderr, "it was ended by signal %d (%v)\n", status.Signal(), status.Signal())
				return 128 + int(status.Signal())
			case status.ExitStatus() != 0:
				fmt.Fprintf(os.Stderr, "it exited with status %d\n", status.ExitStatus())
			}
			return status.ExitStatus()
		case <-tick.C:
			if err := watch(o.Memory); err != nil {
				return fail(err)
			}
		}
	}
}

// begin starts the plugin. It lowers limits for good here, except memory, which the keeper needs as
// well: see become.
func begin(o order, text string) (int, error) {
	null, err := os.Open(os.DevNull)
	if err != nil {
		return 0, err
	}
	defer null.Close()
	uid := uint32(os.Geteuid())
	if o.User != nil {
		uid = o.User.UID
	}
	for resource, limit := range map[int]uint64{unix.RLIMIT_CORE: 0, unix.RLIMIT_NOFILE: maxFiles, unix.RLIMIT_FSIZE: maxFileSize,
		unix.RLIMIT_NPROC: uint64(tasksOf(uid) + maxTasks)} {
		if err := lower(resource, limit); err != nil {
			return 0, err
		}
	}
	pid, err := syscall.ForkExec("/proc/self/exe", []string{becomeName, text}, &syscall.ProcAttr{
		Dir: "/", Env: os.Environ(), Files: []uintptr{null.Fd(), 1, 2}, Sys: &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL},
	})
	if err != nil {
		return 0, fmt.Errorf("start %s: %w", o.Path, err)
	}
	return pid, nil
}

// become turns this process, started by a keeper, into the plugin. It lowers its limits while it
// still has the keeper's identity: without CAP_SYS_RESOURCE, which the sidecar may lack, only the
// process itself can lower limits for good.
func become(text string) error {
	runtime.LockOSThread()
	var o order
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		return err
	}
	keeper := os.Getppid()
	if u := o.User; u != nil {
		if err := syscall.Setgroups([]int{}); err != nil {
			return fmt.Errorf("drop groups: %w", err)
		}
		if err := syscall.Setresgid(int(u.GID), int(u.GID), int(u.GID)); err != nil {
			return fmt.Errorf("become group %d: %w", u.GID, err)
		}
		if err := syscall.Setresuid(int(u.UID), int(u.UID), int(u.UID)); err != nil {
			return fmt.Errorf("become user %d: %w", u.UID, err)
		}
		// the kernel drops it when the user changes
		if err := unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(syscall.SIGKILL), 0, 0, 0); err != nil {
			return err
		}
	}
	if os.Getppid() != keeper {
		return errors.New("it is gone")
	}
	return fmt.Errorf("start %s: %w", o.Path, execWithin(o))
}

// execWithin runs the plugin's executable with memory limits. Go's runtime has mapped more than a
// small limit allows, so after the first limit it may get no more: everything that exec needs is
// made before, and nothing is allocated in between.
func execWithin(o order) error {
	path, err := syscall.BytePtrFromString(o.Path)
	if err != nil {
		return err
	}
	env, err := syscall.SlicePtrFromStrings(os.Environ())
	if err != nil {
		return err
	}
	argv := []*byte{path, nil}
	debug.SetGCPercent(-1)
	if err := lower(unix.RLIMIT_AS, uint64(o.Memory)+mappedBeyond); err != nil {
		return err
	}
	if err := lower(unix.RLIMIT_DATA, uint64(o.Memory)); err != nil {
		return err
	}
	_, _, errno := syscall.RawSyscall(syscall.SYS_EXECVE, uintptr(unsafe.Pointer(path)),
		uintptr(unsafe.Pointer(&argv[0])), uintptr(unsafe.Pointer(&env[0])))
	return errno
}

// lower lowers a limit of this process for good, never raises it.
func lower(resource int, limit uint64) error {
	var r unix.Rlimit
	if err := unix.Getrlimit(resource, &r); err != nil {
		return err
	}
	r.Max = min(limit, r.Max)
	r.Cur = min(r.Cur, r.Max)
	if err := unix.Setrlimit(resource, &r); err != nil {
		return fmt.Errorf("limit %d: %w", resource, err)
	}
	return nil
}

// reap collects ended children until none is left.
func reap(plugin int, ended chan<- syscall.WaitStatus, gone chan<- struct{}) {
	defer close(gone)
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, 0, nil)
		switch {
		case err == nil && pid == plugin:
			ended <- status
		case err != nil && !errors.Is(err, syscall.EINTR): // ECHILD
			return
		}
	}
}

// watch reports whether the plugin's processes together use too much.
func watch(limit int64) error {
	processes := descendants(os.Getpid())
	if len(processes) > maxProcesses {
		return fmt.Errorf("it has %d processes, at most %d are allowed", len(processes), maxProcesses)
	}
	used := int64(0)
	for _, pid := range processes {
		used += memory(pid)
	}
	if used > limit {
		return fmt.Errorf("its %d processes use %d MiB of memory, at most %d MiB are allowed", len(processes), used>>20, limit>>20)
	}
	return nil
}

// endAll kills all processes below this one. Those whose parent dies become
// children of this one, so there is an end to it.
func endAll(gone <-chan struct{}) {
	for {
		for _, pid := range descendants(os.Getpid()) {
			syscall.Kill(pid, syscall.SIGKILL)
		}
		select {
		case <-gone:
			return
		case <-time.After(time.Millisecond):
		}
	}
}
