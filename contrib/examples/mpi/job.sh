#!/bin/bash
#SBATCH --job-name=heat --output=heat-%j.out
#EVO --profile=1@5m,8@30m,2@10m
eval "$(evosctl env --no-slurm)" # mpiexec starts all ranks on this node, and evosctl launch takes them to theirs
export OMPI_MCA_plm_rsh_agent=evolaunch OMPI_MCA_btl=tcp,self PMIX_MCA_gds=hash PMIX_MCA_ptl_base_if_include=${INTERFACE:-eth0}
mpiexec.openmpi -n 1 --host localhost:999 ./heat ${ITERATIONS:-100000}
