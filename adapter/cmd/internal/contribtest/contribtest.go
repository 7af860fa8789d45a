// Package contribtest holds what contrib has of a command to the command itself.
package contribtest

import (
	"bytes"
	"flag"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// Rewrite has tests write anew the files that they compare with.
var Rewrite = flag.Bool("rewrite", false, "write anew what is compared with")

// contrib as the tests of a command, in its folder, see it.
const contrib = "../../../contrib/"

// Completions holds the installed completions to what cobra makes of the program.
func Completions(t *testing.T, root *cobra.Command) {
	t.Helper()
	for file, generate := range map[string]func(io.Writer) error{
		"bash/" + root.Name():           func(w io.Writer) error { return root.GenBashCompletionV2(w, true) },
		"zsh/_" + root.Name():           root.GenZshCompletion,
		"fish/" + root.Name() + ".fish": func(w io.Writer) error { return root.GenFishCompletion(w, true) },
	} {
		var b bytes.Buffer
		if err := generate(&b); err != nil {
			t.Fatal(err)
		}
		path := contrib + "completions/" + file
		if *Rewrite {
			if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, b.Bytes()) {
			t.Errorf("%s is not what cobra generates (%v): write it with -rewrite", path, err)
		}
	}
}

// Manual is the text of a manual page, its hyphens plain.
func Manual(t *testing.T, page string) string {
	t.Helper()
	text, err := os.ReadFile(contrib + "man/" + page)
	if err != nil {
		t.Fatal(err)
	}
	return strings.ReplaceAll(string(text), `\-`, "-")
}
