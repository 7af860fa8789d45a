package api

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/evoslurm/evoslurm/adapter/internal/certs"
)

// sideConnections is how many connections a side server has at once, shared by address.
const sideConnections = 128

// Process is one that serves a port; see [Doorman].
type Process interface {
	Wait() error
	Kill() error
}

// Starter starts a process with these files: what Doorman needs.
type Starter func(files []*os.File) (Process, error)

// Side serves HTTP on TCP by a process of its own, which hands on what is well-formed: whatever happens to it, the sidecar
// goes on. It is started again if it ends.
type Side struct {
	port      Port
	listeners []net.Listener
	handler   http.Handler
	setup     setup
	opened    func() // called when it begins to listen
}

// setup configures a Doorman. It gets one first, and later others that have another Pair.
type setup struct {
	Most    int // connections; 0: as many as there may be
	Share   int // of an address; 0: as Most allows
	Read    time.Duration
	Head    time.Duration
	Answer  time.Duration
	AnyBody bool   // also without a credential
	Base    string // of static files; "": there are none
	Pair    *certs.Pair

	trusted func(uid uint32) bool // who may have the reserve; only the sidecar knows
}

// ListenSide opens the port, or leaves it to Serve if another process has it. An answer takes at
// most answer. Below base, if it is not empty, static files are served, and forms are taken.
func ListenSide(port Port, h http.Handler, answer time.Duration, base string) (*Side, error) {
	// All may come from one proxy.
	s := &Side{port: port, handler: h, opened: func() {}, setup: setup{Most: sideConnections, Share: sideConnections, Read: 5 * time.Second, Head: headTimeout,
		Answer: answer, AnyBody: true, Base: base}}
	return s, s.open()
}

func (s *Side) open() (err error) {
	if s.port.Files != nil {
		if s.setup.Pair, err = s.port.Files.Current(); err != nil {
			return fmt.Errorf("the certificate: %w", err)
		}
	}
	s.listeners, err = s.port.open()
	return err
}

// Addr returns the address; nil if it does not listen, or not yet.
func (s *Side) Addr() net.Addr {
	if len(s.listeners) == 0 {
		return nil
	}
	return s.listeners[0].Addr()
}

// Pauses before a process that has ended is started again, and when it counts as sound.
const (
	longestRestart = 30 * time.Second
	sound          = time.Minute
)

// Serve answers until ctx is done.
func (s *Side) Serve(ctx context.Context) error {
	if len(s.listeners) == 0 {
		if s.port.Address == "" {
			return nil
		}
		l := s.port.await(ctx)
		if l == nil {
			return nil
		}
		s.listeners = []net.Listener{l}
		s.opened()
	}
	defer s.close()
	for pause := firstRetry; ; {
		began := time.Now()
		err := s.once(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if time.Since(began) > sound {
			pause = firstRetry
		}
		s.log().WithError(err).WithFields(logrus.Fields{"address": s.Addr(), "pause": pause}).Error("the process that serves an address ended: starting it again")
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pause):
		}
		pause = min(2*pause, longestRestart)
	}
}

func (s *Side) close() {
	for _, l := range s.listeners {
		l.Close()
	}
}

// once runs one process, and returns why it ended.
func (s *Side) once(ctx context.Context) error {
	control, line, files, err := s.ends()
	defer func() {
		for _, f := range files {
			f.Close()
		}
	}()
	if err != nil {
		return err
	}
	defer control.Close()
	defer line.Close()
	start := s.port.Start
	if start == nil {
		start = s.within
	}
	process, err := start(files)
	if err != nil {
		return err
	}
	server := s.server()
	served := make(chan error, 1)
	go func() { served <- server.Serve(&single{conn: line, done: make(chan struct{})}) }()
	defer server.Close()
	ended := make(chan error, 1)
	go func() { ended <- process.Wait() }()
	told := make(chan error, 1)
	over, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() { told <- s.tell(over, control) }()

	select {
	case err = <-ended:
		return fmt.Errorf("it ended: %w", cmp.Or(err, errors.New("exit status 0")))
	case err = <-served:
	case err = <-told:
	}
	cancel()
	control.Close() // it ends once what is open was answered
	select {
	case e := <-ended:
		err = errors.Join(err, e)
	case <-time.After(drainTimeout + time.Second):
		err = errors.Join(err, process.Kill())
	}
	return err
}

// tell sends the setup, and each further pair of certificate and key, until ctx is done.
func (s *Side) tell(ctx context.Context, control net.Conn) error {
	to := json.NewEncoder(control)
	if err := to.Encode(s.setup); err != nil {
		return err
	}
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(lookForRenewal):
		}
		if s.port.Files == nil {
			continue
		}
		if pair, err := s.port.Files.Current(); err == nil && pair != s.setup.Pair {
			s.setup.Pair = pair
			if err := to.Encode(s.setup); err != nil {
				return err
			}
		}
	}
}

// lookForRenewal is how often the files of TLS are looked at.
const lookForRenewal = time.Second

// ends returns this side's two connections to a new process, and the process's files.
func (s *Side) ends() (control, line net.Conn, files []*os.File, err error) {
	for _, conn := range []*net.Conn{&control, &line} {
		fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
		if err != nil {
			return nil, nil, files, err
		}
		mine := os.NewFile(uintptr(fds[0]), "sidecar")
		files = append(files, os.NewFile(uintptr(fds[1]), "listener"))
		*conn, err = net.FileConn(mine)
		mine.Close()
		if err != nil {
			return nil, nil, files, err
		}
	}
	for _, l := range s.listeners {
		f, err := l.(*net.TCPListener).File()
		if err != nil {
			return nil, nil, files, err
		}
		files = append(files, f)
	}
	return control, line, files, nil
}

// single is a listener that has one connection.
type single struct {
	conn net.Conn
	once sync.Once
	done chan struct{}
}

// Accept returns the connection; later it waits until Close.
func (s *single) Accept() (c net.Conn, err error) {
	s.once.Do(func() { c = s.conn })
	if c != nil {
		return c, nil
	}
	<-s.done
	return nil, http.ErrServerClosed
}

func (s *single) Close() error   { close(s.done); return nil }
func (s *single) Addr() net.Addr { return s.conn.LocalAddr() }

// here is a process that is none: tests run it in their own.
type here chan error

func (h here) Wait() error { return <-h }
func (h here) Kill() error { return errors.New("it runs within this process") }

// within runs a Doorman in this process.
func (s *Side) within(files []*os.File) (Process, error) {
	var own []*os.File // the caller closes its files
	for _, f := range files {
		fd, err := syscall.Dup(int(f.Fd()))
		if err != nil {
			return nil, err
		}
		own = append(own, os.NewFile(uintptr(fd), f.Name()))
	}
	h := make(here, 1)
	d := Doorman{Log: s.log()}
	go func() { h <- d.Serve(own) }()
	return h, nil
}
