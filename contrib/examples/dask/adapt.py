import os, sys
import evoslurm
from dask.distributed import Client

with Client(scheduler_file=os.environ["SCHEDULER"]) as client:
    evoslurm.Adaptive(
        observe=lambda step: client.sync(client.scheduler.adaptive_target, target_duration="5s"),  # the scheduler's own estimate
        decide=lambda step, wanted: min(max(wanted, 1), int(sys.argv[1])),
        execute=lambda step, change: print(f"{len(step.nodes)} nodes, {change.nodes} wanted", flush=True),
    ).run(lambda: client.status == "running")
