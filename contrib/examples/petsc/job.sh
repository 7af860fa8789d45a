#!/bin/bash
#SBATCH --job-name=heat --output=heat-%j.out
#EVO --profile=1@5m,8@30m,2@10m
export PETSC_DIR=${PETSC_DIR:-$(echo /usr/lib/petscdir/petsc*/*-real)} # where no alternative is set
export OMPI_MCA_plm=rsh OMPI_MCA_plm_rsh_agent=evolaunch
while :; do
	( eval "$(evosctl env --no-slurm)" # MPI by evolaunch, on all nodes of the job, also in drive mode companion
	evosctl hostfile --format=openmpi --slots=${RANKS:-1} -o hosts-$EVO_JOB_ID &&
	mpiexec --hostfile hosts-$EVO_JOB_ID python3 heat.py heat-$EVO_JOB_ID ${ITERATIONS:-1000} ) || exit
	eval "$(evosctl next)" || exit
	[ -z "$EVO_DONE" ] || break
done
