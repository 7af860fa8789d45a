#!/bin/bash
#SBATCH --job-name=workqueue --output=workqueue-%j.out
#EVO --profile=1@5m,8@30m,2@10m
export FLOW=$PWD/flow-$SLURM_JOB_ID MASTER=${MASTER:-$(hostname)}
[ -e $FLOW/secret ] || { # else a requeued job goes on
	mkdir -p $FLOW && cp square.sh $FLOW
	seq ${TASKS:-10000} | awk 'BEGIN { print "CORES=1\nMEMORY=100\nDISK=10" } { print "out/" $1 ": square.sh\n\tmkdir -p out && sh square.sh " $1 " >out/" $1 }' >$FLOW/squares.mf
	(umask 077; head -c 32 /dev/urandom | base64 >$FLOW/secret) # with which the manager refuses other users' workers
}
rm -f $FLOW/port
(cd $FLOW && exec makeflow -T wq --port=0 --port-file=port --password=secret squares.mf >>makeflow.out) & main=$!
until [ -s $FLOW/port ]; do kill -0 $main && sleep 0.5 || exit; done
evosrun --follow --drain-time=${DRAIN:-10s} -- sh -c 'exec work_queue_worker --password=$FLOW/secret --cores=${SLOTS:-0} \
	--workdir=${TMPDIR:-/tmp} $MASTER $(cat $FLOW/port)' >>$FLOW/workers.out & workers=$!
wait $main; status=$?
kill $workers 2>/dev/null; wait
find $FLOW/out -type f -exec cat {} + | awk '{ s += $1; on[$2] } END { print NR " done, sum " s ", on " length(on) " nodes" }'
exit $status
