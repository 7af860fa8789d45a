package main

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

// TestCompletions holds the installed completions to what cobra makes of the program.
func TestCompletions(t *testing.T) {
	root := newCommand()
	for file, generate := range map[string]func(*bytes.Buffer) error{
		"bash/evosqueue":      func(b *bytes.Buffer) error { return root.GenBashCompletionV2(b, true) },
		"zsh/_evosqueue":      func(b *bytes.Buffer) error { return root.GenZshCompletion(b) },
		"fish/evosqueue.fish": func(b *bytes.Buffer) error { return root.GenFishCompletion(b, true) },
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

// TestManual sees that the manual has every option, and every column and state.
func TestManual(t *testing.T) {
	page, err := os.ReadFile("../../../contrib/man/evosqueue.1")
	if err != nil {
		t.Fatal(err)
	}
	text := strings.ReplaceAll(string(page), `\-`, "-")
	newCommand().Flags().VisitAll(func(f *pflag.Flag) {
		if !strings.Contains(text, "--"+f.Name) || f.Shorthand != "" && !strings.Contains(text, "-"+f.Shorthand) {
			t.Errorf("--%s is not in the manual", f.Name)
		}
	})
	for _, c := range shortColumns {
		switch c.title {
		case "NAME", "USER":
			continue // as in squeue
		}
		if !strings.Contains(text, c.title) {
			t.Errorf("column %s is not in the manual", c.title)
		}
	}
	for _, s := range states {
		if !strings.Contains(text, s.names[0]) {
			t.Errorf("state %s is not in the manual", s.names[0])
		}
	}
}
