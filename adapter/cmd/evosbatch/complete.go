package main

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/evoslurm/evoslurm/adapter/submit"
	"github.com/evoslurm/evoslurm/planner"
)

// complete proposes options, evosbatch's own first, and files for everything else.
func complete(_ *cobra.Command, args []string, word string) ([]cobra.Completion, cobra.ShellCompDirective) {
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
