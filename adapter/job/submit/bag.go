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

// bagOptions lists the options of a bag that evosbatch takes: those of evosrun --tasks, and --collect.
var bagOptions = []string{"tasks", "bag", "retries", "checkpoint", "checkpoint-signal", "checkpoint-cmd", "restart-cmd", "task-time", "drain-time", "collect"}

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

// bagCall is a command line that submits a bag of tasks.
type bagCall struct {
	kept    []string // the words that are not for evosrun
	words   []string // for evosrun, without --bag
	dir     string   // --bag; "": none is given
	tasks   bag.List
	collect []string // what runs once all tasks have ended; nil: nothing
}

// wrapped returns the command line with evosrun as the script.
func (b bagCall) wrapped() []string {
	words := b.words
	if b.dir != "" {
		words = append([]string{"--bag=" + b.dir}, words...)
	}
	script := "exec evosrun"
	for _, word := range words {
		script += " " + quote(word)
	}
	return append(slices.Clone(b.kept), "--require-profile", "--wrap="+script)
}

// collects reports whether a command collects what the tasks have written.
func (b *bagCall) collects() bool { return b != nil && b.collect != nil }

// readBag reads a command line with --tasks, and returns it with evosrun as the script. Other command lines are returned as they
// are, without a bag.
func readBag(words []string, help func() string) (*bagCall, []string, error) {
	if !givesBag(words) {
		return nil, words, nil
	}
	b, err := parseBag(words, help)
	if err != nil {
		return nil, nil, err
	}
	return b, b.wrapped(), nil
}

func parseBag(words []string, help func() string) (*bagCall, error) {
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
	var b bagCall
	for _, o := range line.Options {
		if err := b.add(o); err != nil {
			return nil, err
		}
	}
	b.words = append(append(b.words, "--"), line.Operands...)
	given := b.words
	if b.dir != "" {
		given = append([]string{"--bag=" + b.dir}, given...)
	}
	return &b, injob.CheckBag(given)
}

// add takes an option of the command line.
func (b *bagCall) add(o getopt.Option) (err error) {
	value := o.Value
	switch {
	case !slices.Contains(bagOptions, o.Name):
		b.kept = append(b.kept, o.Words...)
		return nil
	case o.Name == "bag":
		if b.dir = value; value == "" {
			return errors.New("--bag: no folder")
		}
		return nil
	case o.Name == "collect":
		if b.collect, err = bag.Words(value); err != nil {
			return fmt.Errorf("--collect: %w", err)
		}
		return nil
	case o.Name == "tasks":
		if b.tasks, err = bag.Tasks(value); err != nil {
			return fmt.Errorf("--tasks: %w", err)
		}
		if _, isRange, _ := bag.ParseRange(value); !isRange {
			if value, err = filepath.Abs(value); err != nil {
				return err
			}
		}
	}
	b.words = append(b.words, "--"+o.Name+"="+value)
	return nil
}
