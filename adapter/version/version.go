// Package version has every command say the same where it is asked for its version.
package version

import (
	"runtime/debug"

	"github.com/spf13/cobra"
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

// Flag gives a command -V and --version.
func Flag(cmd *cobra.Command, linked string) {
	cmd.Version = Line(linked)
	cmd.SetVersionTemplate("{{.Version}}\n")
	cmd.Flags().BoolP("version", "V", false, "show the version")
}
