package api

import (
	"context"
	"errors"
	"net"
	"net/http"
	"os/user"
	"strconv"
	"strings"
	"syscall"
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

// peerOf asks the kernel for the user at the other end; for a server's socket, this is the
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

// holder has connections: a user, or an address from which an unknown user calls by TCP.
type holder struct {
	known   bool
	uid     uint32
	address string
}

// callerOf returns the holder of a request's connection, as far as it is known before
// authentication.
func callerOf(r *http.Request) holder {
	if p, ok := r.Context().Value(peerKey{}).(peer); ok && p.err == nil {
		return holder{known: true, uid: p.uid}
	}
	host := r.RemoteAddr
	if i := strings.LastIndexByte(host, ':'); i >= 0 {
		host = host[:i]
	}
	return holder{address: host}
}

func hostOf(c net.Conn) string {
	host, _, err := net.SplitHostPort(c.RemoteAddr().String())
	if err != nil {
		return c.RemoteAddr().String()
	}
	return host
}

// userName returns the caller in the event log.
func userName(uid uint32) string {
	id := strconv.FormatUint(uint64(uid), 10)
	if u, err := user.LookupId(id); err == nil {
		return u.Username
	}
	return id
}
