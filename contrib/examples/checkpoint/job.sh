#!/bin/bash
#SBATCH --job-name=solve --output=solve-%j.out
#EVO --profile=1@5m,8@30m,2@10m
while :; do
	evosrun python3 solve.py ${ITERATIONS:-1000} || exit
	eval "$(evosctl next)" || exit
	[ -z "$EVO_DONE" ] || break
done
python3 solve.py 0
