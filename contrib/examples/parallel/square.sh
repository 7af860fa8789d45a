for n; do
	sleep ${PAUSE:-0.05} # the work
	echo $((n * n)) $SLURMD_NODENAME
done
