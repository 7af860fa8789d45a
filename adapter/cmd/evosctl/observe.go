package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/evoslurm/evoslurm/adapter/internal/config"
	"github.com/evoslurm/evoslurm/adapter/internal/when"
)

const observeHelp = `

With --observe, report on the days that the sidecar has recorded in mode observe: how well starts are predicted, what
evolving jobs would have gained, and what they would have cost. It runs evosim observed on the folder of the
configuration. Further options of evosim observed follow after "--":

  evosctl report --observe --since=now-7days --html=page.html -- --share=0.2 --shape=amr --peak`

// observeFlags are the flags of evosctl report --observe.
type observeFlags struct {
	on          bool
	since, html string
}

// withObserve adds --observe to a command, in place of what it does otherwise.
func withObserve(cmd *cobra.Command) *cobra.Command {
	f := &observeFlags{}
	cmd.Long += observeHelp
	flags := cmd.Flags()
	flags.BoolVar(&f.on, "observe", false, "report on the days that were recorded in mode observe")
	flags.StringVar(&f.since, "since", "", "with --observe: the first day, as sacct's --starttime (default: all)")
	flags.StringVar(&f.html, "html", "", "with --observe: HTML page to write")
	if flags.Lookup("format") == nil {
		flags.String("format", "table", "output format, table or json")
	}
	args, otherwise := cmd.Args, cmd.RunE
	cmd.Args = func(cmd *cobra.Command, words []string) error {
		if f.on && (len(words) == 0 || cmd.ArgsLenAtDash() == 0) {
			return nil
		}
		return args(cmd, words)
	}
	cmd.RunE = func(cmd *cobra.Command, words []string) error {
		if f.on {
			return f.run(cmd, words)
		}
		if f.since != "" || f.html != "" {
			return errors.New("--since and --html go with --observe")
		}
		return otherwise(cmd, words)
	}
	return cmd
}

func (f *observeFlags) run(cmd *cobra.Command, more []string) error {
	cfg, _, err := config.Load(cmd.Flags())
	if err != nil {
		return err
	}
	format, _ := cmd.Flags().GetString("format")
	words := []string{"evosim", "observed", "--format=" + format}
	if f.since != "" {
		since, err := when.Parse(f.since, time.Now())
		if err != nil {
			return fmt.Errorf("--since: %w", err)
		}
		words = append(words, "--since="+since.Format(time.RFC3339))
	}
	if f.html != "" {
		words = append(words, "--html="+f.html)
	}
	dir := cfg.ObserveDir()
	switch _, err := os.ReadDir(dir); {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("nothing has been observed: there is no folder %s. Set mode: observe in the configuration, start evoslurmd, and wait some hours", dir)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%w: run it as root or as the account that evoslurmd runs as", err)
	case err != nil:
		return err
	}
	evosim, err := beside("evosim")
	if err != nil {
		return err
	}
	words = append(append(words, more...), dir)
	return fmt.Errorf("%s: %w", evosim, syscall.Exec(evosim, words, os.Environ()))
}

// beside returns a command that is installed in the same folder as this one, or else in PATH.
func beside(name string) (string, error) {
	if own, err := os.Executable(); err == nil {
		path := filepath.Join(filepath.Dir(own), name)
		if _, err := os.Stat(path); err == nil {
			return path, nil
		}
	}
	path, err := exec.LookPath(name)
	if err != nil {
		return "", fmt.Errorf("%s is not installed beside evosctl or in PATH: install the package evoslurm-client, which has it, or run evosim observed elsewhere on a copy of the record", name)
	}
	return path, nil
}
