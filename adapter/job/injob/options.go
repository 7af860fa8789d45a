package injob

import (
	"slices"

	"github.com/evoslurm/evoslurm/adapter/internal/getopt"
)

// srunOptions holds srun's options, of 20.11 to 26.05, and evosrun's own. Unknown options of
// srun (from a SPANK plugin) are passed on; they take their value with "=".
var srunOptions = func() *getopt.Table {
	t := getopt.NewTable(map[getopt.Arity]string{
		getopt.Required: `accel-bind account/AU acctg-freq attach/a bb bbf bcast-exclude begin/b cluster-constraint
			clusters/M comment consolidate-segments constraint/C container container-id core-spec/S cores-per-socket
			cpu-bind cpu-freq cpus-per-gpu cpus-per-task/c chdir/D deadline delay-boot dependency/dP distribution/m
			environment epilog error/e exclude/x export export-file extra extra-node-info/B gid gpu-bind gpu-freq
			gpus/G gpus-per-node gpus-per-socket gpus-per-task gres gres-flags het-group hint input/i job-name/J
			jobid licenses/L mail-type mail-user mcs-label mem mem-bind mem-per-cpu mem-per-gpu mincpus mpi network
			nodefile/F nodelist/w nodes/N ntasks/n ntasks-per-core ntasks-per-gpu ntasks-per-node ntasks-per-socket
			ntasks-per-tres open-mode output/o partition/p power prefer priority profile prolog qos/q relative/r
			reservation resv segment signal slurmd-debug sockets-per-node spank switches task-epilog task-prolog
			thread-spec threads/T threads-per-core time/t time-min tmp treewidth tres-bind tres-per-task uid wait/W
			wckey
			accept bag checkpoint checkpoint-cmd checkpoint-signal component cores drain drain-time drain-signal on-nodes restart
			restart-cmd restart-limit retries tasks task-time`, // evosrun's own
		getopt.Optional: `bcast compress exclusive follow get-user-env immediate/I kill-on-bad-exit/K nice no-kill/k propagate
			resv-ports send-libs x11`,
		getopt.Flag: `campaign contiguous debugger-test disable-status/X exact external help/h hold/H interactive
			kill-invalid-depend label/l launch-cmd launcher-opts multi-prog no-allocate/Z no-bell overcommit/O
			overlap oversubscribe/s parallel-debugger preserve-env/E pty quiet/Q quit-on-interrupt reboot share
			spread-job stepmgr test-only unbuffered/u usage use-min-nodes verbose/v version/V wait-for-children
			whole`,
	})
	t.Foreign = true
	return t
}()

// srunArgs are srun's arguments, taken apart.
type srunArgs struct {
	options []getopt.Option
	command []string // the command and its arguments
	joins   []string // the words that have a task join the step's share of cores (--cores); none: it does not
}

func parseSrun(args []string) (srunArgs, error) {
	line, err := srunOptions.Parse(args, "")
	return srunArgs{options: line.Options, command: line.Operands}, err
}

// has reports whether an option was given.
func (s srunArgs) has(names ...string) bool {
	return slices.ContainsFunc(s.options, func(o getopt.Option) bool { return slices.Contains(names, o.Name) })
}

// last returns an option's value, the last one given.
func (s srunArgs) last(name string) (string, bool) {
	for _, o := range slices.Backward(s.options) {
		if o.Name == name {
			return o.Value, true
		}
	}
	return "", false
}

// without returns the options as given, except the named ones.
func (s srunArgs) without(names ...string) []string {
	var args []string
	for _, o := range s.options {
		if !slices.Contains(names, o.Name) {
			args = append(args, o.Words...)
		}
	}
	return args
}
