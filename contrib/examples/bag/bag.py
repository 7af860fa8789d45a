import os, signal, sys, time
from pathlib import Path

bag = Path(f"bag-{os.environ['SLURM_JOB_ID']}" if sys.argv[1] != "work" else f"bag-{os.environ['EVO_JOB_ID']}")
todo, doing, done = bag / "todo", bag / "doing", bag / "done"
if sys.argv[1] == "fill":
    for folder in todo, doing, done:
        folder.mkdir(parents=True)
    for i in range(int(sys.argv[2])):
        (todo / str(i)).touch()
elif sys.argv[1] == "work":
    leaving = []
    signal.signal(signal.SIGTERM, lambda *_: leaving.append(True))  # finish the task, then go
    for name in sorted(os.listdir(todo), key=int):
        if leaving:
            break
        try:
            (todo / name).rename(doing / name)  # of all who try, one can
        except FileNotFoundError:
            continue
        time.sleep(0.5)  # the work
        (doing / name).write_text(f"{int(name) ** 2} {os.environ['EVO_NODE']}\n")
        (doing / name).rename(done / name)
else:
    results = [f.read_text().split() for f in done.iterdir()]
    left = len(list(todo.iterdir())) + len(list(doing.iterdir()))
    print(f"{len(results)} done, {left} left, sum {sum(int(r[0]) for r in results)}, on {len({r[1] for r in results})} nodes")
