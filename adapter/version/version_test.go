package version

import (
	"testing"

	"github.com/spf13/cobra"
)

// A bad value is told in the words of people, not in those of Go; what a command says of its own kinds of values stays.
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
		if args != "--usage=yes" { // which is the root's alone
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
