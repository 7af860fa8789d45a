package metrics

import (
	"context"
	"errors"
	"net"
	"net/http"
	"time"

	"github.com/evoslurm/evoslurm/adapter/api"
)

// Server serves metrics and health on an address of their own, to all who reach it.
type Server struct {
	listener net.Listener // nil: nowhere
	server   http.Server
}

// Listen opens the address; "" is nowhere.
func Listen(address string, metrics http.Handler, ready func() error) (*Server, error) {
	s := &Server{}
	if address == "" {
		return s, nil
	}
	mux := http.NewServeMux()
	mux.Handle("/metrics", metrics)
	api.Health(mux, ready)
	s.server = http.Server{Handler: mux, ReadTimeout: 5 * time.Second, WriteTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 16 << 10}
	var err error
	s.listener, err = net.Listen("tcp", address)
	return s, err
}

// Serve answers until ctx is done.
func (s *Server) Serve(ctx context.Context) error {
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
