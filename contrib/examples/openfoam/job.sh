#!/bin/bash
#SBATCH --job-name=cavity --output=cavity-%j.out
#EVO --profile=1@5m,8@30m,2@10m
export OMPI_MCA_plm=rsh OMPI_MCA_plm_rsh_agent=evolaunch WM_PROJECT_DIR=${WM_PROJECT_DIR:-/usr/share/openfoam}
[ -d case-$SLURM_JOB_ID ] || cp -r case case-$SLURM_JOB_ID
until [ -n "$EVO_DONE" ]; do
	( eval "$(evosctl env --no-slurm)" && evosctl hostfile --format=openmpi --slots=${RANKS:-1} -o hosts-$EVO_JOB_ID &&
	bash step.sh case-$EVO_JOB_ID $PWD/hosts-$EVO_JOB_ID ${MORE:-0.1} ) || exit
	eval "$(evosctl next)" || exit
done
