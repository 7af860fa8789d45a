package main

import (
	"bytes"
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/evoslurm/evoslurm/adapter/submit"
)

var rewrite = flag.Bool("rewrite", false, "write the completions in contrib anew")

// TestCompletions holds the installed completions to what cobra makes of the program.
func TestCompletions(t *testing.T) {
	root := newCommand(new(int))
	for file, generate := range map[string]func(*bytes.Buffer) error{
		"bash/evosbatch":      func(b *bytes.Buffer) error { return root.GenBashCompletionV2(b, true) },
		"zsh/_evosbatch":      func(b *bytes.Buffer) error { return root.GenZshCompletion(b) },
		"fish/evosbatch.fish": func(b *bytes.Buffer) error { return root.GenFishCompletion(b, true) },
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

// TestManual sees that the manual knows every option of evosbatch's own and every
// one that is refused.
func TestManual(t *testing.T) {
	page, err := os.ReadFile("../../../contrib/man/evosbatch.1")
	if err != nil {
		t.Fatal(err)
	}
	text := strings.ReplaceAll(string(page), `\-`, "-")
	for _, name := range []string{"profile", "expand-limit", "drive", "dry-run", "help", "usage", "version"} {
		if !strings.Contains(text, "--"+name) || !strings.Contains(help, "--"+name) {
			t.Errorf("--%s is not in the manual, or not in the help", name)
		}
	}
	for _, name := range submit.Refused() {
		switch name {
		case "ntasks-per-tres",
			"cluster-constraint", "spread-segments", "consolidate-segments":
			continue // "and their like"
		}
		if !strings.Contains(text, "--"+name) {
			t.Errorf("--%s is refused, and not in the manual", name)
		}
	}
	if !strings.Contains(text, submit.ParkedUntil) {
		t.Errorf("the manual has another time for parked jobs than %s", submit.ParkedUntil)
	}
}
