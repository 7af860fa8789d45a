package injob

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/evoslurm/evoslurm/adapter/job/cores"
)

// The first arguments of an evosrun that serves another one's --cores, on any node of the job.
const (
	coresJoin = "--cores-join" // SHARE: the parent process gets its cores
	coresKeep = "--cores-keep" // FOLDER JOB STEP NODE: moves the processes of a step while it runs
)

// coresScript has a task join its step's share of the cores before anything else: evosrun and the share come
// first among its arguments.
const coresScript = `"$1" ` + coresJoin + ` "$2" || exit 1
shift 2
`

// notShared lists srun's options that cannot be used with --cores.
var notShared = []struct{ name, why string }{
	{"cpu-bind", "it chooses the cores"},
	{"cpus-per-task", "it chooses how many cores"},
	{"threads-per-core", "whole cores are shared"},
	{"exact", "the cores that are shared are all that the job has on a node"},
	{"exclusive", "the cores that are shared are all that the job has on a node"},
	{"core-spec", "the cores that are shared are all that the job has on a node"},
	{"hint", "it chooses the cores"},
	{"multi-prog", "srun itself reads the commands"},
	{"bcast", "srun itself reads the command"},
	{"launch-cmd", "tasks are started"},
}

// sharing returns the arguments of an evosrun as --cores changes them: each task joins its step's
// share, and Slurm lets the steps use the same cores and binds none.
func (c Command) sharing(args srunArgs) (srunArgs, error) {
	value, given := args.last("cores")
	if !given {
		return args, nil
	}
	if _, err := cores.ParseShare(value); err != nil {
		return args, err
	}
	for _, o := range notShared {
		if args.has(o.name) {
			return args, fmt.Errorf("--%s cannot be used with --cores: %s", o.name, o.why)
		}
	}
	program := c.Evosrun
	if program == "" {
		self, err := os.Executable()
		if err != nil {
			return args, err
		}
		program = filepath.Join(filepath.Dir(self), "evosrun")
	}
	line, err := parseSrun(append(args.without("cores", "overlap"), "--overlap", "--cpu-bind=none", "--", "-"))
	args.options, args.joins = line.options, []string{program, value}
	return args, err
}

// shell returns the words that run a script before the command.
func (s srunArgs) shell(script string, words ...string) []string {
	if s.joins != nil {
		script, words = coresScript+script, append(s.joins[:2:2], words...)
	}
	return append([]string{"/bin/sh", "-c", script, "evosrun"}, words...)
}

// coresHelper returns what an evosrun that serves another one does, or nil if it is not one.
func coresHelper(args []string) func() error {
	switch {
	case len(args) == 2 && args[0] == coresJoin:
		return func() error {
			share, err := cores.ParseShare(args[1])
			if err != nil {
				return err
			}
			if err := joinCores(share); err != nil {
				return fmt.Errorf("--cores: %w", err)
			}
			return nil
		}
	case len(args) == 5 && args[0] == coresKeep:
		return func() error { return cores.Keep(cores.Place{Dir: args[1], Job: args[2], Step: args[3], Node: args[4]}) }
	}
	return nil
}

// joinCores has the parent process, a task, use its step's share of the node's cores.
func joinCores(share int) error {
	dir, taken, err := makeMeetDir()
	if err != nil {
		return err
	}
	if taken != "" {
		fmt.Fprintf(os.Stderr, "evosrun: warning: %s does not belong to you alone: using another folder; have it removed\n", taken)
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	p := cores.Place{Dir: dir, Job: os.Getenv("SLURM_JOB_ID"), Step: os.Getenv("SLURM_STEP_ID"), Node: os.Getenv("SLURMD_NODENAME")}
	return cores.Join(p, share, os.Getppid(), []string{self, coresKeep, p.Dir, p.Job, p.Step, p.Node})
}
