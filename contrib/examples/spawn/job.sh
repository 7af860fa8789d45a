#!/bin/bash
#SBATCH --job-name=mandelbrot --output=mandelbrot-%j.out
#EVO --profile=1@5m,8@30m,2@10m
eval "$(evosctl env --no-slurm)" # Open MPI is to start its daemons by evolaunch, on whichever node of the job
export OMPI_MCA_plm=rsh OMPI_MCA_plm_rsh_agent=evolaunch PMIX_MCA_gds=hash
mpiexec -n 1 --host localhost:2 python3 mandelbrot.py
