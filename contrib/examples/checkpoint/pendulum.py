import json, math, os, signal, sys

wanted = []
signal.signal(signal.SIGTERM, lambda *_: wanted.append(True))  # the node is: there is the grace to save the state
checkpoint, body, iterations, dt = os.environ["EVO_CHECKPOINT"], int(sys.argv[1]), int(sys.argv[2]), 1e-3
x, v, step, runs = 1.0 + body / 24, 0.0, 0, 0
if os.environ["EVO_RESTART"]:
    with open(checkpoint) as f:
        x, v, step, runs = json.load(f)
while step < iterations:
    v -= dt / 2 * math.sin(x)  # leapfrog
    x += dt * v
    v -= dt / 2 * math.sin(x)
    step += 1
    if wanted:
        with open(checkpoint + ".new", "w") as f:
            json.dump([x, v, step, runs + 1], f)
        os.rename(checkpoint + ".new", checkpoint)  # all of it, or nothing
        sys.exit(99)  # not done: run me again
print(f"{body}: energy {v * v / 2 - math.cos(x):.12f} after {step} steps in {runs + 1} runs")
