#!/bin/bash
#SBATCH --job-name=dask --output=dask-%j.out
#EVO --profile=1@5m,8@30m,2@10m
export SCHEDULER=$PWD/scheduler-$SLURM_JOB_ID.json
dask scheduler --scheduler-file=$SCHEDULER --port=0 --no-dashboard ${INTERFACE:+--interface=$INTERFACE} &
python3 squares.py ${TASKS:-1000} &
main=$!
evosrun --follow --drain-time=${DRAIN:-30s} --drain='python3 leave.py' -- \
	sh -c 'exec dask worker --scheduler-file=$SCHEDULER --name=$EVO_NODE --nthreads=1 --no-nanny --no-dashboard ${INTERFACE:+--interface=$INTERFACE}' || exit
wait $main
