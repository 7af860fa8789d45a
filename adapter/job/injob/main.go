package injob

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/evoslurm/evoslurm/adapter/job/cores"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// RunHelp is the help text of evosrun and of evosctl run.
const RunHelp = `Run a command on all current nodes of the evolving job.

  evosrun [srun options] command [arguments]
  evosctl run [srun options] -- command [arguments]

evosrun passes srun's options on. If the job is one Slurm job (drive modes merge and
chain), this is srun with the environment of the job's current size. If the job is
several Slurm jobs (companion), evosrun starts one srun for each. It spreads --ntasks,
--nodes, --nodelist and --exclude over them, numbers all tasks and the labels of --label
in one sequence, and returns the highest exit status; --kill-on-bad-exit ends all of
them. Options of plugins take their value with "=" (--name=value).

evosrun starts no task on a node that the job gave back. If --nodelist names one, it
fails. If the environment still names one, since it was not evaluated, it warns.

Each task finds EVO_RANK, EVO_NTASKS, EVO_JOB_ID and EVO_PART_ID (the Slurm job
that it runs in) in its environment. In drive mode companion an MPI program must
be started with its own mpiexec instead; see evosctl launch --help.

In a step with a CPU frequency (evosbatch --profile=2@10m:low), srun asks for it. --cpu-freq
comes first, and then a SLURM_CPU_FREQ_REQ that you set.

With --component=NAME, the command runs on the nodes of one component of a job of coupled
codes (evosbatch --component). With --follow, it is restarted only where nodes of its
component change.

With --cores=SHARE, several evosruns of the job that run on a node divide its cores, in
proportion to their shares (weights from 1 to 1000), and each gets more when another ends.

With --follow, the command runs on every node of the job while the job changes its size:
evosrun starts an instance on each node that arrives, and drains the instance on each
node that leaves before giving the node back.

  evosrun --follow [srun options] [options] -- command [arguments]

  --follow[=steps|script]  who ends the steps: this command, at the planned times (steps,
                           the default); or the script, by evosctl next, shrink or accept
                           on this node, which wait for the drains
  --drain=CMD              command for sh on each node that leaves; after it, the instance
                           gets the signal
  --drain-signal=TERM      signal for the instance: HUP, INT, QUIT, TERM, USR1, or USR2
  --drain-time=30s         longest time for both, before instances are killed. The end of a
                           step with leaving nodes begins earlier by this time
  --on-nodes=CMD           command for sh on this node after each change: EVO_NODELIST has
                           all nodes, EVO_ARRIVED and EVO_LEFT the changes
  --accept=all|shrink|none offers and demands for a malleable job to accept (evosctl wait-event):
                           all (the default with steps), only demands (offers are declined),
                           or none: leave them to the script (the default with script)
  --restart=on-failure     restart instances that end: never, on-failure, or always
  --restart-limit=5        restarts in a row, each within a minute, before the instance fails

It ends when no instance runs or will restart (with the highest exit status), when the
job's last step ends, or by SIGINT, SIGTERM or SIGHUP: it then drains all instances.
Several evosrun --follow of a job on one node wait for each other: nodes go back once all
have drained. --exclude keeps nodes free, --ntasks-per-node starts several tasks on each
node, and -K ends all instances when one has failed for good. Instances find EVO_RANK
(the lowest free number), EVO_NODE, EVO_JOB_ID and EVO_PART_ID.

With --tasks, evosrun works off a bag of tasks on the nodes, as they come and go: a worker
on each node runs the command once for each task, several at once. {} in the command's
words is the task, which no shell reads; without {}, it is the last argument.

  evosrun --tasks=FILE|FIRST-LAST[:STEP] [srun options] [options] -- command [arguments]

  --tasks=FILE|1-30000     the tasks: lines of a file (empty ones do not count), or numbers;
                           at most 1,000,000 tasks and 64 MiB
  --bag=DIR                folder of the bag (evobag-JOBID). It has the journal: started again
                           with the same folder, also in another job, evosrun goes on
  --campaign               the folder is that of a campaign, which evosbatch --clusters made:
                           this job works a part of it off
  --retries=0              how often a task that fails is repeated
  --ntasks-per-node=K      tasks of a node at once (the job's --ntasks-per-node, else the
                           node's CPUs divided by --cpus-per-task)
  --output=FILE            output of a task, with %a for its ID and %j for the job (DIR/out/%a);
                           --error=FILE: errors of a task (with the output)
  --checkpoint=none        how tasks are checkpointed: none, demand (when their node is wanted),
                           periodic:20m, or dmtcp (on demand, by DMTCP)
  --checkpoint-signal=TERM signal that asks a task for its checkpoint
  --checkpoint-cmd=CMD     command that makes it, instead: {} is the task, {pid} its process,
                           {dir} where the checkpoint belongs ($EVO_CHECKPOINT)
  --restart-cmd=CMD        command that goes on from a checkpoint (the task's own command)
  --task-time=20m          how long a task takes that cannot be checkpointed: it does not start
                           where the plan leaves less (default: learn it from those done)
  --drain-time=auto        learn it from what checkpoints take (from 30s on)

A task finds EVO_TASK, EVO_TASK_ID, EVO_NODE and EVO_JOB_ID, and with --checkpoint also
EVO_CHECKPOINT, and EVO_RESTART=1 if it goes on. Exit status 99 says, after the signal: the
checkpoint is made, run me again. On a node that is wanted, tasks that have not ended by the
drain time are killed, and run again elsewhere, those with a checkpoint first. --on-nodes,
--accept and --exclude are as above. evosctl tasks shows how the bag stands.

Exit status with --tasks: 0 if all tasks are done, 1 if some failed, 75 if some are left:
the job ended, or no task would have ended before it.

--jobid=ID names the evolving job (not needed inside the job).
The configuration file is $EVOSLURM_CONFIG, else /etc/evoslurm/evoslurm.yaml.
`

