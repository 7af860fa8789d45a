package slurmtest

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"
)

// supervisorName is argv[0] of the supervisor. Together with supervisorEnv, it tells this package's
// init that the process is a supervisor.
const (
	supervisorName = "slurmtest-supervisor"
	supervisorEnv  = "SLURMTEST_SUPERVISOR=1"
	temporaryDir   = "temporary" // argv[2]: remove the folder at the end
)

// clusterEnv is set to the cluster's folder in the environment of every client command. Processes
// that still have it when the cluster stops are killed.
const clusterEnv = "SLURMTEST_CLUSTER"

// request is a line from the owner to the supervisor.
type request struct {
	ID     int
	Op     string // "ports", "start", "signal", "stop"
	Name   string `json:",omitempty"` // name of the process (start, signal)
	Ports  int    `json:",omitempty"` // number of ports (ports)
	Signal int    `json:",omitempty"`

	Path   string   `json:",omitempty"` // start: the executable
	Argv   []string `json:",omitempty"` // start: with argv[0]
	Env    []string `json:",omitempty"`
	Dir    string   `json:",omitempty"`
	Output string   `json:",omitempty"` // file that standard output and error are appended to
	User   *owner   `json:",omitempty"` // nil for the supervisor's own
	Host   *host    `json:",omitempty"` // nil for the machine
}

// owner is the account that a process runs as.
type owner struct {
	UID, GID uint32
	Groups   []uint32
}

// message is a line from the supervisor: the reply to request ID or, with ID 0, the news that a
// process has ended.
type message struct {
	ID     int
	Err    string `json:",omitempty"`
	Port   int    `json:",omitempty"`
	Ended  string `json:",omitempty"` // name of the process
	Status string `json:",omitempty"` // how the process ended
}

func init() {
	if len(os.Args) == 3 && os.Args[0] == supervisorName && slices.Contains(os.Environ(), supervisorEnv) {
		supervise(os.Args[1], os.Args[2] == temporaryDir)
		os.Exit(0)
	}
}

// supervisor holds the state of the supervising process; only one goroutine uses it.
type supervisor struct {
	dir   string // the cluster's folder
	owner int    // process that called Boot
	out   *json.Encoder
	names map[int]string // running children by pid
	pids  map[string]int
	ports *portRange
}

// supervise serves requests on standard input until the owner asks it to stop or is gone. Then it
// kills all its descendants and removes dir if it is temporary.
func supervise(dir string, temporary bool) {
	// Pdeathsig is tied to the thread that forks: stay on one that lives as long
	// as the process.
	runtime.LockOSThread()
	signal.Ignore(syscall.SIGINT, syscall.SIGQUIT, syscall.SIGHUP, syscall.SIGPIPE)
	ended := make(chan os.Signal, 64)
	signal.Notify(ended, syscall.SIGCHLD)
	terminate := make(chan os.Signal, 1)
	signal.Notify(terminate, syscall.SIGTERM)

	s := &supervisor{
		dir: dir, owner: os.Getppid(), out: json.NewEncoder(os.Stdout),
		names: map[int]string{}, pids: map[string]int{},
	}
	const prSetChildSubreaper = 36
	if _, _, errno := syscall.RawSyscall(syscall.SYS_PRCTL, prSetChildSubreaper, 1, 0); errno != 0 {
		fmt.Fprintln(os.Stderr, "slurmtest: cannot become a child subreaper:", errno)
		os.Exit(1)
	}
	requests := make(chan request)
	go func() {
		defer close(requests)
		in := json.NewDecoder(os.Stdin)
		for {
			var r request
			if in.Decode(&r) != nil {
				return // the owner closed the pipe or died
			}
			requests <- r
		}
	}()
	var stop request
	orphaned := false
serve:
	for {
		select {
		case r, ok := <-requests:
			if !ok {
				orphaned = true
				break serve
			}
			if r.Op == "stop" {
				stop = r
				break serve
			}
			m := s.handle(r)
			m.ID = r.ID
			s.out.Encode(m)
		case <-ended:
			s.reap()
		case <-terminate:
			orphaned = true
			break serve
		}
	}
	err := s.killAll()
	if orphaned {
		_, _ = keepLogs(dir, fmt.Sprintf("orphaned-%d", s.owner))
	}
	if temporary {
		err = errors.Join(err, os.RemoveAll(dir))
	}
	m := message{ID: stop.ID}
	if err != nil {
		m.Err = err.Error()
	}
	s.out.Encode(m)
}

