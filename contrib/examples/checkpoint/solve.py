import json, math, os, sys
from pathlib import Path

folder = Path("state-" + os.environ.get("EVO_JOB_ID", os.environ.get("SLURM_JOB_ID", "alone")))
folder.mkdir(exist_ok=True)
rank, ranks, iterations, bodies, dt = int(os.environ.get("EVO_RANK", 0)), int(os.environ.get("EVO_NTASKS", 1)), int(sys.argv[1]), 24, 1e-3
energy = 0.0
for body in range(rank, bodies, ranks):  # whatever the number of ranks is now
    checkpoint = folder / f"{body}.json"
    x, v, steps = json.loads(checkpoint.read_text()) if checkpoint.exists() else (1.0 + body / bodies, 0.0, 0)
    for _ in range(iterations):  # a pendulum, leapfrog
        v -= dt / 2 * math.sin(x)
        x += dt * v
        v -= dt / 2 * math.sin(x)
    partial = folder / f"{body}.new"
    partial.write_text(json.dumps([x, v, steps + iterations]))
    partial.rename(checkpoint)  # all of it, or nothing
    energy += v * v / 2 - math.cos(x)
print(f"rank {rank} of {ranks}" if iterations else f"energy {energy:.12f} after {steps} iterations")
