// Command evoslurmd is the sidecar: it plans evolving jobs and drives Slurm to give and take their
// nodes.
package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/coreos/go-systemd/v22/activation"
	"github.com/sirupsen/logrus"
	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/internal/config"
	"github.com/evoslurm/evoslurm/adapter/internal/version"
	"github.com/evoslurm/evoslurm/adapter/show/web"
	"github.com/evoslurm/evoslurm/adapter/sidecar/controller"
	"github.com/evoslurm/evoslurm/adapter/sidecar/metrics"
	"github.com/evoslurm/evoslurm/adapter/sidecar/store"
	"github.com/evoslurm/evoslurm/adapter/sidecar/systemd"
	"github.com/evoslurm/evoslurm/slurmctl"
)

var linked string // the version, set by the linker (Makefile)

func main() {
	if len(os.Args) > 1 && os.Args[1] == listener {
		if err := serveApart(os.Args[2:]); err != nil {
			fmt.Fprintln(os.Stderr, "evoslurmd: the process that serves an address:", err)
			os.Exit(1)
		}
		return
	}
	if err := command().Execute(); err != nil {
		fmt.Fprintln(os.Stderr, "evoslurmd: error:", err)
		os.Exit(exitStatus(err))
	}
}

func command() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "evoslurmd [--config FILE]",
		Short: "The sidecar that plans evolving jobs and drives Slurm",
		Long: `evoslurmd plans the jobs submitted by evosbatch, and drives a stock Slurm to give and
take their nodes as planned. Run it as root or as SlurmUser, on the host of slurmctld or
any other host with Slurm's commands. It stays in the foreground and logs to standard
error.

Of several instances on one machine that share a database, only one is active; the others
take over when it ends. Of two on different hosts, one is active if both have takeover set.

SIGTERM and SIGINT stop it cleanly: jobs go on, and a new start continues with them. SIGHUP
makes it read its configuration again, also while it waits.`,
		Args:          cobra.NoArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			if only, _ := cmd.Flags().GetBool("check"); only {
				return checkAll(cmd)
			}
			if err := run(cmd, args); err != nil {
				return failure{exitOther, err}
			}
			return nil
		},
	}
	cmd.AddCommand(newDB())
	flags := cmd.Flags()
	config.AddFlag(flags)
	version.Flag(cmd, linked)
	version.Arguments(cmd)
	flags.Bool("check", false, "check configuration and rights, say what the sidecar would do, and do nothing")
	flags.String("log-level", "", "log level: error, warn, info, debug, or trace")
	flags.String("log-format", "", "log format: text or json")
	flags.String("database", "", "path of the sqlite database")
	flags.Bool("mask", false, "with mode: observe, record no names of users, accounts, QOS, and jobs")
	flags.Lookup("mask").Annotations = map[string][]string{config.KeyOf: {"observe.mask"}}
	return cmd
}

