package api

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"
)

// strangers returns two users without rights; if the tests do not run as root, both are the only
// user.
func strangers() (int, int) {
	if me := os.Geteuid(); me != 0 {
		return me, me
	}
	return nobody, nobody - 1
}

// ask sends one request on a connection and returns the status of the answer, 0 if there is none.
func ask(t *testing.T, c net.Conn) int {
	t.Helper()
	c.SetDeadline(time.Now().Add(time.Minute))
	if _, err := io.WriteString(c, "GET /v1/status HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
		return 0
	}
	res, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		return 0
	}
	defer res.Body.Close()
	io.Copy(io.Discard, res.Body)
	return res.StatusCode
}

// TestIdleConnectionsDenyNobody checks that a user, or an address, may open too many connections
// and send nothing, or send once and keep them. Root, an operator, and another user are still
// served.
func TestIdleConnectionsDenyNobody(t *testing.T) {
	attacker, other := strangers()
	for _, spoke := range []bool{false, true} {
		r := serve(t, newBackend(0), func(s *Server) { s.most, s.Operator = 32, func(uid uint32) bool { return uid == 4242 } })
		path := strings.TrimPrefix(r.unix, unixPrefix)
		hold := func(c net.Conn) {
			t.Cleanup(func() { c.Close() })
			if spoke {
				ask(t, c)
			}
		}
		for range 100 {
			hold(dialAs(t, attacker, path))
			c, err := net.Dial("tcp", r.tcp)
			if err != nil {
				t.Fatal(err)
			}
			hold(c)
		}
		for name, uid := range map[string]int{"root": os.Geteuid(), "operator": 4242, "user": other} {
			if os.Geteuid() != 0 {
				uid = os.Geteuid()
			}
			if status := ask(t, dialAs(t, uid, path)); status != http.StatusOK {
				t.Errorf("they spoke: %v; %s gets status %d, want 200", spoke, name, status)
			}
		}
		from := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}
		for name, dial := range map[string]func() (net.Conn, error){
			"another address":  func() (net.Conn, error) { return from.DialContext(t.Context(), "tcp", r.tcp) },
			"the same address": func() (net.Conn, error) { return net.Dial("tcp", r.tcp) },
		} {
			c, err := dial()
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			if status := ask(t, c); status != http.StatusOK {
				t.Errorf("they spoke: %v; a caller from %s gets status %d, want 200", spoke, name, status)
			}
		}
	}
}

// waitingConn is a connection of a gate that is never read.
type waitingConn struct {
	net.Conn
	closed bool
}

func (c *waitingConn) Close() error { c.closed = true; return nil }

// TestGate: who gives way to whom.
func TestGate(t *testing.T) {
	g := limit(nil, 16, func(uid uint32) bool { return uid == 0 })
	user := func(uid uint32) holder { return holder{known: true, uid: uid} }
	open := func(who holder, busy bool) (s, leaves *slotted, ok bool) {
		s = &slotted{Conn: &waitingConn{}, gate: g, holder: who}
		if leaves, ok = g.admit(s); ok && busy {
			stateOf(s, http.StateActive)
		}
		return s, leaves, ok
	}
	var first *slotted
	for i := range 8 {
		s, leaves, ok := open(user(1), i > 0)
		if leaves != nil || !ok {
			t.Fatalf("connection %d of a user: %v, %v", i+1, leaves, ok)
		}
		if i == 0 {
			first = s
		}
	}
	if _, leaves, ok := open(user(1), true); leaves != first || !ok {
		t.Errorf("beyond its share a user's silent connection gives way: %v, %v", leaves, ok)
	}
	if _, leaves, ok := open(user(1), true); leaves != nil || ok {
		t.Errorf("beyond its share, all busy: %v, %v; want it closed", leaves, ok)
	}
	for i := range 6 {
		if _, leaves, ok := open(holder{address: fmt.Sprint(i)}, true); leaves != nil || !ok {
			t.Fatalf("address %d: %v, %v", i, leaves, ok)
		}
	}
	if g.open != 14 {
		t.Fatalf("%d connections, want 14: the rest is for root", g.open)
	}
	if _, leaves, ok := open(user(2), true); leaves == nil || leaves.holder != user(1) || !ok {
		t.Errorf("all is taken: %v, %v; want one of the user with the most to leave", leaves, ok)
	}
	for range 2 {
		if _, leaves, ok := open(user(0), true); leaves != nil || !ok {
			t.Errorf("root has its reserve: %v, %v", leaves, ok)
		}
	}
	if _, leaves, ok := open(user(0), true); leaves == nil || leaves.holder != user(1) || !ok {
		t.Errorf("beyond the reserve: %v, %v; want one of the user with the most to leave", leaves, ok)
	}
	for who, h := range g.holders {
		for h.count() > 0 {
			s := h.oldest(busy)
			s.Close()
			s.Close() // gives no second slot
		}
		if g.holders[who] != nil {
			t.Errorf("%v is remembered", who)
		}
	}
	if g.open != 0 {
		t.Errorf("%d connections are left", g.open)
	}
}

// TestClaim checks that a TCP connection counts for the user who has proved to call through it.
func TestClaim(t *testing.T) {
	g := limit(nil, 8, nil)
	user := holder{known: true, uid: 1}
	for i := range 5 {
		s := &slotted{Conn: &waitingConn{}, gate: g, holder: holder{address: "a"}}
		if _, ok := g.admit(s); !ok {
			t.Fatalf("connection %d is refused", i+1)
		}
		if ok, want := s.claim(1), i < 4; ok != want {
			t.Errorf("claim %d: %v, want %v", i+1, ok, want)
		}
		if ok, want := s.claim(1), i < 4; ok != want {
			t.Errorf("claim %d again: %v, want %v", i+1, ok, want)
		}
	}
	if g.holders[user].count() != 4 || g.holders[holder{address: "a"}].count() != 1 || g.open != 5 {
		t.Errorf("%d of the user, %d of the address, %d in all", g.holders[user].count(), g.holders[holder{address: "a"}].count(), g.open)
	}
}

// TestStateUnderTLS checks that a connection counts as busy, and then as kept, under TLS as without.
func TestStateUnderTLS(t *testing.T) {
	g := limit(nil, 16, nil)
	s := &slotted{Conn: &waitingConn{}, gate: g, holder: holder{address: "a"}}
	g.admit(s)
	for state, want := range map[http.ConnState]int{http.StateActive: busy, http.StateIdle: kept} {
		stateOf(tls.Server(s, nil), state)
		if of := g.holders[s.holder]; of[want].Len() != 1 {
			t.Errorf("%v: the connection is not counted so", state)
		}
	}
}
