"""Ratios of times and memory by release, and what has become slower since.

After a measurement on a quiet machine, add its medians to docs/benchmarks/speed_history.csv::

    python examples/benchmarks/harness/history.py add 0.2.0

To check a change, time only the models that it touches, which takes some minutes, and compare with the last release::

    python examples/benchmarks/harness/speed.py --quick --only skdp --models DPPCA --results /tmp/times.csv
    python examples/benchmarks/harness/history.py compare /tmp/times.csv
"""

from __future__ import annotations

import argparse
import csv
import sys
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).resolve().parent))

import results
from speed import read
from speed_summary import measurements

KEYS = ("model", "library", "counterpart", "operation", "rows", "columns", "threads")
LIMIT = 1.2

#: A ratio that has grown by more than this is reported. Repetitions on one machine differ by less.
NOTICED = 1.25


def known(path):
    """Return the ratios of each release, oldest first."""
    releases = {}
    if path.exists():
        with open(path, newline="") as file:
            for row in csv.DictReader(file):
                key = tuple(int(row[name]) if name in KEYS[4:] else row[name] for name in KEYS)
                releases.setdefault(row["version"], {})[key] = float(row["ratio"])
    return releases


def ratios_of(rows):
    """Return the median ratio of each measurement."""
    return {tuple(getattr(m, name) for name in KEYS): m.ratio for m in measurements(rows)}


def add(path, version, rows):
    """Write the ratios of a release, in place of earlier ones of the same release."""
    releases = known(path)
    releases.pop(version, None)
    releases[version] = ratios_of(rows)
    with open(path, "w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(("version", *KEYS, "ratio"))
        for name, ratios in releases.items():
            writer.writerows((name, *key, f"{ratio:.3g}") for key, ratio in sorted(ratios.items()))


def slower(before, now):
    """Return measurements whose ratio has grown, with both ratios."""
    return {key: (before[key], now[key]) for key in sorted(now) if key in before and now[key] > NOTICED * before[key]}


def table(releases):
    """Return a line for each release: ratios above the limit, and medians, of fits, predictions and memory."""
    lines = []
    for version, ratios in releases.items():
        cells = []
        for operation in ("fit", "predict", "memory"):
            own = [ratio for key, ratio in ratios.items() if key[3] == operation]
            above = sum(ratio > LIMIT for ratio in own)
            cells.append(f"{above} of {len(own)}, {results.figure(median(own))}" if own else "–")
        lines.append([version, *cells])
    header = ["version", *(f"{name}: above {LIMIT}, median" for name in ("fit", "predict", "memory"))]
    return results.csv_table("Ratios by release", header, lines)


def main():
    parser = argparse.ArgumentParser(description="Ratios of times and memory by release.")
    parser.add_argument("--history", type=Path, default=results.FOLDER / "speed_history.csv")
    actions = parser.add_subparsers(dest="action", required=True)
    adding = actions.add_parser("add", help="add the medians of a release")
    adding.add_argument("version")
    adding.add_argument("times", type=Path, nargs="?", default=results.FOLDER / "speed.csv")
    comparing = actions.add_parser("compare", help="report ratios that are larger than those of the last release")
    comparing.add_argument("times", type=Path)
    arguments = parser.parse_args()
    rows = read(arguments.times)
    if arguments.action == "add":
        add(arguments.history, arguments.version, rows)
        return 0
    before, now = list(known(arguments.history).values())[-1], ratios_of(rows)
    found = slower(before, now)
    print(f"{len(set(before) & set(now))} ratios compared, {len(found)} have grown by a factor of more than {NOTICED}")
    for key, (old, new) in found.items():
        print(", ".join(map(str, key)) + f": {old:.2f} -> {new:.2f}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
