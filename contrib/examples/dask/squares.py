import os, sys, time
from dask.distributed import Client, get_worker

def square(i):
    time.sleep(0.5)  # the work
    return i * i, get_worker().name

with Client(scheduler_file=os.environ["SCHEDULER"]) as client:
    results = []
    for bag in range(2):  # an adaptive job gives back its nodes between the two
        tasks = range(bag, int(sys.argv[1]), 2)
        results += client.gather(client.map(square, tasks))
        time.sleep(float(os.environ.get("PAUSE", 0)))
    print(f"{len(results)} done, sum {sum(r[0] for r in results)}, on {len({r[1] for r in results})} nodes", flush=True)
    client.retire_workers()  # each ends with success, and so does evosrun
    client.shutdown()
