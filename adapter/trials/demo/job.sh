#!/bin/bash
# Every job of the demo runs this, evolving or not: arguments are the file of its
# trace and the seconds of each step. At the beginning and at the end of a step a
# srun over all nodes of the job tells which answer; between steps the job waits
# for the next one's nodes.
trace=$1
shift

now() { echo "${EPOCHREALTIME//[.,]/}"; } # microseconds

until_time() { # sleeps until then
	local left=$(($1 - $(now)))
	if ((left > 0)); then
		sleep "$((left / 1000000)).$(printf %06d $((left % 1000000)))"
	fi
}

launch() { # srun, which in drive mode companion reaches a part of the nodes only
	if [ "$EVO_DRIVE" = companion ]; then evosrun "$@"; else srun "$@"; fi
}

ask() { # STEP WHEN: which nodes answer, one task on each
	local begin status answer
	begin=$(now)
	answer=$(launch --ntasks-per-node=1 sh -c 'echo "$SLURMD_NODENAME"')
	status=$?
	echo "nodes $1 $2 $begin $(now) $status" $answer >>"$trace"
}

began=$(now)
echo "begin $began" >>"$trace"
step=1
for seconds; do
	if ((step > 1)); then
		called=$(now)
		eval "$(evosctl next)" || exit 1
		began=$(now)
		echo "next $step $called $began" >>"$trace"
	fi
	ask "$step" first
	until_time $((began + seconds * 1000000 - 1000000))
	ask "$step" last
	until_time $((began + seconds * 1000000))
	((step++))
done
echo "end $(now)" >>"$trace"
