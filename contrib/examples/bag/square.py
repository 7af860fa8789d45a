import os, sys, time

if sys.argv[1] == "sum":
    results = [line.split() for line in sys.stdin]
    print(f"{len(results)} done, sum {sum(int(r[0]) for r in results)}, on {len({r[1] for r in results})} nodes")
else:
    time.sleep(0.5)  # the work
    print(int(sys.argv[1]) ** 2, os.environ["EVO_NODE"])
