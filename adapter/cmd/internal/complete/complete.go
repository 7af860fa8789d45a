// Package complete completes what only Slurm knows: partitions and accounts.
package complete

import (
	"context"
	"os/user"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/evoslurm/evoslurm/adapter/internal/config"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// patience is how long Slurm is waited for. Of one that is away there are no names to propose.
const patience = 3 * time.Second

func client() *slurmctl.Client {
	site, _, err := config.Load(nil)
	if err != nil {
		site = config.Default()
	}
	return &slurmctl.Client{Dir: site.Slurm.Bin, Timeout: patience}
}

// Partitions returns the names of the partitions that the caller sees.
func Partitions(ctx context.Context) []string {
	names, _ := client().PartitionNames(ctx)
	return names
}

// Accounts returns the accounts that the caller may charge.
func Accounts(ctx context.Context) []string {
	u, err := user.Current()
	if err != nil {
		return nil
	}
	names, _ := client().Accounts(ctx, u.Username)
	return names
}

// List returns the names that complete a word, after a prefix; in a comma list, the last name is
// completed.
func List(prefix string, names []string, word string) []cobra.Completion {
	given := strings.TrimPrefix(word, prefix)
	at := strings.LastIndex(given, ",") + 1
	var found []cobra.Completion
	for _, name := range names {
		if strings.HasPrefix(name, given[at:]) && !slices.Contains(strings.Split(given[:at], ","), name) {
			found = append(found, prefix+given[:at]+name)
		}
	}
	return found
}

// None has no values of flags proposed.
func None(cmd *cobra.Command, flags ...string) {
	for _, flag := range flags {
		if err := cmd.RegisterFlagCompletionFunc(flag, cobra.NoFileCompletions); err != nil {
			panic(err) // the flag is named wrongly
		}
	}
}

// Flags has the values of flags proposed, each a list: by name of the flag, how its names are had.
func Flags(cmd *cobra.Command, flags map[string]func(context.Context) []string) {
	for flag, names := range flags {
		propose := func(cmd *cobra.Command, _ []string, word string) ([]cobra.Completion, cobra.ShellCompDirective) {
			ctx := cmd.Context()
			if ctx == nil {
				ctx = context.Background()
			}
			return List("", names(ctx), word), cobra.ShellCompDirectiveNoFileComp
		}
		if err := cmd.RegisterFlagCompletionFunc(flag, propose); err != nil {
			panic(err) // the flag is named wrongly
		}
	}
}

// Fixed returns names that need no query.
func Fixed(names ...string) func(context.Context) []string {
	return func(context.Context) []string { return names }
}
