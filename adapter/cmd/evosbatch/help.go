package main

const usage = `Usage: evosbatch [sbatch options] --profile=NODES@DURATION[,NODES@DURATION...]
       evosbatch [sbatch options] --component=NAME --profile=PROFILE [--component=...]
       evosbatch [sbatch options] --moldable=ALTERNATIVES [--moldable-by=preference]
       evosbatch [sbatch options] --malleable=MIN-MAX|--profile=... --tasks=FILE|FIRST-LAST
                 [--bag=DIR] [--retries=N] [--checkpoint=none|demand|periodic:TIME|dmtcp]
                 [--task-time=TIME] [--drain-time=TIME|auto] -- command {}
       evosbatch [sbatch options] --malleable=MIN-MAX [--size=any|pow2|multiple:K]
                 [--grace=DURATION] [--speedup=FILE|amdahl:F]
       evosbatch [sbatch options] --best-effort [--nodes=MIN-MAX] [--no-requeue]
                 [--expand-limit=1|2|inf] [--drive=auto|merge|companion|chain]
                 [--max-nodes=N] [--on-grow=CMD] [--on-shrink=CMD] [--on-step=CMD]
                 [--require-profile] [--rigid] [--dry-run] script [args]
`

const help = usage + `
Submit an evolving job: its number of nodes changes while it runs, as its evolution
profile says. evosbatch works and prints like sbatch. The job waits until Evoslurm
starts it.

Options of evosbatch:
      --profile=NODES@DURATION[,...]  the steps of the job: nodes and duration. Durations
                              are 90s, 10m, 1h30m, or Slurm's: MM, MM:SS, HH:MM:SS,
                              D-HH, D-HH:MM:SS. @NAME or @PATH reads a file (evosctl
                              profile writes one). auto:NAME takes the profile that
                              would have fitted your last five runs of the job of that
                              name, and prints it with these runs. The last step may
                              be open, as in '2@10m,?1-16@2h': MIN nodes are promised
                              there, and MAX is a claim, as by --max-nodes. A step may
                              have a CPU frequency for its srun commands: low, medium,
                              high, highm1, or a number, as in 2@10m:low,5@30m:2.1GHz
      --component=NAME        before a --profile: the profile is that of one of several
                              coupled codes, which share the job's nodes. Each keeps
                              its nodes as far as possible (see evosrun --component)
      --moldable=ALTERNATIVES alternatives; the job gets one at its start:
                              4@2h,8@70m,16@40m, or whole profiles between bars:
                              '2@10m,5@30m | 4@15m,8@20m'
      --moldable-by=preference  prefer the alternative that completes first (completion,
                              the default), wastes least (waste), or costs the fewest
                              node-hours (node-hours)
      --malleable=MIN-MAX     run on MIN to MAX nodes, which may change at any time;
                              MIN is promised, for --time. With steps, use
                              --profile=2-4@10m,5-16@30m
      --best-effort           run on MIN to MAX nodes (--nodes) that nobody else has, was
                              promised, or could use, and leave all of them when they
                              are wanted, within --grace. Then the job waits again
                              (with --no-requeue: ends)
      --clusters, -M a,b|all  ask the sidecars of these clusters where the job would run,
                              show the answers, and submit it to the best one
      --placement=POLICY      which that is: earliest (the default) completes it first,
                              worst-fit, cluster-min, and flexible-cluster-min have the
                              most nodes free for it now, close-to-files has room where
                              its input files are first
      --stage-in=FILE[,...]   input files, with --clusters: a cluster without them gets
                              them before the script begins, by the site's command
      --size=any|pow2|multiple:K  numbers of nodes that it can use within these bounds
      --grace=DURATION        longest time to give nodes back (default: the site's)
      --speedup=FILE|amdahl:F  speed on different numbers of nodes: lines of nodes and
                              speed-up or time, or amdahl: and the parallel part
      --expand-limit=limit    how long a step may keep its nodes while it waits for
                              the next one's, as a multiple of its duration: 1 is
                              never longer, inf has no bound (default: the site's)
      --drive=mode            how Slurm gives the nodes: auto, merge, companion, or
                              chain (each step is a separate job, which gets
                              EVO_STEP and EVO_STEPS) (default: the site's)
      --max-nodes=N           a claim: with evosctl grow, the job may have up to N
                              nodes, and gets them in finite time
      --prefer-start, --prefer-waste, --prefer-near
                              what the job wants of its own placement: the earliest
                              start, the fewest node-seconds idle, or the fewest
                              switches. The job may wait for that, as the site allows;
                              then other jobs are planned around its later start
      --on-grow=CMD, --on-shrink=CMD, --on-step=CMD
                              commands that evosctl next runs in the job: after nodes
                              have come, before nodes leave, after a step has begun
      --tasks=FILE|1-30000    submit a bag of tasks: the job runs the command after the
                              options once for each line of the file, or each number,
                              on the nodes that come and go, by evosrun --tasks, which
                              explains --bag, --retries, --checkpoint, --checkpoint-cmd,
                              --checkpoint-signal, --restart-cmd, --task-time, and
                              --drain-time.
                              --tasks=4 is --tasks-per-node=4, as of sbatch
      --best-effort --tasks=… --clusters=NAME,NAME|all
                              submit a campaign: one best-effort job to each of these
                              clusters, which work the bag off together. Its folder
                              (--bag=DIR, default: evocampaign-1, …) must be the same
                              on all of them. With --wait, stay until all tasks have
                              ended, and submit again where a job has ended before
      --collect=CMD           command that a job of the campaign runs once all tasks have
                              ended, with {dir} for the folder
      --require-profile       refuse a job without a profile (default: submit it as a
                              stock job by sbatch)
      --rigid                 submit an ordinary job with the profile's largest number of
                              nodes (of --malleable: MIN; of --moldable: the first
                              alternative's) for the whole time. evosctl next in it
                              goes from step to step at once, and runs no hooks. For
                              sites where Evoslurm does not drive jobs yet
      --dry-run               print the sbatch command line, without submitting

The same options in the script, before its first command (the command line wins):
      #EVO --profile=2@10m,5@30m,1@5m

Or in the environment, which overrides the script: EVOSBATCH_PROFILE, _MOLDABLE,
_MOLDABLE_BY, _EXPAND_LIMIT, _DRIVE, _MAX_NODES, _ON_GROW, _ON_SHRINK, _ON_STEP, …
Variables that do not apply to the job (_MOLDABLE_BY without a choice) are ignored
with a warning.

All of sbatch's options work, on the command line, in SBATCH_ variables and on
#SBATCH lines, except those that contradict the profile or cannot be planned:
--nodes, heterogeneous jobs, resources per socket or per GPU.
--gres, --gpus-per-node, --gpus-per-task (with --ntasks-per-node) and --gpus (if the
first step's nodes divide it) apply to every node of every step. --time is optional;
it is for the whole job, and must not be shorter than the profile (of a chain, for
each job, and not shorter than the longest step; with --malleable, its default is
the partition's). --begin is the earliest start. sbatch's own
--profile=all|none|energy|task|... goes to sbatch.

Help options:
  -h, --help                  show this help
      --usage                 display brief usage
  -V, --version               output version information
`
