package api

import (
	"container/list"
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"sync"
	"syscall"
)

// Connections are bounded: a sidecar without files left cannot run commands, and plans
// nothing.
const (
	maxConnections = 4096 // per listener, if the process may have that many files
	keptFiles      = 256  // that are no connections

	reservePart = 8 // one connection in this many is reserved for root and operators
	sharePart   = 2 // a user, or an address, gets at most one in this many
	calmPart    = 2 // beyond one in this many, kept connections give way to new ones
)

// connections returns how many connections each of that many listeners may have at once.
func connections(listeners int) int {
	var files syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files); err != nil {
		return keptFiles
	}
	most := max(files.Cur/2, 32)
	if files.Cur > 2*keptFiles {
		most = files.Cur - keptFiles
	}
	return int(min(most/uint64(listeners), maxConnections))
}

// gate is a listener that shares a bounded number of connections among their holders. A new
// connection beyond a bound replaces an older one, or is closed:
//
//	its holder has its share      of one of its holder on which nothing is being asked
//	the listener has no more      of one of the holder with the most, if the new one's has fewer
//	the listener is half full     of a kept one of the holder with the most, if there is one
//
// So nobody waits for others' connections, and who has few of them is always served.
type gate struct {
	net.Listener
	most    int
	share   int                   // of a holder
	trusted func(uid uint32) bool // who may have the reserve, too; nil: no user

	mu      sync.Mutex
	open    int
	holders map[holder]*connectionsOf
}

// How far a connection has come.
const (
	kept  = iota // all that was asked was answered
	fresh        // nothing was asked yet
	busy         // something is being asked, or answered
)

// connectionsOf has the connections of a holder by how far they have come, oldest first.
type connectionsOf [busy + 1]list.List

func (h *connectionsOf) count() int { return h[kept].Len() + h[fresh].Len() + h[busy].Len() }

// oldest returns the connection that gives way first, of those that have come no further than
// some; nil: there is none.
func (h *connectionsOf) oldest(furthest int) *slotted {
	for i := range furthest + 1 {
		if e := h[i].Front(); e != nil {
			return e.Value.(*slotted)
		}
	}
	return nil
}

func limit(l net.Listener, most int, trusted func(uid uint32) bool) *gate {
	return &gate{Listener: l, most: most, share: max(most/sharePart, 1), trusted: trusted, holders: map[holder]*connectionsOf{}}
}

// Accept returns the next connection that may stay.
func (g *gate) Accept() (net.Conn, error) {
	for {
		c, err := g.Listener.Accept()
		if err != nil {
			return nil, err
		}
		s := &slotted{Conn: c, gate: g, holder: holder{address: hostOf(c)}}
		if u, ok := c.(*net.UnixConn); ok {
			if p := peerOf(u); p.err == nil {
				s.holder = holder{known: true, uid: p.uid}
			}
		}
		leaves, ok := g.admit(s)
		if leaves != nil {
			leaves.Conn.Close() // net/http finds out, and closes the whole
		}
		if ok {
			return s, nil
		}
		c.Close()
	}
}

// admit decides on a new connection, and which other one leaves for it.
func (g *gate) admit(s *slotted) (leaves *slotted, ok bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	its, most := 0, g.most-g.most/reservePart
	if h := g.holders[s.holder]; h != nil {
		its = h.count()
	}
	privileged := s.holder.known && g.trusted != nil && g.trusted(s.holder.uid)
	if privileged {
		most = g.most
	}
	switch heaviest := g.heaviest(); {
	case its >= g.share && !privileged:
		leaves = g.holders[s.holder].oldest(fresh)
		ok = leaves != nil
	case g.open < g.most/calmPart:
		ok = true
	case g.open < most:
		leaves, ok = g.holders[heaviest].oldest(kept), true
	case g.holders[heaviest].count() > its+1:
		leaves, ok = g.holders[heaviest].oldest(busy), true
	case its > 0:
		leaves = g.holders[s.holder].oldest(fresh)
		ok = leaves != nil
	}
	if leaves != nil {
		g.remove(leaves)
	}
	if ok {
		g.put(s, fresh)
	}
	return leaves, ok
}

// heaviest returns the holder with the most connections.
func (g *gate) heaviest() (most holder) {
	n := 0
	for who, h := range g.holders {
		if h.count() > n {
			most, n = who, h.count()
		}
	}
	return most
}

// put gives a connection a slot.
func (g *gate) put(s *slotted, state int) {
	h := g.holders[s.holder]
	if h == nil {
		h = &connectionsOf{}
		g.holders[s.holder] = h
	}
	s.in = &h[state]
	s.at = s.in.PushBack(s)
	g.open++
}

// remove takes a connection's slot, if it still has one.
func (g *gate) remove(s *slotted) {
	if s.in == nil {
		return
	}
	s.in.Remove(s.at)
	s.in, s.at = nil, nil
	if g.holders[s.holder].count() == 0 {
		delete(g.holders, s.holder)
	}
	g.open--
}

// stateOf records how far a connection has come; it is http.Server.ConnState.
func stateOf(c net.Conn, state http.ConnState) {
	s, ok := inTLS(c).(*slotted)
	if !ok {
		return
	}
	s.gate.mu.Lock()
	defer s.gate.mu.Unlock()
	switch {
	case s.in == nil:
	case state == http.StateActive:
		s.move(busy)
	case state == http.StateIdle:
		s.move(kept)
	}
}

// inTLS returns the connection below TLS.
func inTLS(c net.Conn) net.Conn {
	if t, ok := c.(*tls.Conn); ok {
		return t.NetConn()
	}
	return c
}

// move notes how far a connection that has a slot has come.
func (s *slotted) move(state int) {
	s.gate.remove(s)
	s.gate.put(s, state)
}

// slotted is a connection that returns its slot when it is closed.
type slotted struct {
	net.Conn
	gate *gate

	// by gate.mu
	holder holder
	in     *list.List // of its holder; nil: it has no slot any more
	at     *list.Element
}

func (s *slotted) Close() error {
	s.gate.mu.Lock()
	s.gate.remove(s)
	s.gate.mu.Unlock()
	return s.Conn.Close()
}

// CloseWrite is for net/http, which so lets callers read why they were cut off.
func (s *slotted) CloseWrite() error {
	if w, ok := s.Conn.(interface{ CloseWrite() error }); ok {
		return w.CloseWrite()
	}
	return nil
}

// claim assigns an address's connection to the user who has proved to call through it. It returns
// false if the user has used up its share.
func (s *slotted) claim(uid uint32) bool {
	g := s.gate
	g.mu.Lock()
	defer g.mu.Unlock()
	user := holder{known: true, uid: uid}
	if s.in == nil || s.holder == user {
		return true
	}
	if h := g.holders[user]; h != nil && h.count() >= g.share && (g.trusted == nil || !g.trusted(uid)) {
		return false
	}
	g.remove(s)
	s.holder = user
	g.put(s, busy)
	return true
}

type connKey struct{}

// withConn notes the connection of requests, and its peer.
func withConn(ctx context.Context, c net.Conn) context.Context {
	s, ok := inTLS(c).(*slotted)
	if !ok {
		return withPeer(ctx, c)
	}
	return context.WithValue(withPeer(ctx, s.Conn), connKey{}, s)
}

// claimed assigns a request's connection to the calling user.
func claimed(ctx context.Context, uid uint32) error {
	if s, ok := ctx.Value(connKey{}).(interface{ claim(uid uint32) bool }); ok && !s.claim(uid) {
		return Errorf(ErrUnavailable, "uid %d has too many connections: close some, or try again", uid)
	}
	return nil
}