// runUsage returns the same in brief.
func runUsage(program string) string {
	return "Usage: " + program + ` [--component=NAME] [--cores=SHARE] [srun options] command [arguments]
       ` + program + ` --follow[=steps|script] [--drain=CMD] [--drain-signal=SIGNAL] [--drain-time=TIME]
         [--on-nodes=CMD] [--accept=all|shrink|none] [--restart=never|on-failure|always]
         [--restart-limit=N] [srun options] command [arguments]
       ` + program + ` --tasks=FILE|FIRST-LAST[:STEP] [--bag=DIR [--campaign]] [--retries=N]
         [--checkpoint=none|demand|periodic:TIME|dmtcp]
         [--checkpoint-signal=SIGNAL] [--checkpoint-cmd=CMD] [--restart-cmd=CMD] [--output=FILE] [--error=FILE]
         [--task-time=TIME] [--drain-time=TIME|auto] [--on-nodes=CMD] [--accept=all|shrink|none] [srun options] command [arguments]
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
	if help := helper(args); help != nil {
		return statusOf(0, help(), fail)
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
	if err := checkOwn(parsed); err != nil {
		return fail(err)
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
	component, _ := parsed.last("component")
	if _, err := OfComponent(a, component); err != nil {
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
	if parsed.has("follow", "tasks") {
		slurm := &slurmctl.Client{}
		SeeOwnTask(slurm, os.Getenv)
		status, err = c.Follow(context.Background(), client, client.Address(), slurm, signals)
	} else {
		status, err = c.Run(context.Background(), signals)
	}
	cores.Sweep(meetDir())
	return statusOf(status, err, fail)
}

// checkOwn refuses what can be seen to be wrong in the options that srun does not have.
func checkOwn(args srunArgs) error {
	for _, name := range bagOwn {
		if args.has(name) && !args.has("tasks") {
			return fmt.Errorf("--%s is for --tasks", name)
		}
	}
	for _, name := range followOwn {
		if args.has(name) && !args.has("follow", "tasks") {
			return fmt.Errorf("--%s is for --follow", name)
		}
	}
	_, err := Command{}.sharing(args)
	return err
}

// helper returns what an evosrun that serves another one does, or nil if it is not one.
func helper(args []string) func() error {
	if len(args) == 1 && args[0] == workerFlag {
		return work
	}
	return coresHelper(args)
}

// statusOf returns an exit status, or what fail returns for an error.
func statusOf(status int, err error, fail func(error) int) int {
	if err != nil {
		return fail(err)
	}
	return status
}
