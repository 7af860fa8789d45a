package systemd

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"

	"github.com/evoslurm/evoslurm/adapter/internal/legible"
)

const (
	statusEvery = 15 * time.Second // the status line is written at least this often
	// Patience is how long a start waits for its first full cycle: then it is reported as done, so that a boot does not
	// wait for a Slurm that is away.
	Patience = 2 * time.Minute
	// StartTime is how long a healthy start may take until its loop runs: a large database is read, and updated.
	StartTime  = 30 * time.Minute
	extension  = time.Minute // of a start, at each sign of life
	mostStatus = 300         // characters of the status line
)

// Service reports to the service manager. Its methods are safe for concurrent use; a nil Service reports nothing.
type Service struct {
	watchdog time.Duration // 0: there is none
	send     func(state string) error
	warn     func(error)

	mu    sync.Mutex
	begun time.Time
	last  time.Time // sign of life
	ready bool
	ends  bool
}

// New returns the service of this process, or nil without a service manager. A watchdog without one is ignored.
func New(warn func(error)) *Service {
	if os.Getenv("NOTIFY_SOCKET") == "" {
		return nil
	}
	watchdog, err := daemon.SdWatchdogEnabled(false)
	if err != nil {
		warn(fmt.Errorf("the service manager's watchdog is ignored: %w", err))
	}
	return &Service{watchdog: watchdog, warn: warn, begun: time.Now(), send: func(state string) error {
		_, err := daemon.SdNotify(false, state)
		return err
	}}
}

// Every returns how often Alive must be called at least; 0 for never.
func (s *Service) Every() time.Duration {
	if s == nil {
		return 0
	}
	if s.watchdog > 0 {
		return min(s.watchdog/4, statusEvery)
	}
	return statusEvery
}

// Alive gives a sign of life. The loop that must not be stuck calls it, as often as it likes. With done, its start is
// complete.
func (s *Service) Alive(done bool, status func() string) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	becomes := !s.ready && (done || now.Sub(s.begun) >= Patience)
	if !becomes && now.Sub(s.last) < s.Every()/2 || s.ends {
		return
	}
	s.last, s.ready = now, s.ready || becomes
	state := s.sign() + "\nSTATUS=" + legible.Cut(legible.Printable(status(), false), mostStatus, "…")
	if becomes {
		state = "READY=1\n" + state
	}
	s.tell(state)
}

// sign returns a sign of life. A start is extended with each.
func (s *Service) sign() string {
	if s.ready {
		return "WATCHDOG=1"
	}
	return fmt.Sprintf("EXTEND_TIMEOUT_USEC=%d", extension.Microseconds())
}

// During gives signs of life until done is called, for what may take long in a healthy process and no longer than `most`.
func (s *Service) During(most time.Duration) (done func()) {
	if s == nil {
		return func() {}
	}
	ended, gone := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(gone)
		for end := time.After(most); ; {
			s.mu.Lock()
			s.tell(s.sign())
			s.mu.Unlock()
			select {
			case <-ended:
				return
			case <-end:
				return
			case <-time.After(s.Every()):
			}
		}
	}()
	return sync.OnceFunc(func() { close(ended); <-gone })
}

// Reload reports that the configuration is read again, until done is called. Before a start is complete it reports
// nothing.
func (s *Service) Reload() (done func()) {
	if s == nil {
		return func() {}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.ready || s.ends {
		return func() {}
	}
	s.tell("RELOADING=1\n" + strings.TrimSpace(daemon.SdNotifyMonotonicUsec()))
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if !s.ends {
			s.tell("READY=1")
		}
	}
}

// Stopping reports that the process ends.
func (s *Service) Stopping() {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ends = true
	s.tell("STOPPING=1\nSTATUS=stopping; jobs go on")
}

// tell sends a message, and warns once if that fails.
func (s *Service) tell(state string) {
	if err := s.send(state); err != nil && s.warn != nil {
		s.warn(fmt.Errorf("the service manager does not hear the sidecar: %w", err))
		s.warn = nil
	}
}
