// Package version gives all commands the same answer to --version.
package version

import (
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Of returns the version that the linker set in the command's main package, or otherwise the one
// that Go recorded.
func Of(linked string) string {
	if info, ok := debug.ReadBuildInfo(); ok && linked == "" {
		return info.Main.Version
	}
	return linked
}

// Line returns the answer: "evoslurm v1.2.3".
func Line(linked string) string { return "evoslurm " + Of(linked) }

// Flag gives a command -V and --version, and does what UsageFlag does.
func Flag(cmd *cobra.Command, linked string) {
	cmd.Version = Line(linked)
	cmd.SetVersionTemplate("{{.Version}}\n")
	cmd.Flags().BoolP("version", "V", false, "show the version")
	UsageFlag(cmd)
}

// wants maps the Go types of flags to descriptions of their values.
var wants = map[string]string{"int": "a whole number", "int64": "a whole number", "uint": "a whole number from 0 on", "uint32": "a whole number from 0 on",
	"uint64": "a whole number from 0 on", "float64": "a number", "duration": "a length of time such as 90s, 30m or 2h", "bool": "true or false"}

// inWords describes what a flag wants if its value is bad, instead of Go's own words.
func inWords(err error) error {
	var bad *pflag.InvalidValueError
	if !errors.As(err, &bad) || wants[bad.GetFlag().Value.Type()] == "" {
		return err
	}
	return fmt.Errorf("--%s=%s: want %s", bad.GetFlag().Name, bad.GetValue(), wants[bad.GetFlag().Value.Type()])
}

// UsageFlag gives a command --usage as Slurm's commands have it, unless it has that flag, and makes
// it describe bad values in plain words.
func UsageFlag(cmd *cobra.Command) {
	tell := cmd.FlagErrorFunc()
	cmd.SetFlagErrorFunc(func(c *cobra.Command, err error) error { return tell(c, inWords(err)) })
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

// Arguments makes a command and its subcommands print their usage for wrong arguments, instead of
// cobra's count.
func Arguments(cmd *cobra.Command) {
	if check := cmd.Args; check != nil && !cmd.HasSubCommands() {
		cmd.Args = func(c *cobra.Command, args []string) error {
			switch {
			case check(c, args) == nil:
				return nil
			case len(args) == 0:
				return fmt.Errorf("usage: %s", c.UseLine())
			}
			return fmt.Errorf("%q does not fit; usage: %s", strings.Join(args, " "), c.UseLine())
		}
	}
	for _, sub := range cmd.Commands() {
		Arguments(sub)
	}
}

// Usage returns a command's options, and commands, in brief.
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
