// Command completions writes the shell completions of the commands that use cobra. The scripts
// differ in the command's name only: each asks the command for what to offer.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
)

var commands = []string{"evosacct", "evosbatch", "evosctl", "evosdemo", "evosim", "evoslurmd", "evosqueue", "evostop"}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: completions FOLDER")
		os.Exit(2)
	}
	for _, name := range commands {
		if err := write(os.Args[1], name); err != nil {
			fmt.Fprintln(os.Stderr, "completions: error:", err)
			os.Exit(1)
		}
	}
}

// write writes a command's scripts for bash, zsh, and fish below the folder.
func write(folder, name string) error {
	cmd := &cobra.Command{Use: name}
	for file, generate := range map[string]func(string) error{
		"bash/" + name:           func(path string) error { return cmd.GenBashCompletionFileV2(path, true) },
		"zsh/_" + name:           cmd.GenZshCompletionFile,
		"fish/" + name + ".fish": func(path string) error { return cmd.GenFishCompletionFile(path, true) },
	} {
		path := filepath.Join(folder, file)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil { //nolint:gosec // all may read what is installed
			return err
		}
		if err := generate(path); err != nil {
			return err
		}
	}
	return nil
}
