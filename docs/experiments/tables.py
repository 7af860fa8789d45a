"""Writes the tables of docs/experiments.md, as Markdown, from the tables and outcomes of run.sh:

    python3 tables.py OUT_FOLDER

Figures are means over the seeds, ± half the confidence interval of 95 % (Student's t), as evosim sweep makes them. Beneath the tables
stands what the page's sentences rest on: ranges, and where an interval contains 1.
"""

import csv
import json
import math
import pathlib
import sys

KINDS = {"steps": "evolving", "moldable": "moldable", "malleable": "malleable"}


class Table:
    """The rows of a sweep's results.csv."""

    def __init__(self, folder, name):
        with open(folder / (name + ".csv"), encoding="utf-8", newline="") as file:
            self.rows = list(csv.DictReader(file))

    def of(self, strategy):
        return [row for row in self.rows if row["strategy"] == strategy]

    def beside(self, row, strategy):
        """The row of the same jobs by another strategy."""
        same = ("trace", "shape", "share")
        return next(r for r in self.of(strategy) if all(r[key] == row[key] for key in same))


def number(row, name, per=1.0):
    """A figure and half its interval; NaN where there is none."""
    return tuple(float(row[key]) / per if row[key] else math.nan for key in (name, name + "_ci95"))


def shown(row, name, digits=2, per=1.0, unit="", interval=True):
    mean, half = number(row, name, per)
    if math.isnan(mean):
        return ""
    text = f"{mean:.{digits}f}"
    if interval and not math.isnan(half):
        text += f" ± {half:.{digits}f}"
    return text.replace("-0 ", "0 ") + unit


def minutes(row, name, interval=False, unit=" min"):
    return shown(row, name, 0, 60, unit, interval)


def percent(row, name, interval=False):
    return shown(row, name, 0, 1, " %", interval)


def share(row):
    return f"{100 * float(row['share']):.0f} %"


def write(title, head, rows):
    print(f"\n## {title}\n\n| {' | '.join(head)} |\n|{'---|' * len(head)}")
    for row in rows:
        print(f"| {' | '.join(row)} |")


def span(values, digits=2):
    known = [v for v in values if not math.isnan(v)]
    return f"{min(known):.{digits}f} … {max(known):.{digits}f}" if known else "none"


def contains_one(rows, name):
    """Where the interval does not show a difference."""
    found = []
    for row in rows:
        mean, half = number(row, name)
        if not math.isnan(half) and mean - half <= 1 <= mean + half:
            found.append(f"{row['trace']} {share(row)}")
    return ", ".join(found) or "nowhere"


def headline(folder):
    t = Table(folder, "headline")
    write("The headline", ["trace", "evolving", "seeds", "makespan", "turnaround", "wait", "wait, Slurm", "utilisation", "effective", "Slurm: effective"],
          [[r["trace"], share(r), r["seeds"], shown(r, "makespan_ratio"), shown(r, "turnaround_ratio"), shown(r, "wait_ratio"),
            minutes(t.beside(r, "slurm"), "wait"), percent(r, "utilisation"), percent(r, "effective_utilisation"),
            percent(t.beside(r, "slurm"), "effective_utilisation")] for r in t.of("noX")])
    print()
    for name in ("wait_ratio", "turnaround_ratio", "makespan_ratio"):
        for part in ("0.1", "0.3", "0.6", "1"):
            print(f"- {name}, {part} evolving: {span(number(r, name)[0] for r in t.of('noX') if r['share'] == part)}")
        print(f"- {name} with 1 in its interval: {contains_one(t.of('noX'), name)}")
    print(f"- rigid, waste with all evolving: {span((number(r, 'waste')[0] for r in t.of('slurm') if r['share'] == '1'), 0)} %")
    print(f"- unfinished: {span((number(r, 'unfinished')[0] for r in t.rows), 0)}")


def neighbours(folder):
    t = Table(folder, "headline")
    rows = [r for r in t.of("noX") if r["share"] != "1"]
    write("Good neighbours", ["trace", "evolving", "later", "by > 60 s", "of these p50", "p95", "worst", "mean change", "EASY, rigid: by > 60 s",
                              "wait: EASY, rigid", "`neighbour`", "`noX`"],
          [[r["trace"], share(r), percent(r, "stock_later", True), percent(r, "stock_later_60s", True), minutes(r, "stock_later_p50"),
            minutes(r, "stock_later_p95"), minutes(r, "stock_later_worst"), minutes(r, "stock_change"),
            percent(t.beside(r, "easy"), "stock_later_60s"), minutes(t.beside(r, "easy"), "wait"), minutes(t.beside(r, "neighbour"), "wait"),
            minutes(r, "wait")] for r in rows])
    print()
    for part in ("0.1", "0.3", "0.6"):
        of = [r for r in rows if r["share"] == part]
        print(f"- {part} evolving: stock jobs later by > 60 s {span((number(r, 'stock_later_60s')[0] for r in of), 0)} %,"
              f" mean change {span((number(r, 'stock_change', 60)[0] for r in of), 0)} min")
    n = Table(folder, "neighbour")
    print(f"- neighbour beside EASY: stock jobs later {span((number(r, 'stock_later')[0] for r in n.of('neighbour')), 1)} %,"
          f" mean change {span((number(r, 'stock_change', 60)[0] for r in n.of('neighbour')), 0)} min,"
          f" wait {span(number(r, 'wait_ratio')[0] for r in n.of('neighbour'))}")
    runs = late = 0
    for path in sorted((folder / "outcomes").glob("*_neighbour_*.json")):
        outcome, easy = (json.loads(p.read_text()) for p in (path, path.with_name(path.name.replace("_neighbour_", "_easy_"))))
        if outcome["share"] == 1:
            continue
        starts = {job["id"]: job["start"] for job in easy["jobs"]}
        runs += 1
        late += sum(job["start"] > starts[job["id"]] for job in outcome["jobs"])
    print(f"- neighbour beside EASY: {late} jobs, of whatever kind, start later in {runs} runs")


