package main

import (
	"context"
	"net"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sirupsen/logrus"
	"github.com/spf13/cobra"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/api/reach"
	"github.com/evoslurm/evoslurm/adapter/internal/config"
	"github.com/evoslurm/evoslurm/adapter/internal/version"
	"github.com/evoslurm/evoslurm/adapter/sidecar/controller"
	"github.com/evoslurm/evoslurm/adapter/sidecar/keeper"
	"github.com/evoslurm/evoslurm/adapter/sidecar/store"
	"github.com/evoslurm/evoslurm/adapter/sidecar/systemd"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// turn is this sidecar's right to act where there is another on a second host; nil where there is none.
type turn struct {
	keeper *keeper.Keeper
	lost   chan error
	stop   context.CancelFunc
	loop   atomic.Pointer[controller.Controller] // must run for the lease to be renewed
}

// waiting holds what a sidecar needs while it waits for its turn.
type waiting struct {
	cmd     *cobra.Command
	hup     <-chan os.Signal
	slurm   *slurmctl.Client
	sockets map[string][]net.Listener
	log     *logrus.Logger
	service *systemd.Service
}

// await waits until this sidecar may act, and follows the one that acts meanwhile. Clients that reach it on a socket
// of systemd's then are turned away, to the other. It returns the configuration as last read.
func (w waiting) await(ctx context.Context, cfg config.Config) (*turn, config.Config, error) {
	if cfg.Observes() {
		return nil, cfg, nil
	}
	if cfg.Takeover == 0 {
		return nil, cfg, keeper.Others(ctx, w.slurm)
	}
	client, err := reach.Client(cfg)
	if err != nil {
		return nil, cfg, err
	}
	host, err := os.Hostname()
	if err != nil {
		return nil, cfg, err
	}
	host, _, _ = strings.Cut(host, ".")
	t := &turn{keeper: keeper.New(w.slurm, cfg.Takeover, w.log), lost: make(chan error, 1)}
	follower := &keeper.Follower{Client: client, Database: cfg.Database, Host: host, Version: version.Of(linked), Log: w.log}
	following, stop := context.WithCancel(ctx)
	var beside sync.WaitGroup
	beside.Go(func() { follower.Run(following) })
	fresh := cfg
	beside.Go(func() { fresh = w.reread(following, cfg) })
	beside.Go(func() { _ = certificates(cfg).watch(following, w.log) })
	open := turnAway(w.sockets)
	err = t.keeper.Acquire(ctx, func() {
		w.service.Alive(true, func() string { return "waiting for the lease; a sidecar on another host acts" })
	})
	open()
	stop()
	if err == nil {
		var keep context.Context
		keep, t.stop = context.WithCancel(context.WithoutCancel(ctx))
		go func() {
			t.lost <- t.keeper.Keep(keep, t.alive)
			close(t.lost)
		}()
	}
	beside.Wait()
	return t, fresh, err
}

// reread reads the configuration again at every SIGHUP until ctx ends. Another database or takeover is ignored.
func (w waiting) reread(ctx context.Context, cfg config.Config) config.Config {
	for {
		select {
		case <-ctx.Done():
			return cfg
		case <-w.hup:
			done := w.service.Reload()
			readAgain(w.cmd, w.log, func(fresh config.Config) error {
				fresh.Database, fresh.Takeover = cfg.Database, cfg.Takeover
				cfg = fresh
				return nil
			})
			done()
		}
	}
}

// turnAway closes connections until the returned function is called.
func turnAway(sockets map[string][]net.Listener) (end func()) {
	var all sync.WaitGroup
	var ends []func(time.Time) error
	for _, listeners := range sockets {
		for _, l := range listeners {
			if tcp, is := l.(*net.TCPListener); is {
				ends = append(ends, tcp.SetDeadline)
				all.Go(func() {
					for {
						conn, err := tcp.Accept()
						if err != nil {
							return
						}
						conn.Close()
					}
				})
			}
		}
	}
	return func() {
		for _, end := range ends {
			_ = end(time.Unix(1, 0))
		}
		all.Wait()
		for _, end := range ends {
			_ = end(time.Time{})
		}
	}
}

// alive reports whether the sidecar's loop runs, once there is one.
func (t *turn) alive(ctx context.Context) bool {
	loop := t.loop.Load()
	return loop == nil || loop.Alive(ctx)
}

// begin prepares the database for the controller.
func (t *turn) begin(ctx context.Context, cfg config.Config, st *store.Store, slurm *slurmctl.Client) error {
	if t == nil {
		return nil
	}
	slurm.Fence = t.keeper.Fence
	return keeper.Apply(ctx, st, cfg.Database)
}

// serve has the controller and the API know of the lease.
func (t *turn) serve(ctl *controller.Controller, server *api.Server) {
	if t != nil {
		ctl.Shared(t.keeper.Since)
		server.Acts, server.Ship = t.keeper.Acts, ctl.Ship
		t.loop.Store(ctl)
	}
}

// watch returns once the right to act is lost, or ctx ends.
func (t *turn) watch(ctx context.Context) error {
	if t == nil {
		return nil
	}
	select {
	case err := <-t.lost:
		return err
	case <-ctx.Done():
		return nil
	}
}

// end lets the other sidecar act at once, if this one still may.
func (t *turn) end(log *logrus.Logger) {
	if t == nil || t.stop == nil {
		return
	}
	t.stop()
	for range t.lost { // until Keep has ended
	}
	if t.keeper.Acts() == nil {
		ctx, done := context.WithTimeout(context.Background(), 5*time.Second)
		defer done()
		t.keeper.GiveUp(ctx)
		log.Info("the lease is given up: a sidecar on another host may act now")
	}
}
