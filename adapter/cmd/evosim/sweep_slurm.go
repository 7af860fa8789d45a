package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/evoslurm/evoslurm/adapter/lab/evosim"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// checkSlurm checks the flags that go with --slurm.
func (f *sweepFlags) checkSlurm(cmd *cobra.Command) error {
	perTask := cmd.Flags().Changed("per-task")
	switch {
	case len(f.options) > 0 && !f.slurm:
		return errors.New("--sbatch-option: there is no --slurm")
	case perTask && !f.slurm:
		return errors.New("--per-task: there is no --slurm")
	case perTask && f.perTask < 1:
		return fmt.Errorf("--per-task=%d: must be at least 1", f.perTask)
	}
	for _, option := range f.options {
		if !strings.HasPrefix(option, "-") {
			return fmt.Errorf("--sbatch-option=%s: not an option; want one such as --partition=short", option)
		}
	}
	return nil
}

// submit submits the remaining experiments as a job array, and a job after it for the table: both
// or none.
func (f *sweepFlags) submit(cmd *cobra.Command, name string, left []int) (err error) {
	own, err := os.Executable()
	if err != nil {
		return evosim.Failure{Err: err}
	}
	var paths [2]string
	for i, path := range []string{name, f.folder} {
		if paths[i], err = filepath.Abs(path); err != nil {
			return evosim.Failure{Err: err}
		}
	}
	client := &slurmctl.Client{Env: os.Environ()}
	perTask, err := f.cellsPerTask(cmd.Context(), client, name, len(left))
	if err != nil {
		return evosim.Failure{Err: err}
	}
	_, there := os.Stat(f.folder)
	if err := os.MkdirAll(f.folder, 0o777); err != nil { //nolint:gosec // as umask has it
		return evosim.Failure{Err: err}
	}
	defer func() {
		if err != nil && there != nil {
			_ = os.Remove(f.folder) // unless there is something in it by now
		}
	}()
	submit := func(what, script string, option ...string) (slurmctl.JobID, error) {
		args := append([]string{"--parsable", "--job-name=" + what, "--ntasks=1", "--output=" + filepath.Join(paths[1], "slurm-%j.out")}, option...)
		printed, err := client.Submit(cmd.Context(), nil, append(args, f.options...), strings.NewReader(script))
		if err != nil {
			return 0, err
		}
		id, _, _ := strings.Cut(strings.TrimSpace(printed), ";") // ;CLUSTER may follow
		n, err := strconv.ParseUint(id, 10, 32)
		if err != nil {
			return 0, fmt.Errorf("sbatch --parsable printed %q, no job's number", printed)
		}
		return slurmctl.JobID(n), nil
	}
	command := fmt.Sprintf("exec %s sweep --output=%s", quote(own), quote(paths[1]))
	// Tasks are numbered from 0 on: MaxArraySize is about their numbers, not how many there are.
	tasks := (len(left) + perTask - 1) / perTask
	array := fmt.Sprintf("--array=0-%d", tasks-1)
	if cmd.Flags().Changed("workers") && f.workers < tasks {
		array += fmt.Sprintf("%%%d", f.workers)
	}
	id, err := submit("evosim-sweep", fmt.Sprintf("#!/bin/sh\ncase $SLURM_ARRAY_TASK_ID in\n%sesac\n%s --workers=\"${SLURM_CPUS_PER_TASK:-1}\" --cell=\"$cells\" %s\n",
		cellsOf(left, perTask), command, quote(paths[0])), array)
	if err != nil {
		return evosim.Failure{Err: err}
	}
	table, err := submit("evosim-table", fmt.Sprintf("#!/bin/sh\n%s --table %s\n", command, quote(paths[0])), fmt.Sprintf("--dependency=afterany:%d", id))
	if err != nil {
		return evosim.Failure{Err: errors.Join(err, client.Cancel(context.WithoutCancel(cmd.Context()), id))}
	}
	fmt.Fprintf(cmd.OutOrStdout(), "%d experiments: job array %d of %d tasks; the table: job %d\n", len(left), id, tasks, table)
	return nil
}

// cellsPerTask returns how many experiments a task runs, so that the cluster takes the array.
func (f *sweepFlags) cellsPerTask(ctx context.Context, client *slurmctl.Client, name string, left int) (int, error) {
	config, err := client.Config(ctx)
	if err != nil {
		return 0, err
	}
	most, err := strconv.Atoi(config.Values["MaxArraySize"])
	switch {
	case err != nil:
		return 0, fmt.Errorf("scontrol show config: MaxArraySize=%q is not understood", config.Values["MaxArraySize"])
	case most < 1:
		return 0, fmt.Errorf("this cluster has job arrays switched off (MaxArraySize=0): run the sweep in one job, without --slurm: sbatch --cpus-per-task=8 --wrap=%s",
			quote("evosim sweep --workers=8 "+name))
	}
	least := (left + most - 1) / most
	if f.perTask > 0 && f.perTask < least {
		return 0, fmt.Errorf("--per-task=%d: %d experiments are then more tasks than this cluster's MaxArraySize=%d; want at least %d", f.perTask, left, most, least)
	}
	return max(f.perTask, least), nil
}

// cellsOf returns a task's experiments, in the shell's syntax.
func cellsOf(left []int, perTask int) string {
	var b strings.Builder
	for task := 0; task*perTask < len(left); task++ {
		some := left[task*perTask : min((task+1)*perTask, len(left))]
		fmt.Fprintf(&b, "%d) cells=%d-%d ;;\n", task, some[0]+1, some[len(some)-1]+1)
	}
	return b.String()
}

// quote quotes a word for the shell.
func quote(word string) string { return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'" }
