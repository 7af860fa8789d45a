"""Writes the tables of docs/experiments.md about delay budgets and shares of holds, as Markdown:

    python3 holds.py FOLDER [CONFIGURATION…]

In FOLDER are the traces that run.sh makes; evosim is in PATH. The excerpts of budget.yaml are run with several values of max_delay and of
hold_shares (CONFIGURATION: only those of that name), with 10 and 30 % of their jobs evolving: as they are, and scaled to the sizes of SMALL. On
ATTACKED nodes, the first third of each excerpt is also run beside a hostile user, who submits a job of one of the profiles HOSTILE every
three hours at most, N being 90 % of the nodes. Stock jobs are compared with those beside the same jobs rigid at peak on Slurm, and where
there is a hostile user, with those without that user. It takes a quarter of an hour of one core.
"""

import concurrent.futures
import gzip
import json
import math
import os
import pathlib
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).parent
TRACE = re.compile(r"- \{file: (?P<file>[^,}]+)(?:, name: (?P<name>\w+))?, skip: (?P<skip>\d+), jobs: (?P<jobs>\d+)\}")
DECLARED = (HERE / "budget.yaml").read_text()
TRACES = {m["name"] or m["file"].split(".")[0]: m for m in TRACE.finditer(DECLARED)}
SHARES, SEEDS = (json.loads(re.search(rf"^{name}: (.*)", DECLARED, re.MULTILINE)[1]) for name in ("shares", "seeds"))
SMALL, ATTACKED = (4, 16), 16
HOSTILE = {"long": [(1500, 1), (25200, 0)], "late": [(25200, 1), (3600, 0)], "short": [(3000, 1), (60, 0)] * 3}  # seconds and nodes; 0: N


def shares(reservations, nodes, node_hours):
    """A configuration's hold_shares, each for job, user and account."""
    lines = [f"  {name}: {{reservations: {reservations[i]}, nodes: {nodes[i]}, node_hours: {node_hours[i]}}}\n" for i, name in enumerate(("job", "user", "account"))]
    return "".join(["hold_shares:\n", *lines])


def hours(job, account):
    """The default hold_shares, with other node_hours."""
    return shares((25, 50, 75), (100, 75, 100), (job, job, account))


ALL = (100, 100, 100)
CONFIGS = {f"max_delay {d}": f"max_delay: {d}\n" for d in ("0s", "15m", "1h", "4h")} | {
    "no max_delay": "max_delay: 8760h\n",
    **{f"node_hours {job}": hours(job, account) for job, account in ((25, 37), (12, 18), (6, 9))},
    "no shares": shares(ALL, ALL, ALL),
}


def excerpt(folder, name):
    """Writes the excerpt of a trace: the jobs that ran, after those to skip."""
    file, skip, most = TRACES[name]["file"], int(TRACES[name]["skip"]), int(TRACES[name]["jobs"])
    out = folder / f"excerpt-{name}.swf"
    header, jobs, ran = [], [], 0
    with (gzip.open if file.endswith(".gz") else open)(folder / file, "rt", errors="replace") as lines:
        for line in lines:
            if line.startswith(";"):
                header += [line] * ("MaxJobs" not in line and "MaxRecords" not in line)
                continue
            fields = line.split()
            if len(fields) < 18 or float(fields[3]) <= 0 or max(float(fields[4]), float(fields[7])) <= 0:
                continue
            ran += 1
            if ran > skip and len(jobs) < most:
                jobs.append(line)
    first = float(jobs[0].split()[1])  # nothing happens before it
    moved = [" ".join([f[0], f"{float(f[1]) - first:.0f}", *f[2:]]) + "\n" for f in map(str.split, jobs)]
    out.write_text("".join(header + moved))
    return out


def evosim(*arguments):
    return subprocess.run(["evosim", *map(str, arguments)], check=True, capture_output=True, text=True).stdout


def scaled(path, nodes):
    """An excerpt on a small machine."""
    out = path.with_name(f"{nodes}-{path.name}")
    evosim("trace", "scale", f"--machine={nodes}", f"--output={out}", path)
    return out


