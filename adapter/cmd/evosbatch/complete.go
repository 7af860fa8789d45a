package main

import (
	"context"
	"os/user"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/evoslurm/evoslurm/adapter/config"
	"github.com/evoslurm/evoslurm/adapter/submit"
	"github.com/evoslurm/evoslurm/planner"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// completionTime is how long Slurm is waited for by somebody who has pressed a key.
const completionTime = 3 * time.Second

// namesFor tells where the word is, or contains, partitions or accounts: what stands before them
// in it, and how they are had.
func namesFor(ctx context.Context, args []string, word string) (string, func() []string) {
	site, _, err := config.Load(nil)
	if err != nil {
		site = config.Default()
	}
	if ctx == nil {
		ctx = context.Background()
	}
	client := &slurmctl.Client{Dir: site.Slurm.Bin, Timeout: completionTime}
	partitions := func() []string {
		names, _ := client.PartitionNames(ctx) // of a Slurm that is away there are none to propose
		return names
	}
	accounts := func() []string {
		u, err := user.Current()
		if err != nil {
			return nil
		}
		names, _ := client.Accounts(ctx, u.Username)
		return names
	}
	before := ""
	if len(args) > 0 {
		before = args[len(args)-1]
	}
	for option, names := range map[string]func() []string{"partition": partitions, "account": accounts} {
		long, short := "--"+option, "-"+strings.ToUpper(option[:1])
		if option == "partition" {
			short = "-p"
		}
		switch {
		case strings.HasPrefix(word, long+"="):
			return long + "=", names
		case before == long || before == short:
			return "", names
		case strings.HasPrefix(word, short):
			return short, names
		}
	}
	return "", nil
}

// completions are the names that go on with the word, of which the last of several, with commas
// between them, is meant.
func completions(prefix string, names []string, word string) []cobra.Completion {
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

// complete proposes options, evosbatch's own first, and files for everything else.
func complete(cmd *cobra.Command, args []string, word string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if !submit.ScriptGiven(args) {
		if prefix, names := namesFor(cmd.Context(), args, word); names != nil {
			return completions(prefix, names(), word), cobra.ShellCompDirectiveNoFileComp
		}
	}
	if submit.ScriptGiven(args) || !strings.HasPrefix(word, "-") {
		return nil, cobra.ShellCompDirectiveDefault
	}
	if strings.HasPrefix(word, "--drive=") {
		return []cobra.Completion{"--drive=auto", "--drive=merge", "--drive=companion", "--drive=chain"}, cobra.ShellCompDirectiveNoFileComp
	}
	if strings.HasPrefix(word, "--moldable-by=") {
		var found []cobra.Completion
		for _, name := range planner.Preferences() {
			found = append(found, "--moldable-by="+name)
		}
		return found, cobra.ShellCompDirectiveNoFileComp
	}
	if strings.HasPrefix(word, "--size=") {
		return []cobra.Completion{"--size=any", "--size=pow2", "--size=multiple:"}, cobra.ShellCompDirectiveNoSpace | cobra.ShellCompDirectiveNoFileComp
	}
	if strings.HasPrefix(word, "--expand-limit=") {
		return []cobra.Completion{"--expand-limit=1", "--expand-limit=2", "--expand-limit=inf"}, cobra.ShellCompDirectiveNoFileComp
	}
	if strings.Contains(word, "=") {
		return nil, cobra.ShellCompDirectiveDefault
	}
	var found []cobra.Completion
	for _, o := range submit.OptionNames() {
		if strings.HasPrefix(o, word) {
			found = append(found, o)
		}
	}
	return found, cobra.ShellCompDirectiveNoSpace | cobra.ShellCompDirectiveNoFileComp
}
