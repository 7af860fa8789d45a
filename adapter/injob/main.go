package injob

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

// RunHelp is the help of evosrun and of evosctl run.
const RunHelp = `Run a command over all nodes that the evolving job has now.

  evosrun [srun options] command [arguments]
  evosctl run [srun options] -- command [arguments]

The options are srun's and are passed on to it. Where the job is one Slurm job
(drive modes merge and chain) this is srun with the environment of the job's
present size. Where it is several (companion) there is one srun for each, with
--ntasks, --nodes, --nodelist and --exclude spread over them, tasks and the
labels of --label numbered through, and the highest exit status as the result;
--kill-on-bad-exit ends all of them. Options of plugins take their value with
"=" (--name=value).

Each task finds EVO_RANK, EVO_NTASKS, EVO_JOB_ID and EVO_PART_ID (the Slurm job
that it runs in) in its environment. In drive mode companion an MPI program must
be started with its own mpiexec instead; see evosctl launch --help.

--jobid=ID names the evolving job; inside a job it is known.
The configuration is $EVOSLURM_CONFIG's, else /etc/evoslurm/evoslurm.yaml.
`

// Main is evosrun under the name of program, which tells its version where it is asked
// to; it returns the exit status.
func Main(program, version string, args []string) int {
	fail := func(err error) int {
		fmt.Fprintf(os.Stderr, "%s: %v\n", program, err)
		return 1
	}
	parsed, err := parseSrun(args)
	if err != nil {
		return fail(err)
	}
	if parsed.has("help", "usage") {
		fmt.Print(RunHelp)
		return 0
	}
	if parsed.has("version") {
		fmt.Println(version)
		return 0
	}
	given, _ := parsed.last("jobid")
	job, err := JobID(given, os.Getenv)
	if err != nil {
		return fail(err)
	}
	client, err := Connect(nil, program, os.Stderr)
	if err != nil {
		return fail(err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	a, err := Present(ctx, client, job)
	stop()
	if err != nil {
		return fail(err)
	}
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT,
		syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGALRM, syscall.SIGCONT)
	c := Command{Allocation: a, Args: args, Environ: os.Environ(), Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr}
	status, err := c.Run(context.Background(), signals)
	if err != nil {
		return fail(err)
	}
	return status
}