func run(cmd *cobra.Command, _ []string) error {
	hup := make(chan os.Signal, 1) // from here on it does not end the process
	signal.Notify(hup, syscall.SIGHUP)
	defer signal.Stop(hup)
	cfg, file, err := config.Load(cmd.Flags())
	if err != nil {
		return failure{exitConfig, err}
	}
	log := logrus.New()
	if err := setUp(log, cfg.Log); err != nil {
		return failure{exitConfig, err}
	}
	systemd.Journal(log)
	service := systemd.New(func(err error) { log.WithError(err).Warn("systemd") })
	log.WithFields(logrus.Fields{"version": version.Of(linked), "config": file, "pid": os.Getpid()}).Info("evoslurmd starts")
	sockets, err := passed() // before anything else is started, which would inherit them
	if err != nil {
		return failure{exitConfig, err}
	}

	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	defer service.Stopping()
	defer context.AfterFunc(ctx, service.Stopping)()
	lease, cfg, err := acquire(ctx, cmd, cfg, hup, log, service)
	if errors.Is(err, context.Canceled) {
		return nil // stopped while it waited
	}
	if err != nil {
		return failure{exitDatabase, err}
	}
	defer lease.Release()
	slurm := &slurmctl.Client{Dir: cfg.Slurm.Bin, Timeout: cfg.Slurm.Timeout, Renewed: func(before, now string) {
		log.WithField("commands", now).WithField("before", before).Info("Slurm's commands are of another version")
	}}
	if log.IsLevelEnabled(logrus.TraceLevel) {
		slurm.Ran = func(r slurmctl.Ran) {
			log.WithFields(logrus.Fields{"args": r.Args, "began": r.Began.Format(time.RFC3339Nano), "seconds": r.Took.Seconds(), "failed": r.Err != nil}).Trace("a command of Slurm")
		}
	}
	w := waiting{cmd: cmd, hup: hup, slurm: slurm, sockets: sockets, log: log, service: service}
	turn, cfg, err := w.await(ctx, cfg)
	defer turn.end(log)
	if errors.Is(err, context.Canceled) {
		return nil
	}
	if err != nil {
		return err
	}
	started := service.During(systemd.StartTime)
	defer started()
	st, err := controller.OpenStore(ctx, cfg.Database, log)
	if err == nil {
		err = turn.begin(ctx, cfg, st, slurm)
	}
	if err != nil {
		return failure{exitDatabase, err}
	}
	defer st.Close()
	ctl, err := controller.New(cfg, slurm, st, log, version.Of(linked))
	if err != nil {
		return err
	}
	ctl.Service = service
	page := web.Page{Base: api.PagePath, Clusters: cfg.Web.Clusters, Reader: func(r *http.Request) (web.Reader, error) { return api.VisitorOf(r) }}
	server := &api.Server{
		Backend: ctl, Log: log, Socket: cfg.Listen.Socket, TCP: cfg.Listen.TCP, Opened: sockets["api"],
		Cluster: ctl.ClusterName, Forwarded: cfg.Listen.Forwarded,
		Munge: api.Munge{Socket: cfg.Munge.Socket}, MaxAge: cfg.Munge.MaxAge,
		Operator: ctl.Operator, Reading: ctl.Reading, Sees: ctl.Sees, Shows: ctl.Shows, HidesNodes: ctl.HidesNodes,
		Ready: ctl.Ready, Views: ctl.Metrics.Handler(),
		Page: page.Handler(),
	}
	turn.serve(ctl, server)
	pairs := certificates(cfg)
	server.Warnings, server.TLS, server.Start = pairs.trouble, pairs["listen"], apart(cfg, log)
	if server.Tokens, err = tokens(cfg, ctl.SlurmUser); err != nil {
		return err
	}
	if err := server.Listen(); err != nil {
		return failure{exitListen, err}
	}
	log.WithField("addresses", server.Addresses()).Info("serving the API")
	measures, err := metrics.Listen(api.Port{Address: cfg.Listen.Metrics, Opened: sockets["metrics"], Start: server.Start, Log: log}, ctl.Metrics.Handler(), ctl.Ready, pairs.trouble)
	if err != nil {
		return failure{exitListen, fmt.Errorf("listen.metrics: %w", err)}
	}

	browsers, err := listenWeb(cfg.Web, sockets["web"], server, pairs, log)
	if err != nil {
		return failure{exitListen, err}
	}

	started()
	all, ctx := errgroup.WithContext(ctx)
	all.Go(func() error { return measures.Serve(ctx) })
	all.Go(func() error { return browsers.Serve(ctx) })
	all.Go(func() error { return server.Serve(ctx) })
	all.Go(func() error {
		if err := ctl.Run(ctx); err != nil {
			return failure{exitDatabase, err}
		}
		return nil
	})
	all.Go(func() error { return pairs.watch(ctx, log) })
	all.Go(func() error { return turn.watch(ctx) })
	all.Go(func() error { return reload(ctx, cmd, ctl, hup, log, service) })
	err = all.Wait()
	if errors.Is(err, context.Canceled) {
		err = nil
	}
	log.Info("evoslurmd stops; jobs go on")
	return err
}

// passed returns the TCP listeners that systemd keeps for the sidecar, by what they are for.
func passed() (map[string][]net.Listener, error) {
	all, err := activation.ListenersWithNames()
	if err != nil {
		return nil, fmt.Errorf("sockets from systemd: %w", err)
	}
	for name, listeners := range all {
		if name != "api" && name != "web" && name != "metrics" {
			return nil, fmt.Errorf("systemd passed the socket %q: set FileDescriptorName to api, web, or metrics", name)
		}
		for _, l := range listeners {
			if l.Addr().Network() != "tcp" {
				return nil, fmt.Errorf("systemd passed %s as socket %q: set ListenStream to a TCP port", l.Addr(), name)
			}
		}
	}
	return all, nil
}

