# In place of your own: every instance has the GPUs of its node.
echo "$EVO_NODE: GPUs $CUDA_VISIBLE_DEVICES"
trap "exit 0" TERM
while :; do sleep 0.2; done
