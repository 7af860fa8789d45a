package api

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/sirupsen/logrus"
)

// caller is the sender of a request.
type caller struct {
	known bool // false: on TCP without a credential
	uid   uint32
}

type peerKey struct{}

// peer holds what the kernel reports about the other end of a Unix connection.
type peer struct {
	uid uint32
	err error
}

// withPeer notes a Unix connection's peer when it is accepted (SO_PEERCRED: the
// uid at the time of connect, which the caller cannot choose).
func withPeer(ctx context.Context, c net.Conn) context.Context {
	if u, ok := c.(*net.UnixConn); ok {
		return context.WithValue(ctx, peerKey{}, peerOf(u))
	}
	return ctx
}

// peerOf asks the kernel for the user at the other end; for a server's socket, that is the
// listening user.
func peerOf(u *net.UnixConn) (p peer) {
	raw, err := u.SyscallConn()
	if err == nil {
		e := raw.Control(func(fd uintptr) {
			var cred *syscall.Ucred
			if cred, err = syscall.GetsockoptUcred(int(fd), syscall.SOL_SOCKET, syscall.SO_PEERCRED); err == nil {
				p.uid = cred.Uid
			}
		})
		err = errors.Join(err, e)
	}
	p.err = err
	return p
}

// authenticate identifies the caller. It checks a credential if there is one; without one, it knows
// only Unix peers.
func (s *Server) authenticate(r *http.Request, body []byte) (caller, error) {
	if p, ok := r.Context().Value(peerKey{}).(peer); ok {
		if p.err != nil {
			return caller{}, fmt.Errorf("the peer's credentials: %w", p.err)
		}
		return caller{known: true, uid: p.uid}, nil
	}
	var c caller
	credential, err := credentialOf(r.Header)
	if err != nil {
		return c, Errorf(ErrDenied, "%v", err)
	}
	if credential == "" {
		return c, nil
	}
	decoded, err := s.decode(r.Context(), callerOf(r), credential)
	if err != nil {
		var m *mungeError
		if errors.As(err, &m) && m.away() {
			return c, Errorf(ErrUnavailable, "munged does not answer the sidecar: %v", err)
		}
		return c, Errorf(ErrDenied, "%v", err)
	}
	c.uid = decoded.UID
	if err := s.bind(r, credential, decoded, body); err != nil {
		return c, err
	}
	if s.seen.used(credential, time.Now(), 2*s.maxAge()) {
		return c, Errorf(ErrDenied, "the MUNGE credential has been used before")
	}
	if err := claimed(r.Context(), c.uid); err != nil {
		return c, err
	}
	c.known = true
	return c, nil
}

// decode opens a credential, a bounded number at a time: a client that floods the
// port with false ones gets no more processes than that.
func (s *Server) decode(ctx context.Context, who holder, credential string) (Credential, error) {
	free, err := s.decoder(ctx, who)
	if err != nil {
		return Credential{}, err
	}
	defer free()
	return s.Munge.Decode(ctx, credential)
}

// trusted reports whether a caller may act on all users' jobs.
func (s *Server) trusted(c caller) bool { return c.known && s.acts(c.uid) }

// acts reports whether a user may act on all users' jobs.
func (s *Server) acts(uid uint32) bool {
	return uid == 0 || int(uid) == os.Geteuid() || s.Operator != nil && s.Operator(uid)
}

// mayAct reports whether the caller may change the job: ErrDenied if unknown,
// ErrForbidden if another user.
func (s *Server) mayAct(ctx context.Context, c caller, id uint32) error {
	if !c.known {
		return Errorf(ErrDenied, "this needs a MUNGE credential: send the header \"Authorization: MUNGE <credential>\"")
	}
	owner, err := s.Backend.Owner(ctx, id)
	if err != nil {
		return err
	}
	if c.uid == owner || s.trusted(c) {
		return nil
	}
	foreign := fmt.Sprintf("job %d belongs to uid %d, and you are uid %d", id, owner, c.uid)
	if s.reading() == OwnJobs { // that there is such a job is not for this caller
		s.share().lines.write(holder{known: true, uid: c.uid}, time.Now(), s.Log.WithField("uid", c.uid), logrus.WarnLevel, "refused: "+foreign)
		return s.notThere(ctx, id)
	}
	return Errorf(ErrForbidden, "%s", foreign)
}

// replayCache remembers recent credentials. munged refuses replays itself, but not if two munged
// share a key; the cache does. It is bounded by dropping the oldest generation, at most every
// maxAge.
type replayCache struct {
	mu       sync.Mutex
	now, old map[[sha256.Size]byte]struct{}
	turned   time.Time
}

// used notes the credential and reports whether it was noted before.
// Each is remembered for keep/2 at least.
func (c *replayCache) used(credential string, now time.Time, keep time.Duration) bool {
	key := sha256.Sum256([]byte(credential))
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.now == nil || now.Sub(c.turned) > keep/2 {
		c.old, c.now, c.turned = c.now, make(map[[sha256.Size]byte]struct{}), now
	}
	_, inNow := c.now[key]
	_, inOld := c.old[key]
	c.now[key] = struct{}{}
	return inNow || inOld
}
