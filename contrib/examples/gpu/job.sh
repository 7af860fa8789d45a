#!/bin/bash
#SBATCH --job-name=gpus --output=gpus-%j.out
#EVO --profile=1@5m,8@30m,2@10m
evosrun --follow --drain-time=${DRAIN:-30s} -- sh worker.sh
