// Package version has every command say the same where it is asked for its version.
package version

import (
	"io"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Of is the version that the linker has set in the command's main package; where it
// has set nothing, what Go has noted.
func Of(linked string) string {
	if info, ok := debug.ReadBuildInfo(); ok && linked == "" {
		return info.Main.Version
	}
	return linked
}

// Line is the answer: "evoslurm v1.2.3".
func Line(linked string) string { return "evoslurm " + Of(linked) }

// Flag gives a command -V and --version, and --usage as Slurm's commands have it, unless it
// has that already.
func Flag(cmd *cobra.Command, linked string) {
	cmd.Version = Line(linked)
	cmd.SetVersionTemplate("{{.Version}}\n")
	cmd.Flags().BoolP("version", "V", false, "show the version")
	UsageFlag(cmd)
}

// UsageFlag gives a command --usage, unless it has it already.
func UsageFlag(cmd *cobra.Command) {
	if cmd.Flags().Lookup("usage") != nil {
		return
	}
	brief, run := cmd.Flags().Bool("usage", false, "show the options in brief"), cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if *brief {
			_, err := io.WriteString(cmd.OutOrStdout(), Usage(cmd))
			return err
		}
		if run == nil {
			return cmd.Help()
		}
		return run(cmd, args)
	}
}

// Usage is a command's options, and commands, in brief.
func Usage(cmd *cobra.Command) string {
	var b strings.Builder
	b.WriteString("Usage: " + cmd.CommandPath())
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		name := "--" + f.Name
		if f.Shorthand != "" {
			name = "-" + f.Shorthand
		}
		if f.Value.Type() != "bool" && f.NoOptDefVal == "" {
			name += " " + f.Name
		}
		b.WriteString(" [" + name + "]")
	})
	var names []string
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			names = append(names, c.Name())
		}
	}
	if len(names) > 0 {
		b.WriteString(" {" + strings.Join(names, "|") + "}")
	}
	return b.String() + "\n"
}
