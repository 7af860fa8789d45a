package strategy

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// keeperName is the first argument that makes this executable a keeper.
const keeperName = "evoslurm-strategy-keeper"

// order is what a keeper is told.
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
	maxTasks      = 256 // threads and processes, beyond those that its user has already
	maxFiles      = 1024
	maxFileSize   = 64 << 20 // bytes
	watchInterval = 100 * time.Millisecond
	// Beyond what a plugin uses it maps memory that it never touches: Go about
	// 1.8 GB, Python with gRPC 0.7 GB (measured). RLIMIT_DATA counts what can be
	// written; this is for what it does not count.
	mappedBeyond = 8 << 30
)

func init() {
	if len(os.Args) == 2 && os.Args[0] == keeperName {
		os.Exit(keep(os.Args[1]))
	}
}

// keep runs a plugin as its only child and does not return before all processes
// that come of it are gone. Standard input is the sidecar's end of a pipe: when
// it closes, on purpose or because the sidecar was killed, all is over.
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
	plugin, err := begin(o)
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

// begin starts the plugin with its limits.
func begin(o order) (int, error) {
	attr := &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if o.User != nil {
		attr.Credential = &syscall.Credential{Uid: o.User.UID, Gid: o.User.GID, Groups: []uint32{}}
	}
	null, err := os.Open(os.DevNull)
	if err != nil {
		return 0, err
	}
	defer null.Close()
	// What the plugin may not have for good is lowered for good here; its memory
	// limits hold for the keeper, too, only while it starts the plugin.
	uid := uint32(os.Geteuid())
	if o.User != nil {
		uid = o.User.UID
	}
	for resource, limit := range map[int]uint64{unix.RLIMIT_CORE: 0, unix.RLIMIT_NOFILE: maxFiles, unix.RLIMIT_FSIZE: maxFileSize,
		unix.RLIMIT_NPROC: uint64(tasksOf(uid) + maxTasks)} {
		if err := lower(resource, limit, true); err != nil {
			return 0, err
		}
	}
	limits := map[int]uint64{unix.RLIMIT_DATA: uint64(o.Memory), unix.RLIMIT_AS: uint64(o.Memory) + mappedBeyond}
	own := map[int]unix.Rlimit{}
	for resource, limit := range limits {
		var before unix.Rlimit
		if err := unix.Getrlimit(resource, &before); err != nil {
			return 0, err
		}
		own[resource] = before
		if err := lower(resource, limit, false); err != nil {
			return 0, err
		}
	}
	pid, err := syscall.ForkExec(o.Path, []string{o.Path}, &syscall.ProcAttr{
		Dir: "/", Env: os.Environ(), Files: []uintptr{null.Fd(), 1, 2}, Sys: attr,
	})
	for resource, before := range own {
		_ = unix.Setrlimit(resource, &before) // back to what it was: that cannot fail
	}
	if err != nil {
		return 0, fmt.Errorf("start %s: %w", o.Path, err)
	}
	for resource, limit := range limits {
		// With CAP_SYS_RESOURCE the plugin cannot raise them again; without, watch
		// is there.
		_ = unix.Prlimit(pid, resource, &unix.Rlimit{Cur: limit, Max: limit}, nil)
	}
	return pid, nil
}

// lower lowers a limit of this process, never raises it; hard: for good.
func lower(resource int, limit uint64, hard bool) error {
	var r unix.Rlimit
	if err := unix.Getrlimit(resource, &r); err != nil {
		return err
	}
	r.Cur = min(limit, r.Max)
	if hard {
		r.Max = r.Cur
	}
	if err := unix.Setrlimit(resource, &r); err != nil {
		return fmt.Errorf("limit %d: %w", resource, err)
	}
	return nil
}

// reap collects what has ended, until there is no child left.
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

// watch tells whether the plugin's processes together use too much.
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
