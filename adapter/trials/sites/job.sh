#!/bin/bash
# An evolving job that tells in every step what it has, seen from inside. Arguments: a
# command that it also runs in every step, which must succeed, how many seconds it waits
# before it looks at its nodes, and the seconds of each step.
also=$1 pause=$2
shift 2
step=1
for seconds; do
	if ((step > 1)); then
		echo "leave $((step - 1)) $EPOCHREALTIME"
		eval "$(evosctl next)" || exit 1
	fi
	echo "begin $step $EPOCHREALTIME"
	sleep "$pause"
	echo "allocation $step $(evosctl env --json | tr -d '\n ')"
	evosrun --ntasks-per-node=1 sh -c 'echo "node '$step' $SLURMD_NODENAME gpus=$CUDA_VISIBLE_DEVICES"' ||
		echo "wrong $step evosrun: exit status $?"
	if [ -n "$also" ]; then
		said=$(eval "$also" 2>&1) || echo "wrong $step $also: exit status $?:" $said
	fi
	echo "settled $step $EPOCHREALTIME"
	ends=$((SECONDS + seconds))
	while ((SECONDS < ends)); do sleep 0.2; done
	((step++))
done
echo "leave $((step - 1)) $EPOCHREALTIME"
eval "$(evosctl next)"
echo "end done=$EVO_DONE"