def hostile(path, kind):
    """Adds a hostile user's jobs to the first third of an excerpt."""
    work = json.loads(evosim("trace", "convert", "--to=json", path))
    work["jobs"] = work["jobs"][: len(work["jobs"]) // 3]
    last = int(max(job.get("submit", 0) for job in work["jobs"]))
    wide = max(2, int(0.9 * work["nodes"]))
    for k, at in enumerate(range(0, max(last, 1), max(3 * 3600, last // 4))):
        profile = [{"duration": seconds, "nodes": nodes or wide} for seconds, nodes in HOSTILE[kind]]
        work["jobs"].append({"id": f"9000{k:03d}", "submit": at, "profile": profile})
    work["jobs"].sort(key=lambda job: job.get("submit", 0))
    out = path.with_name(f"{kind}-{path.stem}.json")
    out.write_text(json.dumps(work))
    return out


def run(config, path, *options):
    """Runs a workload with a configuration; the outcome."""
    file = path.with_name(f"{''.join(c if c.isalnum() else '-' for c in config)}.yaml")
    file.write_text(CONFIGS.get(config, ""))
    return json.loads(evosim("run", f"--config={file}", "--format=json", "--lenient", *options, path))


def kept(outcome):
    """How many growths there were, and how many came within ten seconds of what was planned at the job's start."""
    growths = on_time = 0
    for job in outcome["jobs"]:
        if not job.get("evolving"):
            continue
        began = {step["step"]: step["at"] for step in job.get("steps") or []}
        planned = job.get("planned") or []
        for i in range(1, len(planned) - 1):
            if planned[i]["nodes"] > planned[i - 1]["nodes"]:
                growths += 1
                on_time += i + 1 in began and began[i + 1] - planned[i]["at"] <= 10
    return growths, on_time


def starts(outcome):
    """When each stock job starts."""
    return {job["id"]: job["start"] for job in outcome["jobs"] if not job.get("evolving") and job["start"] >= 0}


def rigid(folder, machine, excerpts):
    """When stock jobs start beside the same jobs rigid at peak on Slurm, by trace, share and seed."""
    text = DECLARED
    for name, path in excerpts.items():
        text = text.replace(TRACES[name][0], f"- {{file: {path.name}, name: {name}}}")
    declared, out = folder / f"rigid {machine}.yaml", folder / f"rigid {machine}"
    declared.write_text(text)
    evosim("sweep", f"--output={out}", declared)
    done = (json.loads(path.read_text()) for path in out.glob("*.json"))
    return {(d["trace"], d["share"], d["seed"]): starts(d) for d in done}


def figures(config, path, options, others):
    """What is shown of a run."""
    outcome = run(config, path, *options)
    return *kept(outcome), outcome["metrics"]["held_idle"] / 3600, [at - others[name] for name, at in starts(outcome).items() if name in others]


def row(config, all_figures):
    """A line of a table: sums, and delays in minutes, over some runs."""
    growths, on_time, held = (sum(f[i] for f in all_figures) for i in range(3))
    delays = sorted(d for f in all_figures for d in f[3])
    late = [d / 60 for d in delays if d > 60] or [0]
    p50, p95 = (late[math.ceil(len(late) * part) - 1] for part in (0.5, 0.95))
    share = 100 * sum(d > 60 for d in delays) / len(delays)
    return f"| {config} | {on_time} of {growths} | {held:,.0f} h | {share:.1f} % | {p50:.0f} | {p95:.0f} | {late[-1]:,.0f} | {sum(delays) / len(delays) / 60:+.0f} |"


def workloads(folder, machine, excerpts, pool):
    """The runs of each table: a file, options, and the starts to compare with."""
    beside = rigid(folder, machine, excerpts)
    tables = {f"{share:.0%} evolving": [(path, (f"--evolving={share}", f"--seed={seed}"), beside[name, share, seed]) for name, path in excerpts.items() for seed in SEEDS]
              for share in SHARES}
    if machine == f"{ATTACKED} nodes":
        alone = list(map(starts, pool.map(lambda path: run("", path), excerpts.values())))
        for kind in HOSTILE:
            tables[f"hostile, {kind}"] = [(hostile(path, kind), (), at) for path, at in zip(excerpts.values(), alone)]
    return tables


def main():
    folder = pathlib.Path(sys.argv[1])
    configs = sys.argv[2:] or list(CONFIGS)
    large = {name: excerpt(folder, name) for name in TRACES}
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        small = {f"{nodes} nodes": {name: scaled(path, nodes) for name, path in large.items()} for nodes in SMALL}
        for machine, excerpts in (small | {"as it is": large}).items():
            for title, runs in workloads(folder, machine, excerpts, pool).items():
                print(f"\n{title}, {machine}\n\n| | growths on time | held idle | stock jobs later | p50 | p95 | worst | mean |\n|---|---|---|---|---|---|---|---|")
                for config in configs:
                    print(row(config, list(pool.map(lambda job: figures(config, *job), runs))), flush=True)


if __name__ == "__main__":
    main()
