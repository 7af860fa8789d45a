package api

import (
	"context"
	"errors"
	"os"
	"sync/atomic"
	"testing"
	"time"
)

// TestSecondServer: a client uses the second address while the first does not answer, or may not act, and a call that
// waits goes on there.
func TestSecondServer(t *testing.T) {
	uid := uint32(os.Geteuid())
	var lapsed atomic.Bool
	first, second := newBackend(uid), newBackend(uid)
	a := serve(t, first, func(s *Server) {
		s.Acts = func() error {
			if lapsed.Load() {
				return errors.New("another acts")
			}
			return nil
		}
	})
	b := serve(t, second, nil)
	c := client(t, "unix:///run/evoslurm-none.sock,"+a.tcp+","+b.tcp)
	ctx, done := context.WithTimeout(t.Context(), time.Minute)
	defer done()
	c.Waiting = func(address string, err error) { t.Errorf("waits for %s: %v", address, err) }
	if s, err := c.Status(ctx); err != nil || s.Version != "v" || c.Address() != a.tcp {
		t.Fatalf("%+v at %s: %v", s, c.Address(), err)
	}
	c.Waiting = nil
	answered := make(chan error, 1)
	go func() {
		got, err := c.Next(ctx, 12, NextRequest{From: 1})
		if err == nil && !got.Ready {
			err = errors.New("not ready")
		}
		answered <- err
	}()
	await(t, 1, first.waiting, answered)
	lapsed.Store(true)
	a.stop() // answers what waits, and refuses what comes
	close(second.ready)
	if err := <-answered; err != nil || c.Address() != b.tcp {
		t.Errorf("a call that waited ended at %s: %v", c.Address(), err)
	}
}

// lapsing is a backend that loses the right to act while it answers.
type lapsing struct {
	*fakeBackend
	lapsed atomic.Bool
}

func (b *lapsing) acts() error {
	if b.lapsed.Load() {
		return errors.New("another may act")
	}
	return nil
}

func (b *lapsing) Allocation(ctx context.Context, id uint32) (Allocation, error) {
	defer b.lapsed.Store(true)
	return b.fakeBackend.Allocation(ctx, id)
}

func (b *lapsing) Job(ctx context.Context, id uint32) (Job, error) {
	defer b.lapsed.Store(true)
	return b.fakeBackend.Job(ctx, id)
}

func (b *lapsing) Next(ctx context.Context, id uint32, req NextRequest) (Allocation, error) {
	defer b.lapsed.Store(true)
	return b.fakeBackend.Next(ctx, id, req)
}

// TestNotActing: a sidecar without the right to act answers nothing about a job that the job could go by, even if it
// lost the right while it answered, as one that was stopped does. What people look at is answered.
func TestNotActing(t *testing.T) {
	b := &lapsing{fakeBackend: newBackend(0)}
	close(b.ready)
	hc := unixClient(serve(t, b, func(s *Server) { s.Acts = b.acts }).unix)
	for _, c := range []struct {
		method, path, body string
		want               int
	}{
		{"GET", "/v1/jobs/12/allocation", "", 503},
		{"GET", "/v1/jobs/12", "", 503},
		{"GET", "/v1/jobs/14", "", 503}, // not that it knows no such job
		{"POST", "/v1/jobs/12/next", nextBody, 503},
		{"GET", "/v1/jobs", "", 200},
		{"GET", "/v1/status", "", 200},
	} {
		for _, already := range []bool{false, true} {
			b.lapsed.Store(already)
			if got, text := send(t, hc, c.method, "http://x"+c.path, "", c.body); got != c.want {
				t.Errorf("%s %s, lapsed before: %v: %d %s", c.method, c.path, already, got, text)
			}
		}
	}
}

// TestShip: only root and the sidecar's own account may copy the database, not even operators.
func TestShip(t *testing.T) {
	r := serve(t, newBackend(0), func(s *Server) {
		s.Operator = func(uint32) bool { return true }
		s.Ship = func(_ context.Context, r ShipRequest) (Shipment, error) {
			return Shipment{Copy: r.Copy + 1, Piece: []byte{0, 1, 255}}, nil
		}
	})
	s, err := client(t, r.unix).Ship(t.Context(), ShipRequest{Copy: 6})
	if err != nil || s.Copy != 7 || string(s.Piece) != "\x00\x01\xff" {
		t.Errorf("root: %+v, %v", s, err)
	}
	if os.Geteuid() == 0 {
		if status, text := send(t, unixAs(65534, r.unix), "POST", "http://sidecar/v1/ship", "", `{"copy":-1}`); status != 403 {
			t.Errorf("another user: %d %s", status, text)
		}
	}
	other := serve(t, newBackend(0), nil)
	if _, err := client(t, other.unix).Ship(t.Context(), ShipRequest{}); !errors.Is(err, ErrConflict) {
		t.Errorf("a sidecar without a second one: %v", err)
	}
}
