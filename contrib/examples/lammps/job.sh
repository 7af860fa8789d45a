#!/bin/bash
#SBATCH --job-name=deposit --output=deposit-%j.out
#EVO --profile=1@5m,8@30m,2@10m
export OMPI_MCA_plm=rsh OMPI_MCA_plm_rsh_agent=evolaunch
until [ -n "$EVO_DONE" ]; do
	( eval "$(evosctl env --no-slurm)" && evosctl hostfile --format=openmpi --slots=${RANKS:-1} -o hosts-$EVO_JOB_ID &&
	mpiexec --hostfile hosts-$EVO_JOB_ID lmp -in deposit.lmp -var name deposit-$EVO_JOB_ID -var more ${MORE:-20000} -log none ) || exit
	eval "$(evosctl next)" || exit
done
