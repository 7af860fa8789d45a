#!/bin/bash
#SBATCH --job-name=parallel --output=parallel-%j.out
#EVO --profile=1@5m,8@30m,2@10m
export NODES=nodes-$SLURM_JOB_ID PARALLEL_SHELL=/bin/sh
bash nodes.sh || exit
evosrun --follow --on-nodes='bash nodes.sh' --drain='bash nodes.sh leave' --drain-time=${DRAIN:-30s} -- sleep infinity &
for round in 1 2 3 4 5; do # what failed, or lost its node, runs again
	seq ${TASKS:-10000} | parallel --ssh evolaunch --sshloginfile $NODES -j ${SLOTS:-2} -N ${CHUNK:-50} \
		--joblog $NODES.log --resume-failed --results "$NODES.out/{#}" 'flock --shared $NODES.$SLURMD_NODENAME sh square.sh' >/dev/null
	status=$?
	[ $status != 0 ] || break
done
kill %1
wait
cat $NODES.out/*[0-9] | awk '{ s += $1; on[$2] } END { print NR " done, sum " s ", on " length(on) " nodes" }'
exit $status
