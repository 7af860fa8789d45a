# The job that Snakemake has submitted: in each of its steps all nodes share out the same number of tasks.
while [ -z "$EVO_DONE" ]; do
	evosrun --ntasks-per-node=1 sh -c 'i=$EVO_RANK; while [ $i -lt '${TASKS:-1000}' ]; do echo $((i * i)) $SLURMD_NODENAME; i=$((i + EVO_NTASKS)); done' || exit
	eval "$(evosctl next)" || exit 1
done >$1
