package injob

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/evoslurm/evoslurm/slurmctl"
)

// RunHelp is the help text of evosrun and of evosctl run.
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

No task is started on a node that the job gave back. If --nodelist names one, the
command fails; if the environment still does, since it was not evaluated, evosrun says so.

Each task finds EVO_RANK, EVO_NTASKS, EVO_JOB_ID and EVO_PART_ID (the Slurm job
that it runs in) in its environment. In drive mode companion an MPI program must
be started with its own mpiexec instead; see evosctl launch --help.

With --follow the command runs on every node that the job has, and goes on doing so as
the job changes its size: it is started on nodes that arrive, and drained on those that
leave, before they are given back.

  evosrun --follow [srun options] [options] -- command [arguments]

  --follow[=steps|script]  who ends the steps: this command, each at its planned time
                           (steps, the default); or the script, by evosctl next, shrink or
                           accept on this node, which wait until the nodes are drained
  --drain=CMD              run on each node that leaves, by sh; when it has ended, the
                           instance gets the signal
  --drain-signal=TERM      the signal (HUP, INT, QUIT, TERM, USR1, USR2)
  --drain-time=30s         for all of that; then what still runs is killed. A step that
                           ends with nodes leaving is begun to end so much earlier
  --on-nodes=CMD           run here, by sh, whenever the nodes have changed: EVO_NODELIST
                           has all, EVO_ARRIVED and EVO_LEFT what is new
  --accept=all|shrink|none answer what a malleable job is offered and asked for (evosctl wait-event):
                           all of it (the default with steps), declining what would come,
                           or leave it to the script (the default with script)
  --restart=on-failure     an instance that ends: never, on-failure, always started again
  --restart-limit=5        times in a row, each within a minute; then it has failed

It ends when no instance runs any more nor will again (the highest exit status is its
own), when the job's last step ends, or by SIGINT, SIGTERM or SIGHUP: then all are drained.
Several in one job, on one node, wait for each other: nodes are given back once all have drained.
--exclude keeps nodes free of it, --ntasks-per-node starts more than one task on each, -K
ends all when one has failed for good. Instances find EVO_RANK (the lowest number that
was free), EVO_NODE, EVO_JOB_ID and EVO_PART_ID.

--jobid=ID names the evolving job; inside a job it is known.
The configuration is $EVOSLURM_CONFIG's, else /etc/evoslurm/evoslurm.yaml.
`

// runUsage returns the same in brief.
func runUsage(program string) string {
	return "Usage: " + program + ` [srun options] command [arguments]
       ` + program + ` --follow[=steps|script] [--drain=CMD] [--drain-signal=SIGNAL] [--drain-time=TIME]
         [--on-nodes=CMD] [--accept=all|shrink|none] [--restart=never|on-failure|always]
         [--restart-limit=N] [srun options] command [arguments]
       ` + program + ` {-h|--help} | {-V|--version} | --usage
`
}

// Main is evosrun under the name program; version is what --version prints. It returns the exit
// status.
func Main(program, version string, args []string) int {
	fail := func(err error) int {
		fmt.Fprintf(os.Stderr, "%s: %v\n", program, err)
		return 1
	}
	parsed, err := parseSrun(args)
	if err != nil {
		return fail(err)
	}
	if parsed.has("help") {
		fmt.Print(RunHelp)
		return 0
	}
	if parsed.has("usage") {
		fmt.Print(runUsage(program))
		return 0
	}
	if parsed.has("version") {
		fmt.Println(version)
		return 0
	}
	for _, name := range followOwn {
		if parsed.has(name) && !parsed.has("follow") {
			return fail(fmt.Errorf("--%s is for --follow", name))
		}
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
	if text := Stale(a, os.Getenv); text != "" {
		fmt.Fprintf(os.Stderr, "%s: %s\n", program, text)
	}
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT,
		syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGALRM, syscall.SIGCONT)
	c := Command{Allocation: a, Args: args, Environ: os.Environ(), Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr}
	var status int
	if parsed.has("follow") {
		status, err = c.Follow(context.Background(), client, client.Address(), &slurmctl.Client{}, signals)
	} else {
		status, err = c.Run(context.Background(), signals)
	}
	if err != nil {
		return fail(err)
	}
	return status
}
