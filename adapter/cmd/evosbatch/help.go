package main

const usage = `Usage: evosbatch [sbatch options] --profile=NODES@DURATION[,NODES@DURATION...]
       evosbatch [sbatch options] --moldable=ALTERNATIVES [--moldable-by=preference]
       evosbatch [sbatch options] --malleable=MIN-MAX [--size=any|pow2|multiple:K]
                 [--grace=DURATION] [--speedup=FILE|amdahl:F]
                 [--expand-limit=1|2|inf] [--drive=auto|merge|companion|chain]
                 [--max-nodes=N] [--on-grow=CMD] [--on-shrink=CMD] [--on-step=CMD]
                 [--require-profile] [--dry-run] script [args]
`

const help = usage + `
Submits an evolving job: one whose node count changes while it runs, as its
evolution profile says. Works as sbatch does and prints what sbatch prints; the
job waits until Evoslurm starts it.

Options of evosbatch:
      --profile=NODES@DURATION[,...]  the steps of the job: how many nodes, for how
                              long. Durations as 90s, 10m, 1h30m, or as Slurm has
                              them: MM, MM:SS, HH:MM:SS, D-HH, D-HH:MM:SS; @NAME or
                              @PATH: as a file says (evosctl profile writes one);
                              auto:NAME: what would have fitted your last five runs of
                              the job of that name (it says which, and what it took)
      --moldable=ALTERNATIVES alternatives; the job gets one of them when it starts:
                              4@2h,8@70m,16@40m, or whole profiles with bars between:
                              '2@10m,5@30m | 4@15m,8@20m'
      --moldable-by=preference  the one that completes first (completion, the default),
                              wastes least (waste), or costs fewest node-hours
                              (node-hours)
      --malleable=MIN-MAX     the job runs on MIN to MAX nodes, changed while it runs; MIN
                              is promised, for --time. With steps it is
                              --profile=2-4@10m,5-16@30m
      --size=any|pow2|multiple:K  how many nodes it can use within these bounds
      --grace=DURATION        how long it may take to give nodes back (default: the
                              site's)
      --speedup=FILE|amdahl:F  how fast it is on how many nodes: lines of nodes and
                              speed-up or time, or the part that runs in parallel
      --expand-limit=limit    how long a step may keep its nodes while it waits for
                              the next one's, as a multiple of its duration: 1 is
                              never longer, inf has no bound (default: the site's)
      --drive=mode            how the nodes are brought: auto, merge, companion,
                              or chain: each step a job of its own, which gets
                              EVO_STEP and EVO_STEPS (default: the site's)
      --max-nodes=N           a claim: with evosctl grow the job may have up to N nodes
                              at once, and gets them in finite time
      --on-grow=CMD, --on-shrink=CMD, --on-step=CMD
                              run in the job, by evosctl next: once nodes have come,
                              before nodes leave, whenever a step has begun
      --require-profile       refuse a job that has no profile; else it is a stock job,
                              and submitted by sbatch as if that had been called
      --dry-run               print the sbatch command line, submit nothing

The same options in the script, before its first command (the command line wins):
      #EVO --profile=2@10m,5@30m,1@5m

Or in the environment, which overrides the script: EVOSBATCH_PROFILE, _MOLDABLE,
_MOLDABLE_BY, _EXPAND_LIMIT, _DRIVE, _MAX_NODES, _ON_GROW, _ON_SHRINK, _ON_STEP, …
Variables that do not apply to the job (_MOLDABLE_BY without a choice) are ignored
with a warning.

All of sbatch's options work, on the command line, in SBATCH_ variables and on
#SBATCH lines, except those that contradict the profile or cannot be planned:
--nodes, --array, --reservation, heterogeneous jobs, resources per socket or per GPU.
--gres, --gpus-per-node, --gpus-per-task (with --ntasks-per-node) and --gpus (where
it divides by the first step's nodes) apply to every node of every step.
--time may be left out; it is the whole job's and not shorter than the profile
(with --malleable the partition's default is).
--begin is the earliest start. sbatch's own --profile=all|none|energy|task|... is
passed on.

Help options:
  -h, --help                  show this help
      --usage                 display brief usage
  -V, --version               output version information
`
