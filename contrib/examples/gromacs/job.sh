#!/bin/bash
#SBATCH --job-name=water --output=water-%j.out
#EVO --profile=1@5m,8@30m,2@10m
export OMPI_MCA_plm=rsh OMPI_MCA_plm_rsh_agent=evolaunch
until [ -n "$EVO_DONE" ] || [ -e md-$SLURM_JOB_ID.gro ]; do # which mdrun writes after its last timestep
	eval "$(evosctl peek)" # when the step ends: EVO_NEXT_AT; the last one ends with the job
	[ -n "$EVO_NEXT_STEP" ] || EVO_NEXT_AT=$(date -d "$(squeue -h -o %e -j $SLURM_JOB_ID)" +%s)
	left=$((${EVO_NEXT_AT:-0} - $(date +%s) - ${SPARE:-30}))
	( eval "$(evosctl env --no-slurm)" && evosctl hostfile --format=openmpi --slots=${RANKS:-1} -o hosts-$EVO_JOB_ID &&
	mpiexec --hostfile hosts-$EVO_JOB_ID gmx_mpi -quiet mdrun -ntomp 1 -s md.tpr -deffnm md-$EVO_JOB_ID -cpi md-$EVO_JOB_ID.cpt \
		-maxh $(((left > 10 ? left : 10) * 100000 / 3600))e-5 ) || exit
	eval "$(evosctl next)" || exit
done
