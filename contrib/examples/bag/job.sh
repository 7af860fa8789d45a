#!/bin/bash
#SBATCH --job-name=bag --output=bag-%j.out
#EVO --profile=1@5m,8@30m,2@10m
python3 bag.py fill ${TASKS:-1000}
evosrun --follow --drain-time=${DRAIN:-30s} -- python3 bag.py work || exit
python3 bag.py sum
