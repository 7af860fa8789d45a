"""Writes the tables of docs/experiments.md about delay budgets and shares of holds, as Markdown:

    python3 holds.py FOLDER [CONFIGURATION…]

In FOLDER are the traces that run.sh makes; evosim is in PATH. The excerpts of budget.yaml are run with several values of max_delay and of
hold_shares (CONFIGURATION: only those of that name), first with 10 and 30 % of their jobs evolving (seed 1), then beside a hostile user, who submits a job of 1@25m,N@7h every
three hours at most, N being 90 % of the nodes.
"""

import concurrent.futures
import gzip
import json
import os
import pathlib
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).parent
TRACE = re.compile(r"- \{file: (?P<file>[^,}]+)(?:, name: (?P<name>\w+))?, skip: (?P<skip>\d+), jobs: (?P<jobs>\d+)\}")
TRACES = {m["name"] or m["file"].split(".")[0]: m for m in TRACE.finditer((HERE / "budget.yaml").read_text())}
SHARE = "{{reservations: {0}, nodes: {1}, node_hours: {2}}}"


def shares(job, user, account):
    """A configuration's hold_shares."""
    lines = [f"  {name}: " + SHARE.format(*values) for name, values in (("job", job), ("user", user), ("account", account))]
    return "\n".join(["hold_shares:", *lines]) + "\n"


ALL = (100, 100, 100)
CONFIGS = {
    "max_delay 0s": "max_delay: 0s\n",
    "max_delay 15m": "max_delay: 15m\n",
    "defaults (1h)": "max_delay: 1h\n",
    "max_delay 4h": "max_delay: 4h\n",
    "no max_delay": "max_delay: 8760h\n",
    "shares halved": shares((12, 50, 25), (25, 37, 25), (37, 50, 37)),
    "shares a quarter": shares((6, 25, 12), (12, 18, 12), (18, 25, 18)),
    "no shares": shares(ALL, ALL, ALL),
    "neither": "max_delay: 8760h\n" + shares(ALL, ALL, ALL),
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


def hostile(folder, name, path):
    """Adds a hostile user's jobs to an excerpt."""
    text = subprocess.run(["evosim", "trace", "convert", "--to=json", path], check=True, capture_output=True, text=True).stdout
    work = json.loads(text)
    last = int(max(job.get("submit", 0) for job in work["jobs"]))
    wide = max(2, int(0.9 * work["nodes"]))
    for k, at in enumerate(range(0, last, max(3 * 3600, last // 12))):
        profile = [{"duration": 1500, "nodes": 1}, {"duration": 7 * 3600, "nodes": wide}]
        work["jobs"].append({"id": f"9000{k:03d}", "submit": at, "profile": profile})
    work["jobs"].sort(key=lambda job: job.get("submit", 0))
    out = folder / f"hostile-{name}.json"
    out.write_text(json.dumps(work))
    return out


def run(folder, config, path, *options):
    """Runs a workload with a configuration; the outcome."""
    file = folder / f"{''.join(c if c.isalnum() else '-' for c in config)}.yaml"
    file.write_text(CONFIGS[config])
    command = ["evosim", "run", f"--config={file}", "--format=json", "--lenient", *options, path]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


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


def stock_wait(outcome):
    """The mean wait of stock jobs, in minutes."""
    waits = [job["start"] - job["submit"] for job in outcome["jobs"] if not job.get("evolving") and job["start"] >= 0]
    return sum(waits) / len(waits) / 60


def row(config, figures):
    """A line of a table: sums and means over some runs."""
    growths, on_time = (sum(column) for column in zip(*(f[0] for f in figures)))
    held = sum(f[1] for f in figures)
    waits = sum(f[2] for f in figures) / len(figures)
    return f"| {config} | {on_time} of {growths} | {held:,.0f} | {waits:.0f} |"


def figures(job):
    """What is shown of a run."""
    outcome = run(*job)
    return kept(outcome), outcome["metrics"]["held_idle"] / 3600, stock_wait(outcome)


def main():
    folder = pathlib.Path(sys.argv[1])
    configs = sys.argv[2:] or list(CONFIGS)
    excerpts = {name: excerpt(folder, name) for name in TRACES}
    attacks = {name: hostile(folder, name, path) for name, path in excerpts.items()}
    tables = {f"{share} % evolving": [(p, f"--evolving={share / 100}", "--seed=1") for p in excerpts.values()] for share in (10, 30)}
    tables |= {"a hostile user": [(p,) for p in attacks.values()]}
    tables |= {f"a hostile user, {name}": [(p,)] for name, p in attacks.items()}
    done = {}
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for title, runs in tables.items():
            print(f"\n{title}\n\n| | growths on time | node-hours held idle | wait of stock jobs, min |\n|---|---|---|---|")
            jobs = {config: [(folder, config, *options) for options in runs] for config in configs}
            missing = [job for some in jobs.values() for job in some if job not in done]
            done |= zip(missing, pool.map(figures, missing))
            for config, some in jobs.items():
                print(row(config, [done[job] for job in some]), flush=True)


if __name__ == "__main__":
    main()
