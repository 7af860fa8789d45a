package submit

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/evoslurm/evoslurm/adapter/internal/getopt"
	"github.com/evoslurm/evoslurm/adapter/job/bag"
	"github.com/evoslurm/evoslurm/adapter/job/injob"
)

// bagOptions lists the options of evosrun --tasks that evosbatch takes.
var bagOptions = []string{"tasks", "bag", "retries", "checkpoint", "checkpoint-signal", "checkpoint-cmd", "restart-cmd", "task-time", "drain-time"}

// givesBag reports whether the words have --tasks. sbatch takes --tasks=4 for --tasks-per-node=4, and so it stays.
func givesBag(words []string) bool {
	for i, word := range words {
		value, is := strings.CutPrefix(word, "--tasks=")
		if word == "--tasks" && i+1 < len(words) {
			value, is = words[i+1], true
		}
		switch {
		case word == "--":
			return false
		case is:
			return strings.Trim(value, "0123456789") != ""
		}
	}
	return false
}

// withBag returns a command line with --tasks as one whose script is evosrun with these tasks.
func withBag(words []string, help func() string) ([]string, error) {
	if !givesBag(words) {
		return words, nil
	}
	table := newOptionTable()
	for _, name := range bagOptions {
		table.Long[name] = getopt.Required
	}
	line, err := table.read(words, help)
	switch {
	case err != nil:
		return nil, err
	case contains(line.Options, "wrap"):
		return nil, errors.New("--wrap: with --tasks, the command after the options is what runs")
	case contains(line.Options, "array"):
		return nil, errors.New("--array: a bag of tasks is one job: give the range to --tasks, as in --tasks=1-30000")
	case len(line.Operands) == 0:
		return nil, errors.New("no command to run the tasks with: want evosbatch --tasks=FILE|FIRST-LAST [options] -- command {}")
	}
	var kept, given []string
	for _, o := range line.Options {
		switch {
		case !slices.Contains(bagOptions, o.Name):
			kept = append(kept, o.Words...)
			continue
		case o.Name == "tasks":
			if _, err := bag.Tasks(o.Value); err != nil {
				return nil, fmt.Errorf("--tasks: %w", err)
			}
			if _, isRange, _ := bag.ParseRange(o.Value); !isRange {
				if o.Value, err = filepath.Abs(o.Value); err != nil {
					return nil, err
				}
			}
		}
		given = append(given, "--"+o.Name+"="+o.Value)
	}
	given = append(append(given, "--"), line.Operands...)
	if err := injob.CheckBag(given); err != nil {
		return nil, err
	}
	script := "exec evosrun"
	for _, word := range given {
		script += " " + quote(word)
	}
	return append(kept, "--require-profile", "--wrap="+script), nil
}