// pageTimeout is for a whole answer: a strategy that is tried may have to start.
const pageTimeout = time.Minute

// listenWeb opens the page's own address, where readers sign in.
func listenWeb(cfg config.Web, sockets []net.Listener, server *api.Server, pairs pairs, log *logrus.Logger) (*api.Side, error) {
	port := api.Port{Address: cfg.Listen, Opened: sockets, Files: pairs["web"], Start: server.Start, Log: log}
	if cfg.Listen == "" && len(sockets) == 0 {
		return api.ListenSide(port, nil, pageTimeout, "")
	}
	tokens := &web.Tokens{File: cfg.Tokens}
	if err := tokens.Check(); err != nil {
		return nil, fmt.Errorf("web.tokens: %w", err)
	}
	page := web.Page{
		Base: cfg.Base, Tokens: tokens, Clusters: cfg.Clusters,
		Reader: func(r *http.Request) (web.Reader, error) {
			_, uid, err := tokens.User(r)
			return server.Visitor(uid), err
		},
		Told: func(r *http.Request, what string) { log.WithField("from", r.RemoteAddr).Info("page: " + what) },
	}
	for _, l := range sockets {
		if a, ok := l.Addr().(*net.TCPAddr); ok && !a.IP.IsLoopback() && cfg.Certificate == "" && cfg.Tokens != "" {
			return nil, fmt.Errorf("the socket that systemd passed for the page, %s, is reached from other machines: set web.certificate and web.key", a)
		}
	}
	side, err := api.ListenSide(port, page.Handler(), pageTimeout, cfg.Base)
	if err != nil {
		return nil, fmt.Errorf("web.listen: %w", err)
	}
	log.WithFields(logrus.Fields{"address": side.Addr(), "base": cfg.Base}).Info("serving the page")
	return side, nil
}

// acquire waits for the lease on the database. Meanwhile it rereads the configuration at every
// SIGHUP; only another database is ignored.
func acquire(ctx context.Context, cmd *cobra.Command, cfg config.Config, hup <-chan os.Signal, log *logrus.Logger, service *systemd.Service) (*store.Lease, config.Config, error) {
	database := cfg.Database
	type outcome struct {
		lease *store.Lease
		err   error
	}
	got := make(chan outcome, 1)
	go func() {
		said := sync.OnceFunc(func() {
			log.WithField("database", database).Warn("another evoslurmd works on this database: waiting to take over from it")
		})
		lease, err := store.Acquire(ctx, database, func() {
			said()
			service.Alive(true, func() string { return "waiting to take over from another evoslurmd" })
		})
		got <- outcome{lease, err}
	}()
	for {
		select {
		case o := <-got:
			return o.lease, cfg, o.err
		case <-hup:
			done := service.Reload()
			readAgain(cmd, log, func(fresh config.Config) error {
				cfg = fresh
				cfg.Database = database
				return nil
			})
			done()
		}
	}
}

// reload reads the configuration again at every SIGHUP.
func reload(ctx context.Context, cmd *cobra.Command, ctl *controller.Controller, hup <-chan os.Signal, log *logrus.Logger, service *systemd.Service) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-hup:
			done := service.Reload()
			readAgain(cmd, log, func(cfg config.Config) error { return ctl.Configure(ctx, cfg) })
			done()
		}
	}
}

// readAgain reads the configuration and hands it to use. A bad one is reported and
// changes nothing.
func readAgain(cmd *cobra.Command, log *logrus.Logger, use func(config.Config) error) {
	cfg, file, err := config.Load(cmd.Flags())
	if err == nil {
		err = errors.Join(use(cfg), setUp(log, cfg.Log))
	}
	if err != nil {
		log.WithError(err).Error("the configuration was not read again; the old one stays")
		return
	}
	log.WithField("config", file).Info("configuration read again")
}

func setUp(log *logrus.Logger, cfg config.Log) error {
	level, err := logrus.ParseLevel(cfg.Level)
	if err != nil {
		return fmt.Errorf("log.level: %w", err)
	}
	log.SetLevel(level)
	if cfg.Format == "json" {
		log.SetFormatter(&logrus.JSONFormatter{})
	} else {
		log.SetFormatter(&logrus.TextFormatter{FullTimestamp: true, TimestampFormat: "2006-01-02T15:04:05.000"})
	}
	return nil
}
