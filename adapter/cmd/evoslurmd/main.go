// Evoslurmd is the sidecar: it plans evolving jobs and drives Slurm to give and
// take their nodes.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/sirupsen/logrus"
	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/config"
	"github.com/evoslurm/evoslurm/adapter/controller"
	"github.com/evoslurm/evoslurm/adapter/store"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// version is set by the linker (Makefile).
var version = "devel"

func main() {
	if err := command().Execute(); err != nil {
		fmt.Fprintln(os.Stderr, "evoslurmd: error:", err)
		os.Exit(1)
	}
}

func command() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "evoslurmd [--config FILE]",
		Short: "The sidecar that plans evolving jobs and drives Slurm",
		Long: `evoslurmd watches a stock Slurm, plans the jobs that evosbatch submitted and drives
Slurm to give and take their nodes as planned. It runs as root or as SlurmUser, on
the host of slurmctld or any other that has Slurm's commands. It stays in the
foreground and logs to standard error.

Of several on one machine that share a database one works; the others wait and take
over when it ends.

SIGTERM and SIGINT stop it cleanly: jobs go on, and so does it when it is started
again. SIGHUP makes it read its configuration again.`,
		Version:       version,
		Args:          cobra.NoArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE:          run,
	}
	flags := cmd.Flags()
	config.AddFlag(flags)
	flags.String("log-level", "", "error, warn, info, debug or trace")
	flags.String("log-format", "", "text or json")
	flags.String("database", "", "sqlite file")
	return cmd
}

func run(cmd *cobra.Command, _ []string) error {
	cfg, file, err := config.Load(cmd.Flags())
	if err != nil {
		return err
	}
	log := logrus.New()
	if err := setUp(log, cfg.Log); err != nil {
		return err
	}
	log.WithFields(logrus.Fields{"version": version, "config": file, "pid": os.Getpid()}).Info("evoslurmd starts")

	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	slurm := &slurmctl.Client{Dir: cfg.Slurm.Bin, Timeout: cfg.Slurm.Timeout}
	lease, err := store.Acquire(ctx, cfg.Database, func() {
		log.WithField("database", cfg.Database).Warn("another evoslurmd works on this database: waiting to take over from it")
	})
	if errors.Is(err, context.Canceled) {
		return nil // told to stop while it waited
	}
	if err != nil {
		return err
	}
	defer lease.Release()
	st, err := store.Open(ctx, cfg.Database)
	if err != nil {
		return err
	}
	defer st.Close()
	ctl, err := controller.New(cfg, slurm, st, log, version)
	if err != nil {
		return err
	}
	server := &api.Server{
		Backend: ctl, Log: log, Socket: cfg.Listen.Socket, TCP: cfg.Listen.TCP,
		Munge: api.Munge{Socket: cfg.Munge.Socket}, MaxAge: cfg.Munge.MaxAge,
		Operator: ctl.Operator, ReadOpen: cfg.ReadOnlyOpen,
	}
	if err := server.Listen(); err != nil {
		return err
	}
	log.WithField("addresses", server.Addresses()).Info("serving the API")

	all, ctx := errgroup.WithContext(ctx)
	all.Go(func() error { return server.Serve(ctx) })
	all.Go(func() error { return ctl.Run(ctx) })
	all.Go(func() error { return reload(ctx, cmd, ctl, log) })
	err = all.Wait()
	if errors.Is(err, context.Canceled) {
		err = nil
	}
	log.Info("evoslurmd stops; jobs go on")
	return err
}

// reload reads the configuration again at every SIGHUP. A bad one is reported and
// changes nothing.
func reload(ctx context.Context, cmd *cobra.Command, ctl *controller.Controller, log *logrus.Logger) error {
	hup := make(chan os.Signal, 1)
	signal.Notify(hup, syscall.SIGHUP)
	defer signal.Stop(hup)
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-hup:
		}
		cfg, file, err := config.Load(cmd.Flags())
		if err == nil {
			err = errors.Join(ctl.Configure(ctx, cfg), setUp(log, cfg.Log))
		}
		if err != nil {
			log.WithError(err).Error("the configuration was not read again; the old one stays")
			continue
		}
		log.WithField("config", file).Info("configuration read again")
	}
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
