// Command evosctl lets an evolving job's script go from one step to the next, and lets an
// administrator check the installation.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/internal/config"
	"github.com/evoslurm/evoslurm/adapter/internal/version"
)

var linked string // the version, set by the linker

func main() { os.Exit(run()) }

func run() int {
	args := os.Args[1:]
	if filepath.Base(os.Args[0]) == "evolaunch" && !slices.Equal(args, []string{"-V"}) && !slices.Equal(args, []string{"--version"}) { // a link with this name helps where launchers accept no arguments
		args = append([]string{"launch"}, args...)
	}
	root := newRoot()
	root.SetArgs(args)
	err := root.ExecuteContext(context.Background())
	if err == nil {
		return 0
	}
	var status exitStatus
	if !errors.As(err, &status) {
		fmt.Fprintf(os.Stderr, "evosctl: %v\n", err)
		return 1
	}
	return int(status)
}

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:              "evosctl",
		Short:            "Steer an evolving job from inside; check an installation",
		SilenceErrors:    true,
		SilenceUsage:     true,
		TraverseChildren: true,
		Args:             cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return fmt.Errorf("there is no command %q; see evosctl --help", args[0])
			}
			return cmd.Help()
		},
	}
	config.AddFlag(root.PersistentFlags())
	version.Flag(root, linked)
	root.AddCommand(newNext(), newPeek(), newEnv(), newHostfile(), newRun(), newLaunch(), newUpdate(), newGrow(), newShrink(), newWaitEvent(), newAccept(), newDecline(), newProgress(), newDoctor(), newStrategy(), newCancelHolds(), newEvents(), newProfile(), newBundle(), newWeb())
	version.Arguments(root)
	return root
}

// exitStatus ends evosctl with a status; what there was to say has been said.
type exitStatus int

func (s exitStatus) Error() string { return fmt.Sprintf("exit status %d", int(s)) }

// interrupted is the cause of a context that a signal ended.
type interrupted struct{ signal syscall.Signal }

func (e interrupted) Error() string { return e.signal.String() }

// untilSignal returns a context that SIGINT, SIGTERM, or SIGHUP ends; the cause names the signal.
func untilSignal(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	go func() {
		select {
		case s := <-signals:
			cancel(interrupted{s.(syscall.Signal)})
		case <-ctx.Done():
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		cancel(nil)
	}
}

// sidecarRemedy is the remedy if a sidecar does not answer.
const sidecarRemedy = "start evoslurmd; check api in the configuration, and listen.tcp in the sidecar's"

// atOnce queries a sidecar for a user who only looks: if there is none, it fails at once; if it
// exists but cannot answer yet, it waits.
func atOnce[T any](ctx context.Context, client *api.Client, question func(context.Context) (T, error)) (T, error) {
	ctx, cancel := context.WithTimeout(ctx, strategyPatience)
	defer cancel()
	waiting, away := client.Waiting, false
	defer func() { client.Waiting = waiting }()
	client.Waiting = func(address string, err error) {
		if errors.Is(err, api.ErrUnavailable) {
			waiting(address, err)
			return
		}
		away = true
		cancel()
	}
	answer, err := question(ctx)
	if away {
		err = fmt.Errorf("%w; %s", err, sidecarRemedy)
	}
	return answer, err
}
