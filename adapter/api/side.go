package api

import (
	"context"
	"errors"
	"net"
	"net/http"
	"time"
)

// sideConnections is how many connections a side server has at once, shared by address.
const sideConnections = 128

// Side is a server beside the API, on an address of its own.
type Side struct {
	listener net.Listener // nil: nowhere
	server   http.Server
}

// ListenSide opens the address; "" is nowhere. An answer takes as long as answer at the most.
func ListenSide(address string, h http.Handler, answer time.Duration) (*Side, error) {
	s := &Side{server: http.Server{Handler: h, ReadHeaderTimeout: headTimeout, ReadTimeout: 5 * time.Second, WriteTimeout: answer,
		IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeader, ConnState: stateOf}}
	if address == "" {
		return s, nil
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, err
	}
	g := limit(l, sideConnections, nil)
	g.share = g.most // all may come from one proxy
	s.listener = g
	return s, nil
}

// Addr is where it listens; nil: nowhere.
func (s *Side) Addr() net.Addr {
	if s.listener == nil {
		return nil
	}
	return s.listener.Addr()
}

// Serve answers until ctx is done.
func (s *Side) Serve(ctx context.Context) error {
	if s.listener == nil {
		return nil
	}
	stop := context.AfterFunc(ctx, func() { s.server.Close() })
	defer stop()
	if err := s.server.Serve(s.listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
