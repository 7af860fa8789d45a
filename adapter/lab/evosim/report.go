package evosim

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/evoslurm/evoslurm/adapter/lab/outcome"
	"github.com/evoslurm/evoslurm/adapter/lab/report"
	"github.com/evoslurm/evoslurm/adapter/lab/trace"
)

// mostOutcomes bounds the outcomes in one report: readers cannot distinguish more lines.
const mostOutcomes = 12

// ReportCommand returns evosim report, with further input formats.
func ReportCommand(more ...trace.Format) *cobra.Command {
	var file, title, batsim, perfetto string
	cmd := &cobra.Command{
		Use:   "report [--output=FILE.html] [--title=TEXT] [--batsim=FOLDER] [--perfetto=FOLDER] DIR|FILE...",
		Short: "Make one HTML report of outcomes",
		Long: `Make one HTML report of outcomes: from evosim baseline --output, evosim run --format=json, or any trace
with start times. For a folder, it takes all files that end in .swf or .json, gzipped or not. The report is one
file, with a summary in words, tables without JavaScript, a zooming Gantt chart, utilisation and queue over
time, waits, and how it was made. If jobs change their sizes in one outcome and not in another, the report
compares the starts of all stock jobs in both.

--batsim=FOLDER writes each outcome in Batsim's form, NAME_jobs.csv and NAME_schedule.json, for evalys.
--perfetto=FOLDER writes each as a JSON trace for Perfetto. With one of these, there is a report only with
--output.`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			outcomes, err := readOutcomes(args, more)
			if err != nil {
				return err
			}
			version := strings.TrimPrefix(cmd.Root().Version, "evoslurm ")
			if err := each(batsim, outcomes, map[string]func(io.Writer, *outcome.Outcome) error{
				"_jobs.csv": outcome.WriteJobs, "_schedule.json": func(w io.Writer, o *outcome.Outcome) error { return outcome.WriteSchedule(w, o, version) }}); err != nil {
				return err
			}
			if err := each(perfetto, outcomes, map[string]func(io.Writer, *outcome.Outcome) error{".perfetto.json": outcome.WritePerfetto}); err != nil {
				return err
			}
			if file == "" && batsim+perfetto != "" {
				return nil
			}
			return WriteReport(cmd, file, title, commandLine(cmd, args), outcomes)
		},
	}
	flags := cmd.Flags()
	flags.StringVarP(&file, "output", "o", "", "file to write (default: standard output)")
	flags.StringVar(&title, "title", "", "heading of the report")
	flags.StringVar(&batsim, "batsim", "", "folder to write Batsim's jobs.csv and schedule.json to")
	flags.StringVar(&perfetto, "perfetto", "", "folder to write traces for Perfetto to")
	return cmd
}

func readOutcomes(args []string, more []trace.Format) (all []outcome.Outcome, err error) {
	var files []string
	for _, arg := range args {
		info, err := os.Stat(arg)
		if err != nil {
			return nil, err
		}
		if !info.IsDir() {
			files = append(files, arg)
			continue
		}
		some, err := outcome.Files(arg)
		if err != nil {
			return nil, err
		}
		files = append(files, some...)
	}
	if len(files) > mostOutcomes {
		return nil, fmt.Errorf("%d outcomes: at most %d are put into one report", len(files), mostOutcomes)
	}
	seen := map[string]bool{}
	for _, file := range files {
		o, err := outcome.ReadFile(file, more...)
		if err != nil {
			return nil, err
		}
		if seen[o.Name] { // e.g. the same strategy with other seeds
			o.Name += " (" + outcome.Stem(file) + ")"
		}
		seen[o.Name] = true
		all = append(all, o)
	}
	return all, nil
}

// WriteReport writes the report of outcomes to a file, or to standard output for "".
func WriteReport(cmd *cobra.Command, file, title, command string, outcomes []outcome.Outcome) error {
	o := report.Options{Title: title, Command: command, Version: strings.TrimPrefix(cmd.Root().Version, "evoslurm ")}
	if file == "" {
		return report.Write(cmd.OutOrStdout(), outcomes, o)
	}
	return create(file, func(w io.Writer) error { return report.Write(w, outcomes, o) })
}

// each writes files of every outcome into a folder.
func each(dir string, outcomes []outcome.Outcome, writers map[string]func(io.Writer, *outcome.Outcome) error) error {
	if dir == "" {
		return nil
	}
	if err := os.MkdirAll(dir, 0o777); err != nil { //nolint:gosec // the user's own
		return err
	}
	for i := range outcomes {
		for suffix, write := range writers {
			name := strings.Map(func(r rune) rune {
				if r == '/' || r == filepath.Separator || r < ' ' || r == ' ' {
					return '_'
				}
				return r
			}, outcomes[i].Name)
			if err := create(filepath.Join(dir, strings.TrimLeft(name, ".")+suffix), func(w io.Writer) error { return write(w, &outcomes[i]) }); err != nil {
				return fmt.Errorf("%s: %w", outcomes[i].Name, err)
			}
		}
	}
	return nil
}

// Made returns a description of how a command's outcome was made.
func Made(cmd *cobra.Command, args []string, seed string) outcome.Made {
	return outcome.Made{Command: commandLine(cmd, args), Version: strings.TrimPrefix(cmd.Root().Version, "evoslurm "), Seed: seed}
}

// commandLine returns the command as typed, with its flags sorted by name.
func commandLine(cmd *cobra.Command, args []string) string {
	words := []string{cmd.CommandPath()}
	word := func(text string) {
		if strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' || strings.ContainsRune(`"'\$&|;<>()*?#~`+"`", r) }) {
			text = strconv.Quote(text)
		}
		words = append(words, text)
	}
	cmd.Flags().Visit(func(f *pflag.Flag) {
		value := f.Value.String()
		if list, ok := f.Value.(pflag.SliceValue); ok {
			value = strings.Join(list.GetSlice(), ",")
		}
		word("--" + f.Name + "=" + value)
	})
	for _, arg := range args {
		word(arg)
	}
	return strings.Join(words, " ")
}
