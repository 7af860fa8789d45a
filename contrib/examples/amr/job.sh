#!/bin/bash
#SBATCH --job-name=amr --output=amr-%j.out
#EVO --profile=1@5m,8@30m,2@10m
export OMPI_MCA_plm=rsh OMPI_MCA_plm_rsh_agent=evolaunch
until [ -n "$EVO_DONE" ]; do
	( eval "$(evosctl env --no-slurm)" && evosctl hostfile --format=openmpi --slots=${RANKS:-1} -o hosts-$EVO_JOB_ID &&
	mpiexec --hostfile hosts-$EVO_JOB_ID ./amr amr-$EVO_JOB_ID ${ITERATIONS:-512} ${LEVEL:-8} ) || exit
	eval "$(evosctl next)" || exit
done
