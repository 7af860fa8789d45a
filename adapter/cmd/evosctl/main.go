// Command evosctl lets an evolving job's script go from one step to the next, and lets an
// administrator check the installation.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

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
	root.AddCommand(newNext(), newPeek(), newEnv(), newHostfile(), newRun(version.Line(linked)), newLaunch(), newUpdate(), newGrow(), newShrink(), newWaitEvent(), newAccept(), newDecline(), newProgress(), newTasks(), newDoctor(), newStrategy(), newCancelHolds(), newDrain(), newResume(), newReleaseAll(), newAccess("allow"), newAccess("deny"), newBudget(), newPower(), newEvents(), newProfile(), newBundle(linked), newDB(), newWeb())
	root.AddCommand(newReport())
	version.Arguments(root)
	return root
}
