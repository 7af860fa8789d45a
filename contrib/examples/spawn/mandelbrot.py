import os, struct, sys, time, zlib
from mpi4py import MPI

width, height = int(os.environ.get("WIDTH", 600)), int(os.environ.get("HEIGHT", 400))
STOP = 1  # the tag of the last message to a worker

def row(y):
    """The colours of a row: how soon each point is known to leave."""
    colours = bytearray()
    for x in range(width):
        c = complex(-2.2 + 3.2 * x / width, -1.2 + 2.4 * y / height)
        z, n = c, 0
        while n < 255 and abs(z) < 2:
            z, n = z * z + c, n + 1
        colours.append(255 - int(255 * (n / 255) ** 0.4))
    return bytes(colours)

def worker(master):
    status = MPI.Status()
    while True:
        y = master.recv(source=0, status=status)
        if status.Get_tag() == STOP:
            break
        master.send((y, row(y)), dest=0)
        time.sleep(float(os.environ.get("PAUSE", 0)))
    master.Disconnect()

def spawn(node):
    info = MPI.Info.Create()
    info["add-host"] = info["host"] = node
    return MPI.COMM_SELF.Spawn(sys.executable, [__file__], 1, info)

def stop(workers, node):
    """Ends the worker of a node; whatever it was sent is answered first."""
    workers[node].send(None, dest=0, tag=STOP)
    workers.pop(node).Disconnect()

def master():
    import evoslurm
    workers, busy, used = {}, {}, set()
    todo, picture = list(range(height))[::-1], {}

    def leave(step, change):
        """Ends the workers of the nodes that go, once they have answered."""
        if any(node in busy for node in change.leaving):
            return False
        for node in change.leaving:
            stop(workers, node)

    nodes = evoslurm.Adaptive(plan=leave, execute=lambda step, change: print(f"step {step.number}: {len(step.nodes)} nodes", flush=True))
    while len(picture) < height:
        step = nodes.point()
        for node in step.nodes:
            if node not in workers and node not in nodes.leaving and len(picture) < height:
                workers[node] = spawn(node)
        for node, w in workers.items():
            if node in busy and w.Iprobe(source=0):
                y, colours = w.recv(source=0)
                picture[busy.pop(node)] = colours
                used.add(node)
            if node not in busy and node not in nodes.leaving and todo:
                busy[node] = todo.pop()
                w.send(busy[node], dest=0)
        time.sleep(0.002)
    for node in list(workers):
        stop(workers, node)
    write(f"mandelbrot-{step.job}.png", picture)
    print(f"{height} rows by the workers of {len(used)} nodes", flush=True)

def write(name, picture):
    """Writes a grey PNG."""
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    rows = b"".join(b"\0" + picture[y] for y in range(height))
    with open(name, "wb") as f:
        f.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0))
                + chunk(b"IDAT", zlib.compress(rows, 9)) + chunk(b"IEND", b""))

if sys.argv[1:] == ["alone"]:
    write("alone.png", {y: row(y) for y in range(height)})
elif (parent := MPI.Comm.Get_parent()) != MPI.COMM_NULL:
    worker(parent)
else:
    master()
