#!/bin/bash
#SBATCH --job-name=adaptive --output=adaptive-%j.out
#EVO --profile=1@1h
export SCHEDULER=$PWD/scheduler-$SLURM_JOB_ID.json
dask scheduler --scheduler-file=$SCHEDULER --port=0 --no-dashboard ${INTERFACE:+--interface=$INTERFACE} &
python3 squares.py ${TASKS:-1000} &
main=$!
python3 adapt.py ${MOST:-8} &
evosrun --follow=script --drain-time=${DRAIN:-30s} --drain='python3 leave.py' -- \
	sh -c 'exec dask worker --scheduler-file=$SCHEDULER --name=$EVO_NODE --nthreads=1 --no-nanny --no-dashboard ${INTERFACE:+--interface=$INTERFACE}' || exit
wait $main
