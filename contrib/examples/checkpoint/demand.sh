#!/bin/bash
#SBATCH --job-name=demand --output=demand-%j.out --time=30
#EVO --malleable=1-8 --grace=1m
evosrun --tasks=0-$((${TASKS:-24} - 1)) --checkpoint=demand --drain-time=30s -- python3 pendulum.py {} ${ITERATIONS:-100000}
status=$?
evosctl tasks
cat evobag-$SLURM_JOB_ID/out/* | sort -n
exit $status
