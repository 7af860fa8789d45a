package main

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/evoslurm/evoslurm/adapter/cmd/internal/complete"
	"github.com/evoslurm/evoslurm/adapter/job/submit"
	"github.com/evoslurm/evoslurm/planner"
)

// namesFor reports whether the word is, or contains, partitions or accounts: the prefix in the
// word, and the function that lists the names.
func namesFor(args []string, word string) (string, func(context.Context) []string) {
	before := ""
	if len(args) > 0 {
		before = args[len(args)-1]
	}
	for option, names := range map[string]func(context.Context) []string{"partition": complete.Partitions, "account": complete.Accounts} {
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

// propose completes options, evosbatch's own first, and otherwise files.
func propose(cmd *cobra.Command, args []string, word string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if !submit.ScriptGiven(args) {
		if prefix, names := namesFor(args, word); names != nil {
			ctx := cmd.Context()
			if ctx == nil {
				ctx = context.Background()
			}
			return complete.List(prefix, names(ctx), word), cobra.ShellCompDirectiveNoFileComp
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
	if strings.HasPrefix(word, "--checkpoint=") {
		return []cobra.Completion{"--checkpoint=none", "--checkpoint=demand", "--checkpoint=periodic:", "--checkpoint=dmtcp"}, cobra.ShellCompDirectiveNoSpace | cobra.ShellCompDirectiveNoFileComp
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
