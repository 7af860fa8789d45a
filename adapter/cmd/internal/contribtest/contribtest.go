// Package contribtest holds what contrib has of a command to the command itself.
package contribtest

import (
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

// Rewrite makes tests rewrite the files that they compare with.
var Rewrite = flag.Bool("rewrite", false, "rewrite the files compared with")

// contrib as the tests of a command, in its folder, see it.
const contrib = "../../../contrib/"

// Manual returns the text of a manual page, its hyphens plain.
func Manual(t *testing.T, page string) string {
	t.Helper()
	text, err := os.ReadFile(contrib + "man/" + page)
	if err != nil {
		t.Fatal(err)
	}
	return strings.ReplaceAll(string(text), `\-`, "-")
}

// Options returns what Manual does, once it has seen that the page names all flags.
func Options(t *testing.T, page string, flags *pflag.FlagSet) string {
	t.Helper()
	text := Manual(t, page)
	flags.VisitAll(func(f *pflag.Flag) {
		if !strings.Contains(text, "--"+f.Name) || f.Shorthand != "" && !strings.Contains(text, "-"+f.Shorthand) {
			t.Errorf("--%s is not in the manual", f.Name)
		}
	})
	return text
}
