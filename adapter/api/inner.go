package api

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"sync"

	"github.com/sirupsen/logrus"
)

// A Doorman hands requests on by HTTP/2 on one connection, so that callers take no files of the sidecar. It says in headers
// what the sidecar would know of a connection of its own. Callers cannot set them: the Doorman hands on a few headers only.
const (
	fromHeader   = "Evoslurm-From"   // the caller's address
	atHeader     = "Evoslurm-At"     // the address at which the caller reached the Doorman
	secureHeader = "Evoslurm-Secure" // "1": by TLS
	callerHeader = "Evoslurm-Caller" // of an answer: the uid that was proved, and whether the reserve is for it
	reserved     = "reserve"

	mostStreams = 2 * maxConnections
)

// server returns what answers a Doorman, which the sidecar does not trust: it may be in the hands of a caller.
func (s *Side) server() *http.Server {
	var p http.Protocols
	p.SetUnencryptedHTTP2(true)
	return &http.Server{Handler: s.inner(s.handler), Protocols: &p, MaxHeaderBytes: 2 * maxHeader, WriteTimeout: s.setup.Answer, ErrorLog: quietLog(s.log()),
		HTTP2: &http.HTTP2Config{MaxConcurrentStreams: mostStreams}}
}

func (s *Side) log() logrus.FieldLogger {
	if s.port.Log != nil {
		return s.port.Log
	}
	return logrus.StandardLogger()
}

// inner restores what a Doorman says of a request's connection. An address that is not the port's own is refused: requests
// that were made for a server elsewhere are of no use here.
func (s *Side) inner(h http.Handler) http.Handler {
	var own owned
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		from, err := netip.ParseAddrPort(r.Header.Get(fromHeader))
		at, e := netip.ParseAddrPort(r.Header.Get(atHeader))
		if err != nil || e != nil || !own.has(s.listeners, at) {
			s.log().WithFields(logrus.Fields{"from": r.Header.Get(fromHeader), "at": r.Header.Get(atHeader)}).Error("refused what the process that serves an address handed on: its addresses are wrong")
			http.Error(w, "no such address", http.StatusBadRequest)
			return
		}
		ctx := context.WithValue(r.Context(), http.LocalAddrContextKey, net.TCPAddrFromAddrPort(at))
		r = r.WithContext(context.WithValue(ctx, connKey{}, &hint{w, s.setup.trusted}))
		r.RemoteAddr, r.TLS = from.String(), nil
		if r.Header.Get(secureHeader) != "" {
			r.TLS = &tls.ConnectionState{HandshakeComplete: true}
		}
		for _, name := range []string{fromHeader, atHeader, secureHeader} {
			r.Header.Del(name)
		}
		h.ServeHTTP(w, r)
	})
}

// hint tells the Doorman whose connection it is, before the answer.
type hint struct {
	w       http.ResponseWriter
	trusted func(uid uint32) bool
}

func (h *hint) claim(uid uint32) bool {
	text := strconv.FormatUint(uint64(uid), 10)
	if h.trusted != nil && h.trusted(uid) {
		text += " " + reserved
	}
	h.w.Header().Set(callerHeader, text)
	h.w.WriteHeader(http.StatusEarlyHints)
	h.w.Header().Del(callerHeader)
	return true
}

// parseHint reads what hint has sent.
func parseHint(text string) (uid uint32, trusted bool, err error) {
	number, more, _ := strings.Cut(text, " ")
	n, err := strconv.ParseUint(number, 10, 32)
	return uint32(n), more == reserved, err
}

// owned remembers which addresses are this machine's.
type owned struct {
	mu sync.Mutex
	of map[netip.Addr]bool
}

// has reports whether a connection to one of the listeners can have this local address.
func (o *owned) has(listeners []net.Listener, at netip.AddrPort) bool {
	for _, l := range listeners {
		a, err := netip.ParseAddrPort(l.Addr().String())
		switch {
		case err != nil || a.Port() != at.Port():
		case a.Addr().Unmap() == at.Addr().Unmap(), a.Addr().IsUnspecified() && o.local(at.Addr().WithZone("")):
			return true
		}
	}
	return false
}

// local reports whether an IP address is this machine's: only such a one can be bound.
func (o *owned) local(ip netip.Addr) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.of[ip] || ip.IsLoopback() {
		return true
	}
	l, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.AddrPortFrom(ip, 0)))
	if err != nil {
		return ip.Is6() && ip.IsLinkLocalUnicast() // which cannot be bound without its interface
	}
	l.Close()
	if o.of == nil || len(o.of) >= most {
		o.of = map[netip.Addr]bool{}
	}
	o.of[ip] = true
	return true
}
