package main

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/evoslurm/evoslurm/adapter/cmd/internal/complete"
	"github.com/evoslurm/evoslurm/adapter/job/place"
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

// values lists what an option may be, if that is a short list. A value that ends in a colon goes on.
func values(option string) []string {
	switch option {
	case "--drive":
		return []string{"auto", "merge", "companion", "chain"}
	case "--moldable-by":
		return planner.Preferences()
	case "--placement":
		return place.Names()
	case "--size":
		return []string{"any", "pow2", "multiple:"}
	case "--checkpoint":
		return []string{"none", "demand", "periodic:", "dmtcp"}
	case "--expand-limit":
		return []string{"1", "2", "inf"}
	}
	return nil
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
	if option, _, given := strings.Cut(word, "="); values(option) != nil && given {
		var found []cobra.Completion
		directive := cobra.ShellCompDirectiveNoFileComp
		for _, value := range values(option) {
			found = append(found, option+"="+value)
			if strings.HasSuffix(value, ":") {
				directive |= cobra.ShellCompDirectiveNoSpace
			}
		}
		return found, directive
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
