#!/bin/bash
#SBATCH --job-name=bag --output=bag-%j.out
#EVO --profile=1@5m,8@30m,2@10m
evosrun --tasks=0-$((${TASKS:-1000} - 1)) --drain-time=${DRAIN:-30s} -- python3 square.py
status=$?
evosctl tasks
cat evobag-$SLURM_JOB_ID/out/* | python3 square.py sum
exit $status
