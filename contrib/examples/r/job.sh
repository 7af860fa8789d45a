#!/bin/bash
#SBATCH --job-name=squares --output=squares-%j.out
#EVO --profile=1@5m,8@30m,2@10m
export NODES=nodes-$SLURM_JOB_ID MASTER=${MASTER:-$(hostname)}
evosctl hostfile -o $NODES || exit
evosrun --follow --drain='bash leave.sh' --drain-time=${DRAIN:-30s} --on-nodes='evosctl hostfile -o $NODES' -- sleep infinity & follower=$!
Rscript squares.R ${TASKS:-10000} squares-$SLURM_JOB_ID.rds; status=$?
kill $follower
wait
exit $status
