package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/evoslurm/evoslurm/adapter/job/measured"
	"github.com/evoslurm/evoslurm/planner"
)

// fromFlags holds what evosctl profile --from takes.
type fromFlags struct {
	file, shortest string
	measured.Options
}

func (f *fromFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.file, "from", "", "file that a measured run printed, lines SECONDS SIZE (- for standard input)")
	flags.Float64Var(&f.PerNode, "per-node", 0, "size that a node gets at most, in the file's unit")
	flags.IntVar(&f.MaxNodes, "max-nodes", 10_000, "most nodes of a step; a size that needs more is an error")
	flags.IntVar(&f.Nodes, "measured-nodes", 1, "nodes that the measured run had")
	flags.Float64Var(&f.Scale, "scale", 1, "how many times longer the run is than the measured one")
	flags.StringVar(&f.shortest, "shortest", "5m", "shortest step that is worth a resize")
	_ = cmd.RegisterFlagCompletionFunc("from", cobra.FixedCompletions(nil, cobra.ShellCompDirectiveDefault))
}

// used returns the first flag that goes with --from and was given, or "".
func (f *fromFlags) used(cmd *cobra.Command) string {
	for _, name := range []string{"per-node", "max-nodes", "measured-nodes", "scale", "shortest"} {
		if cmd.Flags().Changed(name) {
			return name
		}
	}
	return ""
}

// show prints the profile of a measured run.
func (f *fromFlags) show(cmd *cobra.Command, args []string, margin int, quiet bool) (err error) {
	if len(args) > 0 {
		return errors.New("want jobs or --from=FILE, not both")
	}
	if !cmd.Flags().Changed("per-node") {
		return errors.New("--from needs --per-node=N, the size that a node gets")
	}
	if f.Shortest, err = planner.ParseDuration(f.shortest); err != nil {
		return fmt.Errorf("--shortest: %w", err)
	}
	f.Margin = margin
	in, name := cmd.InOrStdin(), "standard input"
	if f.file != "-" {
		file, err := os.Open(f.file)
		if err != nil {
			return err
		}
		defer file.Close()
		in, name = file, f.file
	}
	run, err := measured.Read(in)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	profile, steps, err := measured.Profile(run, f.Options)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if !quiet {
		showMeasured(cmd.OutOrStdout(), steps)
	}
	_, err = fmt.Fprintln(cmd.OutOrStdout(), profile)
	return err
}

func showMeasured(out io.Writer, steps []measured.Step) {
	fmt.Fprintf(out, "# %4s %6s %10s %12s %12s %8s\n", "STEP", "NODES", "TIME", "LARGEST", "UNTIL", "LINE")
	for i, s := range steps {
		fmt.Fprintf(out, "# %4d %6d %10s %12g %11.6gs %8d\n", i+1, s.Nodes, planner.FormatDuration(s.Duration), s.Size, s.Until, s.Line)
	}
}
