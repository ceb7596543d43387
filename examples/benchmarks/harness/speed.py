"""Time skdp against its peers: fit and predict, rows, columns, threads, memory. It takes about 25 minutes.

    python examples/benchmarks/harness/speed.py [--quick] [--only ENVIRONMENT ...]

Run it on a machine without other load. Both sides of a ratio take turns in one process. Ten million rows are in a
memory-mapped file, and fewer are in memory. Results are added to docs/benchmarks/speed.csv, and are not timed again. If
smaller shapes show that a fit would take longer than a minute, the shape is left out and reported.
"""

from __future__ import annotations

import argparse
import csv
import json
import subprocess
import sys
import time
from collections import defaultdict
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).resolve().parent))

import environments
import results
from speed_cases import BASE_COLUMNS, BASE_ROWS, COLUMNS, MEMORY_SHAPE, ROWS, THREADS_SHAPE, cases

COLUMNS_OF_FILE = (
    *("environment", "model", "library", "counterpart", "operation", "rows", "columns", "threads", "repetition"),
    *("ours", "other", "status"),
)
#: Seconds that the repetitions of one fit may take, at least three of them.
SECONDS = 4.0
#: A fit that is expected to take longer is left out.
LONGEST = 60.0
#: Seconds of silence after which a worker is ended.
SILENCE = 300


def shapes(case):
    """Return the rows and columns of a case."""
    rows = [(n, BASE_COLUMNS) for n in ROWS if n <= case.most_rows]
    return rows + [(BASE_ROWS, d) for d in COLUMNS if d <= case.most_columns]


def shapes_and_cases(chosen, threads):
    """Return the cases for a number of threads by shape, so that each file of rows is made once."""
    pairs = [(THREADS_SHAPE, case) for case in chosen if case.threads]
    if threads == 1:
        pairs += [(shape, case) for case in chosen for shape in shapes(case)]
    return sorted(pairs, key=lambda pair: pair[0])


def is_quick(shape, threads):
    """Return whether `--quick` includes a shape."""
    return threads == 1 and shape[0] <= BASE_ROWS and shape[1] <= 100


def read(path):
    """Return the rows of the file of times, with numbers as numbers."""
    if not Path(path).exists():
        return []
    with open(path, newline="") as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        for name in ("rows", "columns", "threads", "repetition"):
            row[name] = int(row[name])
        for name in ("ours", "other"):
            row[name] = float(row[name]) if row[name] else None
    return rows


def key_of(row):
    """Return the measurement of a row; fit and predict are one measurement."""
    kind = "memory" if row["operation"] == "memory" else "time"
    return (row["environment"], row["model"], row["counterpart"], kind, row["rows"], row["columns"], row["threads"])


def expected(case, shape, taken):
    """Return the expected seconds of a fit of the slower side, from the nearest smaller shape."""
    known = [
        (size, seconds)
        for (name, size), seconds in taken.items()
        if name == case.name and size[0] <= shape[0] and size[1] <= shape[1]
    ]
    if not known:
        return 0.0
    size, seconds = max(known, key=lambda pair: pair[0][0] * pair[0][1])
    return seconds * (shape[0] / size[0]) * (shape[1] / size[1])


class Worker:
    """The process of a worker for one environment and number of threads."""

    def __init__(self, environment, python, threads):
        self.process = subprocess.Popen(
            [str(python), str(environments.HERE / "speed_worker.py"), environment],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environments.variables(threads),
            text=True,
        )

    def ask(self, request):
        """Yield the answers to a request."""
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        for line in self.process.stdout:
            answer = json.loads(line)
            if answer["operation"] == "done":
                return
            yield answer
        yield {"operation": "fit", "status": "the process died"}

    def end(self):
        """End the process, which removes its files at the end of its input."""
        self.process.stdin.close()
        try:
            self.process.wait(SILENCE)
        except subprocess.TimeoutExpired:
            self.process.kill()