def whole(folder):
    rows, waits = [], []
    for name in ("whole", "whole-more"):
        t = Table(folder, name)
        for r in t.of("noX"):
            slurm, easy = t.beside(r, "slurm"), t.beside(r, "easy")
            rows.append([r["trace"], share(r), r["seeds"], shown(r, "makespan_ratio"), shown(r, "turnaround_ratio"), shown(r, "wait_ratio"),
                         minutes(slurm, "wait"), percent(r, "utilisation"), percent(r, "stock_later_60s", True), minutes(r, "stock_change", True)])
            waits.append(f"- {r['trace']}, {share(r)}: beside EASY the wait is {number(r, 'wait')[0] / number(easy, 'wait')[0]:.2f};"
                         f" EASY has {percent(easy, 'stock_later_60s')} of the stock jobs later;"
                         f" Slurm has {percent(slurm, 'utilisation')} allocated, {percent(slurm, 'effective_utilisation')} in use;"
                         f" unfinished {r['unfinished']}")
    rows.sort(key=lambda row: row[0] != "lublin-256")
    write("Whole traces", ["trace", "evolving", "seeds", "makespan", "turnaround", "wait", "wait, Slurm", "utilisation", "later", "mean change"], rows)
    print("\n" + "\n".join(waits))


def kinds(folder):
    """Where all jobs are of a kind what is left of stock jobs, too short or too small for it, is no measure."""
    rows = {}
    for name in ("kinds", "kinds-all", "kinds-alike"):
        t = Table(folder, name)
        for r in t.of("noX"):
            rows[r["trace"], r["share"], list(KINDS).index(r["shape"])] = (r, t.beside(r, "slurm"))
    traces = list(dict.fromkeys(key[0] for key in rows))
    ordered = [rows[key] for key in sorted(rows, key=lambda key: (traces.index(key[0]), float(key[1]), key[2]))]
    write("Moldable and malleable jobs", ["trace", "share", "kind", "seeds", "makespan", "turnaround", "wait, Slurm", "wait", "stock jobs later by > 60 s", "their mean change"],
          [[r["trace"], share(r), KINDS[r["shape"]], r["seeds"], shown(r, "makespan_ratio"), shown(r, "turnaround_ratio"), minutes(slurm, "wait", unit=""),
            minutes(r, "wait", True, ""), *(("", "") if r["share"] == "1" else (percent(r, "stock_later_60s", True), minutes(r, "stock_change", True, "")))]
           for r, slurm in ordered])
    print()
    for shape, kind in KINDS.items():
        for part in ("0.3", "1"):
            of = [r for r, _ in ordered if r["shape"] == shape and r["share"] == part]
            print(f"- {kind}, {part}: makespan {span(number(r, 'makespan_ratio')[0] for r in of)}, turnaround {span(number(r, 'turnaround_ratio')[0] for r in of)},"
                  f" wait {span(number(r, 'wait_ratio')[0] for r in of)}, later {span((number(r, 'stock_later_60s')[0] for r in of), 0)} %;"
                  f" 1 in the turnaround's interval: {contains_one(of, 'turnaround_ratio')}")


def strategies(folder):
    t = Table(folder, "strategies")
    traces = list(dict.fromkeys(r["trace"] for r in t.rows))
    rows = [r for trace in traces for r in t.rows if r["trace"] == trace and r["strategy"] != "slurm"]
    write("Which strategy", ["trace", "strategy", "seeds", "makespan", "wait", "stock jobs later by > 60 s"],
          [[r["trace"], r["strategy"], r["seeds"], shown(r, "makespan_ratio", 3), shown(r, "wait_ratio", 3), percent(r, "stock_later_60s", True)] for r in rows])
    print()
    for r in t.of("noX"):
        for name in ("2X+c", "minwaste", "rigid"):
            other = t.beside(r, name)
            print(f"- {r['trace']}, {name} beside noX: wait {number(other, 'wait')[0] / number(r, 'wait')[0]:.4f},"
                  f" makespan {number(other, 'makespan')[0] / number(r, 'makespan')[0]:.4f}")


def esp(folder):
    runs = json.loads((folder / "esp.json").read_text())
    write("ESP, with the burst", ["cores", "jobs", "runs", "efficiency, printed", "published", "as it adds up", "jobs a minute"],
          [[str(r["cores"]), r["jobs"], str(r["runs"]), f"{r['printed']:.1f}", str(r.get("published", "")), f"{r['efficiency']:.1f}", f"{r['throughput']:.3f}"] for r in runs])


def main():
    folder = pathlib.Path(sys.argv[1])
    for table in (headline, whole, kinds, strategies, neighbours, esp):
        table(folder)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python3 tables.py OUT_FOLDER")
    main()
