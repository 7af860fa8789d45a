#!/bin/bash
# A malleable job that accepts all that it is offered, and lets go of all that it is asked for. What it runs on its first node is
# to go on whatever happens.
srun --nodes=1 --ntasks=1 --nodelist="$SLURMD_NODENAME" --overlap --mem=50 sleep 3600 &
work=$!
after=0
while kill -0 $work 2>/dev/null; do
	eval "$(evosctl wait-event --shell=sh --after=$after --timeout=20s)" || continue
	after=$EVO_OFFER
	if eval "$(evosctl accept "$EVO_OFFER_NODES")"; then
		echo "accepted $EVO_OFFER_KIND $EVO_OFFER_NODES has $EVO_NODES"
	elif [ "$EVO_OFFER_KIND" = shrink ]; then
		echo "wrong $EVO_ERROR"
	fi
done
wait $work
echo "wrong what ran on the first node has ended: $?"
