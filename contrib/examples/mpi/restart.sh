#!/bin/bash
#SBATCH --job-name=heat --output=heat-%j.out
#EVO --profile=1@5m,8@30m,2@10m
until [ -n "$EVO_DONE" ]; do
	( eval "$(evosctl env --no-slurm)" && evosctl hostfile --format=mpich --slots=1 -o hosts-$EVO_JOB_ID &&
	mpiexec.mpich -launcher ssh -launcher-exec "$(command -v evolaunch)" -f hosts-$EVO_JOB_ID ./heat-mpich ${ITERATIONS:-100000} heat-$EVO_JOB_ID ) || exit
	eval "$(evosctl next)" || exit
done
