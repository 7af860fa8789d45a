package version

import (
	"fmt"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// Too many and too few arguments are answered with how a command is called, a command that there is not with its name.
func TestArguments(t *testing.T) {
	for words, want := range map[string]string{
		"one": "usage: evo one JOB [flags]", "one 4 5": `"4 5" does not fit; usage: evo one JOB [flags]`, "none x": `"x" does not fit; usage: evo none [flags]`, "one 4": "<nil>", "none": "<nil>", "three": `unknown command "three" for "evo"`,
	} {
		run := func(*cobra.Command, []string) error { return nil }
		root := &cobra.Command{Use: "evo", SilenceErrors: true, SilenceUsage: true, Args: cobra.NoArgs, RunE: run}
		root.AddCommand(&cobra.Command{Use: "one JOB", Args: cobra.ExactArgs(1), RunE: run}, &cobra.Command{Use: "none", Args: cobra.NoArgs, RunE: run})
		Arguments(root)
		root.SetArgs(strings.Fields(words))
		if err := root.Execute(); fmt.Sprint(err) != want {
			t.Errorf("%s: %v, want %s", words, err, want)
		}
	}
}

// TestBadValues checks that bad values are described in plain words, not Go's; a command's own
// words for its values stay.
func TestBadValues(t *testing.T) {
	for args, want := range map[string]string{
		"--lines=x":   "--lines=x: want a whole number",
		"--every=no":  "--every=no: want a length of time such as 90s, 30m or 2h",
		"--delay=1,5": "--delay=1,5: want a number",
		"--usage=yes": "--usage=yes: want true or false",
		"--nosuch":    "unknown flag: --nosuch",
	} {
		root, sub := &cobra.Command{Use: "evo", SilenceErrors: true, SilenceUsage: true}, &cobra.Command{Use: "sub", RunE: func(*cobra.Command, []string) error { return nil }}
		Flag(root, "v1")
		for _, c := range []*cobra.Command{root, sub} {
			c.Flags().Int("lines", 0, "")
			c.Flags().Duration("every", 0, "")
			c.Flags().Float64("delay", 0, "")
		}
		root.AddCommand(sub)
		lines := [][]string{{args}}
		if args != "--usage=yes" { // only the root has it
			lines = append(lines, []string{"sub", args})
		}
		for _, words := range lines {
			root.SetArgs(words)
			if err := root.Execute(); err == nil || err.Error() != want {
				t.Errorf("%q: %v, want %s", words, err, want)
			}
		}
	}
}
