# Has squares.R give this node no more tasks, and waits until it has none.
touch $NODES.leave.$EVO_NODE
while [ -e $NODES.leave.$EVO_NODE ]; do sleep 0.5; done
