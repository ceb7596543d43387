"""Rates of noise in numbers per second: skdp's exact samplers, OpenDP, diffprivlib, and NumPy's generators.

    python examples/benchmarks/harness/noise.py

It takes two minutes. The environment of each peer times skdp and NumPy as well, in rounds in which all take turns.
"""

from __future__ import annotations

import argparse
import csv
import subprocess
import sys
import time
from importlib import import_module
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import environments
import results

ROUNDS = 7
SIZES = (1, 100, 10_000)
ENVIRONMENTS = ("opendp", "diffprivlib")
COLUMNS = ("environment", "case", "size", "round", "rate")


def rate(draw, size, seconds=0.05):
    """Return the numbers drawn per second."""
    draw()
    start, calls = time.perf_counter(), 0
    while (elapsed := time.perf_counter() - start) < seconds:
        draw()
        calls += 1
    return size * calls / elapsed


def measure(environment):
    """Print a line of results for each case, size and round."""
    writer = csv.writer(sys.stdout, lineterminator="\n")
    for size in SIZES:
        drawn = {}
        for module in ("skdp", environment):
            drawn |= import_module(f"noise_{module}").cases(size)
        for number in range(ROUNDS):
            for name, draw in drawn.items():
                writer.writerow([environment, name, size, number, f"{rate(draw, size):.4g}"])
        sys.stdout.flush()


def main():
    parser = argparse.ArgumentParser(description="Times noise.")
    parser.add_argument("--measure", metavar="ENVIRONMENT", help=argparse.SUPPRESS)
    parser.add_argument("--python", nargs="+", metavar="ENVIRONMENT=PATH", default=[], help="a Python for a peer")
    parser.add_argument("--results", type=Path, default=results.FOLDER / "noise.csv")
    arguments = parser.parse_args()
    if arguments.measure:
        measure(arguments.measure)
        return
    given = dict(pair.split("=", 1) for pair in arguments.python)
    lines = [",".join(COLUMNS) + "\n"]
    for environment in ENVIRONMENTS:
        python = environments.python_of(environment, given)
        print(f"noise in the environment of {environment}", flush=True)
        command = [str(python), __file__, "--measure", environment]
        lines.append(subprocess.run(command, env=environments.variables(), stdout=-1, text=True, check=True).stdout)
    arguments.results.parent.mkdir(parents=True, exist_ok=True)
    arguments.results.write_text("".join(lines))
    print(f"done: {arguments.results}")


if __name__ == "__main__":
    main()
