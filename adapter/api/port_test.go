package api

import (
	"net"
	"os/user"
	"strings"
	"testing"
	"time"
)

// TestAddressTaken checks that a server whose TCP address is taken serves its socket, says who has
// the address, and takes it once it is free.
func TestAddressTaken(t *testing.T) {
	other, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	r := serve(t, newBackend(0), func(s *Server) { s.TCP = other.Addr().String() })
	if _, err := client(t, r.unix).Job(t.Context(), 12); err != nil {
		t.Errorf("on the socket: %v", err)
	}
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	if log := r.log.String(); r.tcp != "" || !strings.Contains(log, "address is taken") || !strings.Contains(log, "holder="+me.Username) {
		t.Errorf("listens at %q; log: %s", r.tcp, log)
	}
	began := time.Now().Unix()
	other.Close()
	c := client(t, other.Addr().String())
	if _, err := c.Job(t.Context(), 12); err != nil { // it waits
		t.Error(err)
	}
	if since := r.since.Load(); since == nil || since.Unix() < began {
		t.Error("credentials that were made for the other process are good here")
	}
	if log := r.log.String(); !strings.Contains(log, "address is free") {
		t.Errorf("log: %s", log)
	}
}

// TestStopsWhileTaken checks that a server that waits for its address stops when asked.
func TestStopsWhileTaken(t *testing.T) {
	other, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	serve(t, newBackend(0), func(s *Server) { s.Socket, s.TCP = "", other.Addr().String() }).stop()
	side, err := ListenSide(Port{Address: other.Addr().String(), Log: serve(t, newBackend(0), nil).Log}, nil, time.Second, "")
	if err != nil || side.Addr() != nil {
		t.Fatalf("%v, %v", side.Addr(), err)
	}
	other.Close()
	done := make(chan error, 1)
	go func() { done <- side.Serve(t.Context()) }()
	for end := time.Now().Add(longest); ; time.Sleep(10 * time.Millisecond) { // it is there at last
		c, err := net.Dial("tcp", other.Addr().String())
		if err == nil {
			c.Close()
			break
		}
		if time.Now().After(end) || len(done) > 0 {
			t.Fatalf("nobody serves the port once it is free: %v", err)
		}
	}
}

// TestOpenedBySystemd checks that an inherited listener is served, and no other is opened.
func TestOpenedBySystemd(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := serve(t, newBackend(0), func(s *Server) { s.Opened, s.TCP = []net.Listener{l}, l.Addr().String() })
	if r.tcp != l.Addr().String() {
		t.Fatalf("listens at %q", r.tcp)
	}
	if _, err := client(t, r.tcp).Job(t.Context(), 12); err != nil {
		t.Error(err)
	}
	if r.since.Load() != nil {
		t.Error("clients that connected while the sidecar was away are refused, though the port was its own")
	}
	tokens := &Server{Log: r.Log, Opened: []net.Listener{l}, Tokens: &Keys{}} // no munged remembers what the sidecar before has answered
	if err := tokens.Listen(); err != nil || tokens.since.Load() == nil {
		t.Errorf("requests by token that were made before the start are accepted (%v)", err)
	}
}

func TestListening(t *testing.T) {
	table := []byte(`  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 00000000:0155 00000000:0000 0A 00000000:00000000 00:00000000 00000000  4294967294        0 1 1
   1: 0100007F:0155 0100007F:9999 01 00000000:00000000 00:00000000 00000000     7        0 1 1
   2: 0100007F:0156 00000000:0000 0A 00000000:00000000 00:00000000 00000000     8        0 1 1
   3: broken
`)
	if got := strings.Join(listening(table, 341), " "); got != "4294967294" {
		t.Errorf("got %q", got)
	}
}
