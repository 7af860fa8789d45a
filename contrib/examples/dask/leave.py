import os
from dask.distributed import Client

with Client(scheduler_file=os.environ["SCHEDULER"]) as client:  # what the worker knows moves to others
    client.retire_workers(names=[os.environ["EVO_NODE"]])
