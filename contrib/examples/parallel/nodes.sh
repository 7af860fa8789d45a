# Writes the nodes that parallel may use to the file $NODES. "leave" leaves this node out, and waits until its tasks have ended.
{
	flock 9 || exit
	if [ "$1" = leave ]; then grep -vxF "$EVO_NODE" $NODES; else evosctl hostfile; fi >$NODES.new
	[ -s $NODES.new ] || exit 0 # with an empty file, parallel would run tasks where it runs itself
	now=$(date +%s) next=$(($(stat -c %Y $NODES 2>/dev/null || echo 0) + 2)) # parallel does not see what is newer by one second
	touch -d @$((now > next ? now : next)) $NODES.new && mv $NODES.new $NODES
} 9>$NODES.lock
if [ "$1" = leave ]; then
	sleep 3 # in which parallel reads it
	flock $NODES.$EVO_NODE true
fi
