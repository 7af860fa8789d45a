package main

import (
	"bytes"
	"flag"
	"os"
	"testing"
)

var rewrite = flag.Bool("rewrite", false, "write the completions in contrib anew")

// TestCompletions holds the installed completions to what cobra makes of the program.
func TestCompletions(t *testing.T) {
	root := newRoot()
	for file, generate := range map[string]func(*bytes.Buffer) error{
		"bash/evosctl":      func(b *bytes.Buffer) error { return root.GenBashCompletionV2(b, true) },
		"zsh/_evosctl":      func(b *bytes.Buffer) error { return root.GenZshCompletion(b) },
		"fish/evosctl.fish": func(b *bytes.Buffer) error { return root.GenFishCompletion(b, true) },
	} {
		var b bytes.Buffer
		if err := generate(&b); err != nil {
			t.Fatal(err)
		}
		path := "../../../contrib/completions/" + file
		if *rewrite {
			if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, b.Bytes()) {
			t.Errorf("%s is not what cobra generates (%v): write it with -rewrite", path, err)
		}
	}
}
