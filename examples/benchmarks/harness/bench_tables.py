"""Fit skdp's recommended estimators and their peers to many tables, each with one call, and compare them.

    make bench-tables
    python examples/benchmarks/harness/bench_tables.py --tables bank bike --methods 'DPAdditive*' --epsilon 1 10
    python examples/benchmarks/harness/bench_tables.py --methods 'DPAdditiveClassifier(n_bins=16)' --results after.csv
    python examples/benchmarks/harness/bench_tables.py --report [FILE ...]
    python examples/benchmarks/harness/bench_tables.py --compare before.csv after.csv

Estimators of skdp get a schema and a budget. A method with parameters in parentheses is the same call with these.
Results are added to docs/benchmarks/tables.csv, one row for each score of a fit. What is there is not fitted again.
Tables, and the folder that has most of them, are in tables.py. Those of held_out.py are for no choice::

    python -m pip install statsmodels==0.15.0
    python examples/benchmarks/harness/bench_tables.py --held-out --methods skdp interpret scikit-learn
    python examples/benchmarks/harness/bench_tables.py --guide
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from fnmatch import fnmatchcase
from itertools import chain
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import methods
import report_tables
import results
import tables
from bench import Estimate, clock, locked, remaining, run
from held_out import LOADERS as HELD_OUT
from tasks import EPSILONS, N_SPLITS

GUIDE = results.FOLDER.parent / "user_guide" / "held_out_tables.inc"


def chosen(patterns):
    """Return pairs of an environment and a method whose library or name is among the patterns."""
    pairs = [(environment, method) for environment, method in methods.all_methods() if method.tables]
    if patterns is None:
        return pairs
    found = []
    for pattern in patterns:
        name, _, parameters = pattern.partition("(")
        parameters = parameters.removesuffix(")")
        matching = [
            (environment, methods.variant(method, parameters) if parameters else method)
            for environment, method in pairs
            if any(fnmatchcase(text, name.strip()) for text in (method.library, method.name, method.key))
        ]
        if not matching:
            raise SystemExit(f"no method is called {pattern}; there are {', '.join(m.key for _, m in pairs)}")
        found += matching
    return found


def is_asked_for(row, arguments):
    """Return whether a row of results is of the chosen tables and methods."""
    texts = (row["library"], row["method"], f"{row['library']}/{row['method']}")
    return (arguments.tables is None or row["task"] in arguments.tables) and (
        arguments.methods is None or any(fnmatchcase(text, one) for text in texts for one in arguments.methods)
    )


def at_hand(names):
    """Return the tasks of tables that are there, and print why others are not."""
    found = []
    for name in names:
        try:
            found.append(tables.task(name))
        except (FileNotFoundError, ImportError) as error:
            print(f"left out: {name}: {error}", flush=True)
    return found


def plan(pairs, tasks, epsilons, n_splits, deltas=None):
    """Return the cells to fit: (environment, method, cell), by epsilon, then split, then table."""
    return [
        (environment, method, cell)
        for epsilon in epsilons
        for split in range(n_splits)
        for task in tasks
        for environment, method in pairs
        for cell in methods.cells_of_table(method, task, epsilon, split, deltas)
    ]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", nargs="+", metavar="NAME", help="only these tables")
    parser.add_argument("--methods", nargs="+", metavar="PATTERN", help="libraries or methods, such as skdp 'DPSGD*'")
    parser.add_argument("--epsilon", nargs="+", type=float, default=EPSILONS, help="in the order of the fits")
    parser.add_argument("--delta", nargs="+", type=float, help="in place of the deltas of the tables")
    parser.add_argument("--splits", type=int, help="3, and 5 of the tables that are held out")
    parser.add_argument("--limit", type=float, help="seconds that a fit may take")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--python", nargs="+", metavar="ENVIRONMENT=PATH", default=[], help="a Python for a peer")
    parser.add_argument("--results", type=Path, help="in place of docs/benchmarks/tables.csv, or held_out.csv")
    parser.add_argument("--held-out", action="store_true", help="tables that are not for choices")
    parser.add_argument("--guide", action="store_true", help="write the tables of the user guide")
    parser.add_argument(
        "--report", nargs="*", type=Path, metavar="FILE", help="print what results say, and fit nothing"
    )
    parser.add_argument("--compare", nargs=2, type=Path, metavar=("BEFORE", "AFTER"), help="print gains of methods")
    arguments = parser.parse_args()
    is_held_out = arguments.held_out or arguments.guide
    path = arguments.results or results.FOLDER / ("held_out.csv" if is_held_out else "tables.csv")
    if arguments.guide:
        GUIDE.write_text(report_tables.guide(results.read(path)))
        return
    if arguments.compare or arguments.report is not None:
        files = arguments.compare or arguments.report or [path]
        rows = [[row for row in results.read(file) if is_asked_for(row, arguments)] for file in files]
        lines = report_tables.compare(*rows) if arguments.compare else report_tables.report(chain(*rows))
        print("\n".join(lines))
        return
    pairs = chosen(arguments.methods)
    if arguments.limit:
        pairs = [(environment, replace(method, limit=arguments.limit)) for environment, method in pairs]
    given = dict(pair.split("=", 1) for pair in arguments.python)
    with locked(path):
        rows = results.read(path)
        tasks = at_hand(arguments.tables or (HELD_OUT if is_held_out else tables.names()))
        n_splits = arguments.splits or (N_SPLITS if is_held_out else 3)
        planned = plan(pairs, tasks, arguments.epsilon, n_splits, arguments.delta)
        left, estimate = remaining(planned, rows), Estimate(rows)
        print(f"{len(planned)} fits, {len(left)} to do; about {clock(estimate.seconds(left))}", flush=True)
        run(left, path, given, estimate, "tables", arguments.jobs)


if __name__ == "__main__":
    main()
