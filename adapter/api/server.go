package api

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/sirupsen/logrus"
	"golang.org/x/sync/errgroup"

	"github.com/evoslurm/evoslurm/adapter/internal/certs"
	"github.com/evoslurm/evoslurm/adapter/internal/strict"
)

// Bounds of the server.
const (
	readTimeout  = 5 * time.Second  // for a whole request
	writeTimeout = 10 * time.Second // for an answer, beyond the wait
	drainTimeout = 5 * time.Second  // for open requests at the end

	// DefaultMaxAge bounds a MUNGE credential's age; see Server.MaxAge.
	DefaultMaxAge = time.Minute
)

// Server serves a Backend over a Unix socket and TCP. Set the fields, then
// Listen, then Serve.
type Server struct {
	Backend Backend
	Log     logrus.FieldLogger

	Socket string        // path of the Unix socket; "": none
	TCP    string        // host:port; "": none
	TLS    *certs.Files  // on TCP; nil: none
	Start  Starter       // as Port.Start
	Munge  Munge         // how credentials of TCP callers are decoded
	Tokens *Keys         // of callers by token; nil: there are none
	MaxAge time.Duration // of a credential; 0: DefaultMaxAge
	Wait   time.Duration // longest wait of one next request; 0: DefaultWait

	// Operator reports whether a user may act on all users' jobs (UID 0 and the server's own user
	// always may). nil for no other user.
	Operator func(uid uint32) bool
	// Reading returns who may read status and jobs; it is called for every request. nil for
	// OwnJobs.
	Reading func() Reading
	// Sees returns a function that reports whether a user reads the jobs of an account, or with ""
	// all jobs, although Reading is OwnJobs. nil if no user does.
	Sees func(ctx context.Context, uid uint32) func(account string) bool
	// Shows returns what Slurm shows a user who is not an operator of nodes, partitions, and
	// reservations, unless Reading is Anybody. A nil result, or a nil function, means everything.
	Shows func(ctx context.Context, uid uint32) *Sight
	// Cluster returns the name of the server's cluster, or "" until it is known. A credential over
	// TCP must name it. nil if credentials need not name one.
	Cluster func() string
	// Acts returns why the sidecar may not act at present; requests that change something or are about one job are then
	// asked to try again, here or at the sidecar on another host. nil: it may.
	Acts func() error
	// Ship answers the sidecar on another host; nil: there is none.
	Ship func(context.Context, ShipRequest) (Shipment, error)
	// Opened are TCP listeners from systemd, in place of TCP.
	Opened []net.Listener
	// Forwarded lists the addresses, IP:port, at which clients reach TCP through a forwarder.
	Forwarded []string
	// HidesNodes reports whether Slurm shows nodes only to operators; unlike Shows, it never asks
	// Slurm. nil if it does not.
	HidesNodes func() bool
	// Ready returns why the sidecar is currently not usable, for all callers: GET /readyz, beside
	// /healthz, without a credential. nil if there is no such path.
	Ready func() error
	// Warnings lists what an administrator must do soon, for all callers of /healthz; nil for nothing.
	Warnings func() []error
	// Views serves the read-only pages beside /v1 (dashboard, metrics), to callers who may read all
	// users' jobs. nil for none.
	Views http.Handler
	// Page serves the page below PagePath, on the Unix socket; VisitorOf returns its reader. nil
	// for none.
	Page http.Handler

	since       atomic.Pointer[time.Time] // when it began to listen on TCP, by a clock that is never set; nil if no other process could have had the address before, and munged alone remembers credentials
	sharing     sync.Once
	shares      *shares       // by share
	socket      net.Listener  // nil: none
	side        *Side         // nil: none
	readTimeout time.Duration // of a request and of its head, in tests; 0: as the bounds say
	most        int           // connections of a listener; 0: as many as there may be
}

// Listen opens the listeners first of all, so that a wrong address or a second sidecar is noticed
// at once. It leaves a TCP address that another process has to Serve.
func (s *Server) Listen() error {
	if s.Socket == "" && s.TCP == "" && len(s.Opened) == 0 {
		return errors.New("api: neither a Unix socket nor a TCP address to listen on")
	}
	var err error
	if s.Socket != "" {
		if s.socket, err = listenUnix(s.Socket); err != nil {
			return fmt.Errorf("api: listen on unix://%s: %w", s.Socket, err)
		}
	}
	if s.TCP == "" && len(s.Opened) == 0 {
		return nil
	}
	read, head := s.timeouts()
	s.side = &Side{port: s.port(), opened: s.beganToListen,
		setup: setup{Most: s.most, Read: read, Head: head, Answer: s.wait() + backendTimeout + writeTimeout, trusted: s.rights().acts}}
	if err := s.side.open(); err != nil {
		s.close()
		return fmt.Errorf("api: listen on %s: %w", s.TCP, err)
	}
	if len(s.Opened) == 0 || s.Tokens != nil {
		s.beganToListen()
	}
	return nil
}

func (s *Server) port() Port {
	return Port{Address: s.TCP, Opened: s.Opened, Files: s.TLS, Start: s.Start, Log: s.Log}
}

