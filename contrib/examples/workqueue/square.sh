sleep ${PAUSE:-1} # the work
echo $(($1 * $1)) $SLURMD_NODENAME
