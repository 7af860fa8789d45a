package e2e_test

import (
	"context"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/slurmctl/slurmtest"
)

// TestSlowConnections: 1,000 connections are opened again and again, half of them silent,
// half slow, half by TCP and half on the Unix socket, to a sidecar that may have 1,024
// files open. Jobs are planned and grow.
func TestSlowConnections(t *testing.T) {
	t.Parallel()
	s := newSite(t, slurmtest.Options{Accounting: true, PermitJobExpansion: true}, nil)
	s.stop(syscall.SIGKILL)
	s.limits = []string{"--nofile=1024"}
	s.start()
	s.eventually("the sidecar serves", func() bool {
		conn, err := net.Dial("tcp", s.Address)
		if err == nil {
			conn.Close()
		}
		return err == nil
	})
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	var open atomic.Int64
	for i := range 500 {
		for _, to := range [][2]string{{"tcp", s.Address}, {"unix", s.Dir + "/run/api.sock"}} {
			all.Go(func() {
				for ctx.Err() == nil { // the sidecar hangs up after a while
					bother(ctx, to[0], to[1], i%2 == 0, &open)
					time.Sleep(10 * time.Millisecond) // others of these have its place now
				}
			})
		}
	}
	defer all.Wait()
	defer cancel()
	const many = 400 // there may be 768, an address has a quarter at most
	s.eventually("connections beyond number", func() bool { return open.Load() > many })
	if got := messages(s.output(s.submit(s.script("evolve.sh", evolve)))); !slices.Equal(got, evolved) {
		t.Errorf("the job printed\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(evolved, "\n"))
	}
	s.eventually("as many connections at the end", func() bool { return open.Load() > many })
}

// bother holds one connection until the other end has enough of it.
func bother(ctx context.Context, network, address string, silent bool, open *atomic.Int64) {
	dialer := net.Dialer{Timeout: 20 * time.Second}
	conn, err := dialer.DialContext(ctx, network, address)
	if err != nil {
		select {
		case <-ctx.Done():
		case <-time.After(100 * time.Millisecond): // its queue is full
		}
		return
	}
	open.Add(1)
	defer open.Add(-1)
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	text := "GET /v1/status HTTP/1.1\r\nHost: x\r\nX-Slow: " + strings.Repeat("x", 1000)
	for !silent && text != "" {
		if _, err := conn.Write([]byte(text[:1])); err != nil {
			return
		}
		text = text[1:]
		time.Sleep(300 * time.Millisecond)
	}
	conn.Read(make([]byte, 1))
}
