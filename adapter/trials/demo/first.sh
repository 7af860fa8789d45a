#!/bin/bash
#SBATCH --job-name=first --output=%x-%j.out
#EVO --profile=2@3m,4@2m,1@1m
# A first evolving job: it says which nodes each step has, "works" until the next one is
# planned, and passes on to it.
eval "$(evosctl env)"
while
    echo "step $EVO_STEP of $EVO_STEPS, $EVO_NODES nodes:" $(evosrun --ntasks-per-node=1 printenv SLURMD_NODENAME | sort)
    end=$(($(date +%s) + 30)) # of the last step
    while
        sleep 1
        eval "$(evosctl peek)"
        [ "$(date +%s)" -lt "${EVO_NEXT_AT:-$end}" ]
    do :; done
    eval "$(evosctl next)" && [ -z "$EVO_DONE" ]
do :; done
echo "done"
