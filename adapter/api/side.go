package api

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"time"
)

// sideConnections is how many connections a side server has at once, shared by address.
const sideConnections = 128

// Side is a server besides the API, on its own address.
type Side struct {
	port      Port
	listeners []net.Listener
	server    http.Server
}

// ListenSide opens the port, or leaves it to Serve if another process has it. An answer takes at
// most answer.
func ListenSide(port Port, h http.Handler, answer time.Duration) (*Side, error) {
	s := &Side{port: port, server: http.Server{Handler: h, ReadHeaderTimeout: headTimeout, ReadTimeout: 5 * time.Second, WriteTimeout: answer,
		IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeader, ConnState: stateOf}}
	var err error
	s.listeners, err = port.open()
	return s, err
}

// Addr returns the address; nil if it does not listen, or not yet.
func (s *Side) Addr() net.Addr {
	if len(s.listeners) == 0 {
		return nil
	}
	return s.listeners[0].Addr()
}

// Serve answers until ctx is done.
func (s *Side) Serve(ctx context.Context) error {
	listeners := s.listeners
	if len(listeners) == 0 {
		if s.port.Address == "" {
			return nil
		}
		l := s.port.await(ctx)
		if l == nil {
			return nil
		}
		listeners = []net.Listener{l}
	}
	stop := context.AfterFunc(ctx, func() { s.server.Close() })
	defer stop()
	ended := make(chan error, len(listeners))
	for _, l := range listeners {
		g := limit(l, sideConnections, nil)
		g.share = g.most // all may come from one proxy
		var l net.Listener = g
		if s.port.TLS != nil {
			l = tls.NewListener(l, s.port.TLS)
		}
		go func() { ended <- s.server.Serve(l) }()
	}
	if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
