#!/bin/bash
#SBATCH --job-name=train --output=train-%j.out
#EVO --profile=1@5m,8@30m,2@10m
export MASTER=${MASTER:-$SLURMD_NODENAME}:$((20000 + SLURM_JOB_ID % 10000)) OMP_NUM_THREADS=${THREADS:-1}
while :; do
	evosrun --ntasks-per-node=1 sh -c 'exec torchrun --nnodes=$EVO_NTASKS --node_rank=$EVO_RANK --nproc_per_node=1 -r 9:1 -t 9:1 \
		--master_addr=${MASTER%:*} --master_port=${MASTER#*:} train.py '${ITERATIONS:-1000} || exit
	eval "$(evosctl next)" || exit
	[ -z "$EVO_DONE" ] || break
done
