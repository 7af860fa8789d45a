package main

import (
	"context"
	"fmt"
	"io"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/evoslurm/evoslurm/adapter/internal/config"
	"github.com/evoslurm/evoslurm/adapter/sidecar/store"
)

// newDB returns the command behind evosctl db: evosctl, which is on all nodes, has no sqlite.
func newDB() *cobra.Command {
	db := &cobra.Command{Use: "db", Hidden: true, Short: "Check, back up, or restore the database (evosctl db)"}
	for name, c := range map[string]struct {
		use  string
		args cobra.PositionalArgs
		run  func(ctx context.Context, out io.Writer, path string, args []string) error
	}{
		"check": {"check [FILE]", cobra.MaximumNArgs(1), checkDB}, "backup": {"backup FILE", cobra.ExactArgs(1), backupDB}, "restore": {"restore FILE", cobra.ExactArgs(1), restoreDB},
	} {
		cmd := &cobra.Command{Use: c.use, Args: c.args, Short: name + " the database", RunE: func(cmd *cobra.Command, args []string) error {
			cfg, _, err := config.Load(cmd.Flags())
			if err != nil {
				return failure{exitConfig, failure{exitConfig, err}}
			}
			ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
			defer stop()
			if err := c.run(ctx, cmd.OutOrStdout(), cfg.Database, args); err != nil {
				return failure{exitOther, err}
			}
			return nil
		}}
		config.AddFlag(cmd.Flags())
		cmd.Flags().String("database", "", "path of the sqlite database")
		db.AddCommand(cmd)
	}
	return db
}

// describe says in a line what a file has.
func describe(path string, e store.Examined) string {
	return fmt.Sprintf("%s: %.1f MB, schema %d, %d jobs (%d have not ended), %d events", path, float64(e.Bytes)/1e6, e.Schema, e.Jobs, e.Active, e.Events)
}

func checkDB(ctx context.Context, out io.Writer, path string, args []string) error {
	if len(args) > 0 {
		path = args[0]
	}
	e, err := store.Examine(ctx, path)
	if err != nil {
		return err
	}
	fmt.Fprintln(out, describe(path, e))
	for _, f := range e.Faults {
		fmt.Fprintln(out, "fault:", f)
	}
	switch {
	case len(e.Faults) > 0:
		return fmt.Errorf("%s must not be used: restore a backup (evosctl db restore), or let the sidecar make a new one from Slurm (docs/runbook.md)", path)
	case e.Schema < e.Latest:
		fmt.Fprintf(out, "sound; the next start of the sidecar brings it to schema %d\n", e.Latest)
	default:
		fmt.Fprintln(out, "sound")
	}
	return nil
}

func backupDB(ctx context.Context, out io.Writer, path string, args []string) error {
	e, err := store.Backup(ctx, path, args[0])
	if err == nil {
		fmt.Fprintln(out, "backed up as", describe(args[0], e))
	}
	return err
}

func restoreDB(ctx context.Context, out io.Writer, path string, args []string) error {
	aside, e, err := store.Restore(ctx, path, args[0], time.Now())
	if err != nil {
		return err
	}
	fmt.Fprintln(out, "restored", describe(path, e))
	if aside != "" {
		fmt.Fprintln(out, "the old one is", aside)
	}
	return nil
}
