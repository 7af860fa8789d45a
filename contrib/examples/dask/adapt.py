import os, sys, time
import evoslurm
from dask.distributed import Client

with Client(scheduler_file=os.environ["SCHEDULER"]) as client:
    step = evoslurm.current()
    while client.status == "running":
        time.sleep(1)
        wanted = client.sync(client.scheduler.adaptive_target, target_duration="5s")  # by the scheduler's own estimate
        more = min(max(wanted, 1), int(sys.argv[1])) - len(step.nodes)
        try:
            if more > 0:
                step = evoslurm.grow(more, least=1)
            elif more < 0:
                step = evoslurm.shrink(-more)
            else:
                continue
            print(f"{len(step.nodes)} nodes, {wanted} wanted", flush=True)
        except evoslurm.Refused as refusal:
            print(refusal, flush=True)  # nothing has changed