class File:
    """The file of times."""

    def __init__(self, path):
        self.path = Path(path)
        self.done = {key_of(row) for row in read(path)}

    def add(self, case, shape, threads, repetition, **values):
        """Add a row."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        new = not self.path.exists()
        row = {
            "environment": case.environment,
            "model": case.model,
            "library": case.library,
            "counterpart": case.counterpart,
            "rows": shape[0],
            "columns": shape[1],
            "threads": threads,
            "repetition": repetition,
            "status": "ok",
        } | values
        for name in ("ours", "other"):
            row[name] = results.short(row.get(name))
        with open(self.path, "a", newline="") as file:
            writer = csv.DictWriter(file, COLUMNS_OF_FILE, lineterminator="\n")
            if new:
                writer.writeheader()
            writer.writerow(row)


def time_case(worker, case, shape, threads, file, taken, seconds):
    """Time one case at one shape."""
    probe = {"environment": case.environment, "model": case.model, "counterpart": case.counterpart}
    place = {"rows": shape[0], "columns": shape[1], "threads": threads, "operation": "fit"}
    if key_of(probe | place) in file.done:
        return
    if (guess := expected(case, shape, taken)) > LONGEST:
        status = f"left out: it would take about {guess:.0f} s"
        file.add(case, shape, threads, 0, operation="fit", status=status)
        return
    request = {"case": case.name, "rows": shape[0], "columns": shape[1], "seconds": seconds}
    count, slower = defaultdict(int), []
    for answer in worker.ask(request):
        operation = answer["operation"]
        file.add(case, shape, threads, count[operation], **answer)
        count[operation] += 1
        if operation == "fit":
            slower.append(max(answer["ours"], answer["other"]) if "ours" in answer else LONGEST + 1)
    if slower and threads == 1:
        taken[case.name, shape] = median(slower)


def main():
    parser = argparse.ArgumentParser(description="Times skdp against its peers.")
    parser.add_argument("--quick", action="store_true", help="at most 10,000 rows, without Opacus: some minutes")
    parser.add_argument("--only", nargs="+", metavar="ENVIRONMENT")
    parser.add_argument("--without", nargs="+", metavar="ENVIRONMENT", default=[])
    parser.add_argument("--models", nargs="+", metavar="MODEL", help="only these of skdp")
    parser.add_argument("--python", nargs="+", metavar="ENVIRONMENT=PATH", default=[], help="a Python for a peer")
    parser.add_argument("--results", type=Path, default=results.FOLDER / "speed.csv")
    arguments = parser.parse_args()
    given = dict(pair.split("=", 1) for pair in arguments.python)
    chosen = [
        case
        for case in cases()
        if (arguments.only is None or case.environment in arguments.only)
        and case.environment not in arguments.without
        and (arguments.models is None or case.model.split()[0] in arguments.models)
        and not (arguments.quick and case.environment == "opacus")
    ]
    file, taken, start = File(arguments.results), {}, time.monotonic()
    for row in read(arguments.results):
        if row["operation"] == "fit" and row["threads"] == 1:
            name = f"{row['model']} / {row['library']} {row['counterpart']}"
            seconds = LONGEST + 1 if row["ours"] is None else max(row["ours"], row["other"])
            taken[name, (row["rows"], row["columns"])] = seconds
    for environment in dict.fromkeys(case.environment for case in chosen):
        python = environments.python_of(environment, given)
        here = [case for case in chosen if case.environment == environment]
        for threads in (1, 2):
            plan = [
                pair for pair in shapes_and_cases(here, threads) if not arguments.quick or is_quick(pair[0], threads)
            ]
            worker = Worker(environment, python, threads)
            for shape, case in plan:
                minutes = (time.monotonic() - start) / 60
                print(f"{minutes:4.1f} min  {case.name}: {shape}, threads: {threads}", flush=True)
                time_case(worker, case, shape, threads, file, taken, SECONDS)
            worker.end()
        if not arguments.quick:
            measure_memory(here, python, file, taken)
    print(f"done in {(time.monotonic() - start) / 60:.1f} min: {arguments.results}")


def measure_memory(chosen, python, file, taken):
    """Measure the memory that a fit adds to a fresh process, for each side of each case."""
    for case in chosen:
        shape = min(MEMORY_SHAPE[0], case.most_rows), MEMORY_SHAPE[1]
        place = {"rows": shape[0], "columns": shape[1], "threads": 1, "operation": "memory"}
        probe = {"environment": case.environment, "model": case.model, "counterpart": case.counterpart}
        if key_of(probe | place) in file.done or expected(case, shape, taken) > LONGEST:
            continue
        values = {}
        for side in ("ours", "other"):
            worker = Worker(case.environment, python, 1)
            request = {"case": case.name, "rows": shape[0], "columns": shape[1], "memory": side}
            for answer in worker.ask(request):
                values[side] = answer.get("value")
                if "status" in answer:
                    values["status"] = answer["status"]
            worker.end()
        file.add(case, shape, 1, 0, operation="memory", **values)


if __name__ == "__main__":
    main()
