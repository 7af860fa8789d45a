package slurmtest

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"
)

// supervision is the owner's end of the connection to the supervisor.
type supervision struct {
	cmd *exec.Cmd
	in  io.WriteCloser

	mu      sync.Mutex
	encoder *json.Encoder
	next    int
	replies map[int]chan message
	procs   map[string]*daemon // latest start of every name
	gone    chan struct{}      // closed when the supervisor has ended
}

// daemon is one started process.
type daemon struct {
	name   string
	ended  chan struct{} // closed when it has ended
	status string        // how it ended; read it after ended is closed
}

// startSupervisor starts this executable again as the supervisor of dir.
func startSupervisor(dir, log string, temporary bool) (*supervision, error) {
	out, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	defer out.Close()
	after := "kept"
	if temporary {
		after = temporaryDir
	}
	cmd := &exec.Cmd{
		Path: "/proc/self/exe", Args: []string{supervisorName, dir, after},
		Env: []string{supervisorEnv, "SLURMTEST_LOGS=" + os.Getenv("SLURMTEST_LOGS"), "GORACE=atexit_sleep_ms=0"},
		Dir: "/", Stderr: out,
		// A session of its own: ^C in the terminal ends the owner, and then the supervisor cleans
		// up.
		SysProcAttr: &syscall.SysProcAttr{Setsid: true},
	}
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	replies, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("slurmtest: start the supervisor: %w", err)
	}
	s := &supervision{
		cmd: cmd, in: in, encoder: json.NewEncoder(in),
		replies: map[int]chan message{}, procs: map[string]*daemon{}, gone: make(chan struct{}),
	}
	go s.read(replies)
	return s, nil
}

func (s *supervision) read(from io.Reader) {
	in := json.NewDecoder(from)
	for {
		var m message
		if in.Decode(&m) != nil {
			break
		}
		s.mu.Lock()
		if m.ID != 0 {
			s.replies[m.ID] <- m
			delete(s.replies, m.ID)
		} else if d := s.procs[m.Ended]; d != nil {
			d.status = m.Status
			close(d.ended)
		}
		s.mu.Unlock()
	}
	s.cmd.Wait()
	close(s.gone)
}

// call sends a request and waits for its reply. For a start, it registers the process before the
// supervisor can report its end.
func (s *supervision) call(ctx context.Context, r request) (message, error) {
	reply := make(chan message, 1)
	s.mu.Lock()
	s.next++
	r.ID = s.next
	s.replies[r.ID] = reply
	if r.Op == "start" {
		if d := s.procs[r.Name]; d != nil && !d.over() {
			s.mu.Unlock()
			return message{}, fmt.Errorf("slurmtest: %s is running already", r.Name)
		}
		s.procs[r.Name] = &daemon{name: r.Name, ended: make(chan struct{})}
	}
	err := s.encoder.Encode(r)
	s.mu.Unlock()
	if err != nil {
		return message{}, fmt.Errorf("slurmtest: the supervisor is gone: %w", err)
	}
	m, err := s.await(ctx, reply)
	switch {
	case err != nil:
		return message{}, fmt.Errorf("slurmtest: %s %s: %w", r.Op, r.Name, err)
	case m.Err != "":
		return m, fmt.Errorf("slurmtest: %s", m.Err)
	}
	return m, nil
}

// await waits for a reply. The supervisor's last one counts, even if the supervisor has ended since.
func (s *supervision) await(ctx context.Context, reply <-chan message) (message, error) {
	select {
	case m := <-reply:
		return m, nil
	case <-s.gone:
	case <-ctx.Done():
		return message{}, ctx.Err()
	}
	select {
	case m := <-reply:
		return m, nil
	default:
		return message{}, fmt.Errorf("the supervisor is gone: %v", s.cmd.ProcessState)
	}
}

// start starts a process; it ends with the supervisor at the latest.
func (s *supervision) start(ctx context.Context, r request) (*daemon, error) {
	r.Op = "start"
	_, err := s.call(ctx, r)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		delete(s.procs, r.Name)
		return nil, err
	}
	d := s.procs[r.Name]
	return d, nil
}

// kill sends a signal to a process and waits until it has ended.
func (s *supervision) kill(ctx context.Context, name string, sig syscall.Signal) error {
	s.mu.Lock()
	d := s.procs[name]
	s.mu.Unlock()
	if d == nil {
		return fmt.Errorf("slurmtest: %s was never started", name)
	}
	if _, err := s.call(ctx, request{Op: "signal", Name: name, Signal: int(sig)}); err != nil {
		return err
	}
	select {
	case <-d.ended:
		return nil
	case <-s.gone:
		return fmt.Errorf("slurmtest: the supervisor is gone: %v", s.cmd.ProcessState)
	case <-ctx.Done():
		return fmt.Errorf("slurmtest: %s ignores %s: %w", name, sig, ctx.Err())
	}
}

// stop ends everything, including the supervisor.
func (s *supervision) stop(ctx context.Context) error {
	_, err := s.call(ctx, request{Op: "stop"})
	s.in.Close()
	select {
	case <-s.gone:
		return err
	case <-ctx.Done():
		return fmt.Errorf("slurmtest: stop: %w", ctx.Err())
	}
}

func (d *daemon) over() bool {
	select {
	case <-d.ended:
		return true
	default:
		return false
	}
}