// Addresses returns what clients may be given to reach the server, once Listen
// has returned; a port 0 has become the real one.
func (s *Server) Addresses() []string {
	var as []string
	if s.socket != nil {
		as = append(as, unixPrefix+s.socket.Addr().String())
	}
	if s.side != nil {
		for _, l := range s.side.listeners {
			as = append(as, l.Addr().String())
		}
	}
	return as
}

// beganToListen notes from when on callers reach this server at its TCP address.
func (s *Server) beganToListen() {
	now := time.Now()
	s.since.Store(&now)
}

// Serve answers requests until ctx is done; then waiting next requests are
// answered Ready false, open requests finished (5 s) and the socket removed.
func (s *Server) Serve(ctx context.Context) error {
	if s.socket == nil && s.side == nil {
		return errors.New("api: Serve before Listen")
	}
	handler := s.routes(ctx)
	all, ctx := errgroup.WithContext(ctx)
	if s.side != nil {
		s.side.handler = handler
		all.Go(func() error { return s.side.Serve(ctx) })
	}
	if s.socket != nil {
		all.Go(func() error { return s.serveSocket(ctx, handler) })
	}
	err := all.Wait()
	s.close()
	if err != nil {
		return fmt.Errorf("api: %w", err)
	}
	return nil
}

// timeouts returns how long a whole request may take to arrive, and its head. Silent clients make room for others soon.
func (s *Server) timeouts() (read, head time.Duration) {
	if s.readTimeout > 0 {
		return s.readTimeout, s.readTimeout
	}
	return readTimeout, headTimeout
}

// serveSocket answers on the Unix socket until ctx is done.
func (s *Server) serveSocket(ctx context.Context, handler http.Handler) error {
	read, head := s.timeouts()
	srv := &http.Server{Handler: handler, ReadTimeout: read, ReadHeaderTimeout: head, WriteTimeout: s.wait() + backendTimeout + writeTimeout,
		IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeader, ConnContext: withConn, ConnState: stateOf, ErrorLog: quietLog(s.Log)}
	failed := make(chan error, 1)
	go func() { failed <- srv.Serve(limit(s.socket, cmp.Or(s.most, connections(2)), s.rights().acts)) }()
	var err error
	select {
	case <-ctx.Done():
	case err = <-failed:
	}
	drain, cancel := context.WithTimeout(context.Background(), drainTimeout)
	defer cancel()
	if srv.Shutdown(drain) != nil {
		srv.Close()
	}
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

func (s *Server) close() {
	if s.socket != nil {
		s.socket.Close()
	}
	if s.side != nil {
		s.side.close()
	}
}

// share returns what the callers share.
func (s *Server) share() *shares {
	s.sharing.Do(func() { s.shares = newShares() })
	return s.shares
}

func (s *Server) rights() *rights {
	return &rights{backend: s.Backend, operator: s.Operator, readers: s.Reading, sees: s.Sees, shows: s.Shows, hidesNodes: s.HidesNodes,
		lines: s.share().lines, log: s.Log}
}

// wait returns how long a request waits at most.
func (s *Server) wait() time.Duration {
	if s.Wait > 0 {
		return s.Wait
	}
	return DefaultWait
}

// desk returns what answers requests; done ctx ends their waits.
func (s *Server) desk(ctx context.Context) *desk {
	return &desk{backend: s.Backend, rights: s.rights(), shares: s.share(), wait: s.wait(), ending: ctx, ship: s.Ship, acts: s.Acts}
}

func (s *Server) authenticator() *authenticator {
	a := &authenticator{munge: s.Munge, maxAge: DefaultMaxAge, cluster: s.Cluster, forwarded: s.Forwarded, since: &s.since, tokens: s.Tokens, shares: s.share(), log: s.Log,
		slots: make(chan struct{}, maxDecoders)}
	if s.MaxAge > 0 {
		a.maxAge = s.MaxAge
	}
	return a
}

// routes returns all that the server serves; done ctx ends the waits.
func (s *Server) routes(ctx context.Context) http.Handler {
	d := s.desk(ctx)
	f := &front{auth: s.authenticator(), shares: d.shares, rights: d.rights, log: s.Log}
	return f.routes(d, pages{ready: s.Ready, page: s.Page, views: s.Views, warnings: s.Warnings})
}

// listenUnix opens the socket for all users (the kernel identifies callers) in a folder that only
// root and the server's user can write or replace. It takes over the file that a dead server left.
func listenUnix(path string) (net.Listener, error) {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	if err := strict.Path(dir); err != nil {
		return nil, err
	}
	if st, err := os.Lstat(path); err == nil {
		if st.Mode()&os.ModeSocket == 0 {
			return nil, errors.New("a file that is no socket is in the way")
		}
		c, err := net.DialTimeout("unix", path, time.Second)
		if err == nil {
			c.Close()
			return nil, errors.New("another server is listening")
		}
		if !errors.Is(err, syscall.ECONNREFUSED) {
			return nil, err
		}
		if err := os.Remove(path); err != nil {
			return nil, err
		}
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(path, 0o666); err != nil {
		l.Close()
		return nil, err
	}
	return l, nil
}

// Visitor returns a visitor for a user; uid is nil for an unauthenticated caller.
func (s *Server) Visitor(uid *uint32) Visitor {
	v := Visitor{desk: s.desk(context.Background())}
	if uid != nil {
		v.caller = caller{known: true, uid: *uid}
	}
	return v
}