func (s *supervisor) handle(r request) message {
	fail := func(err error) message { return message{Err: err.Error()} }
	switch r.Op {
	case "ports":
		p, err := reservePorts(r.Ports)
		if err != nil {
			return fail(err)
		}
		s.ports = p
		return message{Port: p.base}
	case "start":
		if err := s.start(r); err != nil {
			return fail(err)
		}
		return message{}
	case "signal":
		pid := s.pids[r.Name]
		if pid == 0 {
			return fail(fmt.Errorf("%s is not running", r.Name))
		}
		if err := syscall.Kill(pid, syscall.Signal(r.Signal)); err != nil {
			return fail(fmt.Errorf("kill %s: %w", r.Name, err))
		}
		return message{}
	}
	return fail(fmt.Errorf("unknown request %q", r.Op))
}

func (s *supervisor) start(r request) error {
	if s.pids[r.Name] != 0 {
		return fmt.Errorf("%s is running already", r.Name)
	}
	null, err := os.Open(os.DevNull)
	if err != nil {
		return err
	}
	defer null.Close()
	out, err := os.OpenFile(r.Output, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer out.Close()
	attr := &syscall.ProcAttr{
		Dir: r.Dir, Env: r.Env,
		Files: []uintptr{null.Fd(), out.Fd(), out.Fd()},
		// In case the supervisor itself is killed. A daemon that changes its user loses this
		// setting, so it is only a second safety net.
		Sys: &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL},
	}
	if u := r.User; u != nil {
		attr.Sys.Credential = &syscall.Credential{Uid: u.UID, Gid: u.GID, Groups: u.Groups}
	}
	pid, err := r.Host.forkExec(r.Path, r.Argv, attr)
	if err != nil {
		return fmt.Errorf("start %s: %w", r.Path, err)
	}
	s.names[pid], s.pids[r.Name] = r.Name, pid
	return nil
}

// reap collects ended children: daemons and adopted orphans.
func (s *supervisor) reap() {
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, syscall.WNOHANG, nil)
		if errors.Is(err, syscall.EINTR) {
			continue
		}
		if pid <= 0 || err != nil {
			return
		}
		name := s.names[pid]
		if name == "" {
			continue
		}
		delete(s.names, pid)
		delete(s.pids, name)
		how := fmt.Sprintf("exit status %d", status.ExitStatus())
		if status.Signaled() {
			how = "signal: " + status.Signal().String()
		}
		s.out.Encode(message{Ended: name, Status: how})
	}
}

// killAll kills all descendants, and all clients with the cluster in their environment, until none
// is left. An orphan created meanwhile becomes a child of the supervisor and is found in the next
// round.
func (s *supervisor) killAll() error {
	deadline := time.Now().Add(20 * time.Second)
	for {
		procs := processes()
		victims := descendants(procs, os.Getpid())
		victims = append(victims, clientsOf(s.dir, procs, os.Getpid(), s.owner)...)
		if len(victims) == 0 {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("slurmtest: %d processes survive SIGKILL: %v", len(victims), victims)
		}
		for _, pid := range victims {
			syscall.Kill(pid, syscall.SIGKILL)
		}
		time.Sleep(5 * time.Millisecond)
		s.reap()
	}
}

// clientsOf returns the processes started with the environment of the cluster in dir, except the
// supervisor, the owner, and the owner's ancestors.
func clientsOf(dir string, procs map[int]int, supervisor, owner int) []int {
	spare := map[int]bool{supervisor: true}
	for pid := owner; pid > 0 && !spare[pid]; pid = procs[pid] {
		spare[pid] = true
	}
	mark := clusterEnv + "=" + dir
	var pids []int
	for pid := range procs {
		if spare[pid] || isZombie(pid) {
			continue
		}
		environ, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
		if err != nil {
			continue
		}
		if slices.Contains(strings.Split(string(environ), "\x00"), mark) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// keepLogs copies the log folder of a cluster to $SLURMTEST_LOGS/name, if set.
func keepLogs(dir, name string) (string, error) {
	to := os.Getenv("SLURMTEST_LOGS")
	if to == "" {
		return "", nil
	}
	to = to + "/" + strings.Map(func(r rune) rune {
		if r == '/' || r < ' ' {
			return '_'
		}
		return r
	}, name)
	if err := os.RemoveAll(to); err != nil {
		return "", err
	}
	return to, os.CopyFS(to, os.DirFS(dir+"/log"))
}
