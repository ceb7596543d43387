"""Coverage of the intervals of `skdp.stats` for skewed, discrete and constant columns, and sizes of its tests.

    python examples/benchmarks/statistics_coverage.py run {moments,described,quantiles,products,groups,describe,tests}
    python examples/benchmarks/statistics_coverage.py report

``run`` writes the smallest coverage of intervals at 95 % of each statistic, law, width of the bounds and epsilon, over
the numbers of records, to ``docs/benchmarks/statistics_coverage.csv``. The laws are those of ``tests/stats/laws.py``.
Moments are computed from released sums that are drawn for up to a million records. Other statistics are called for up
to 10,000 records. ``report`` makes ``docs/user_guide/statistics_coverage.inc`` from that file.
"""

import argparse
import csv
import sys
import zlib
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from skdp import Number, Schema, stats
from tests.stats.laws import LAWS, SIZES, WIDTHS, column, moment_coverage

RESULTS = ROOT / "docs" / "benchmarks" / "statistics_coverage.csv"
REPORT = ROOT / "docs" / "user_guide" / "statistics_coverage.inc"
FIELDS = ("statistic", "law", "width", "epsilon", "sizes", "runs", "least")
CALLED = (100, 1000, 10_000)
LEVELS = {"q = 0.01": 0.01, "q = 0.25": 0.25, "median": 0.5, "q = 0.99": 0.99}


def holds(estimate, truth, place=()):
    """Return whether the interval holds the truth."""
    low, high = (float(np.asarray(end)[place]) for end in estimate.confidence_interval())
    return low - 1e-9 <= truth <= high + 1e-9


def truths(values, probabilities):
    """Return the mean, the standard deviation and quantiles of a law."""
    mean = probabilities @ values
    order = np.argsort(values)
    below = np.cumsum(probabilities[order])
    quantiles = {name: values[order][np.searchsorted(below, q - 1e-12)] for name, q in LEVELS.items()}
    return {"mean": mean, "std": np.sqrt(probabilities @ (values - mean) ** 2), **quantiles}


def moments(law, width, epsilon, runs, rng, described=False):
    """Return the numbers of intervals that hold, by statistic and size."""
    return {
        f"{name} in a description" if described else name: [
            moment_coverage(name, law, width, n, epsilon, runs, rng, described=described) for n in SIZES
        ]
        for name in ("mean", "std")
    }


def called(law, width, epsilon, runs, rng, call, sizes):
    """Return the numbers of intervals that hold, by statistic and size, where `call` yields pairs."""
    values, probabilities, bounds = column(law, width)
    hits = {}
    for n in sizes:
        counts = {}
        for _ in range(runs):
            x = rng.choice(values, n, p=probabilities)
            for name, is_held in call(x, bounds, epsilon, truths(values, probabilities), rng):
                counts[name] = counts.get(name, 0) + is_held
        for name, count in counts.items():
            hits.setdefault(name, []).append(count)
    return hits


def _quantiles(x, bounds, epsilon, true, rng):
    for name, q in LEVELS.items():
        yield name, holds(stats.quantile(x, q, bounds=bounds, epsilon=epsilon), true[name])


def _products(x, bounds, epsilon, true, rng):
    # The second column is the first one or an independent one, with probability one half each.
    y = np.where(rng.random(len(x)) < 0.5, x, rng.permutation(x))
    rows, variance = np.column_stack([x, y]), true["std"] ** 2
    yield "covariance", holds(stats.covariance(rows, bounds=bounds, epsilon=epsilon), variance / 2, (0, 1))
    if variance > 0:
        yield "correlation", holds(stats.correlation(rows, bounds=bounds, epsilon=epsilon), 0.5, (0, 1))
        yield "linear_trend", holds(stats.linear_trend(rows, bounds=bounds, epsilon=epsilon), 0.5)


def _groups(x, bounds, epsilon, true, rng):
    schema = Schema({"g": ["few", "many"], "x": Number(*bounds, missing="error")})
    table = {"g": np.where(rng.random(len(x)) < 0.1, "few", "many"), "x": x}
    found = stats.group_by(table, "g", {"x": ["mean", "std"]}, epsilon=epsilon, schema=schema)
    for name in ("mean", "std"):
        for place, group in enumerate(("few", "many")):
            yield f"{name} of the group of {group}", holds(found[f"x_{name}"], true[name], place)


def _describe(x, bounds, epsilon, true, rng):
    schema = Schema({"x": Number(*bounds), "y": Number(*bounds)})
    found = stats.describe({"x": x, "y": x[::-1]}, schema=schema, epsilon=epsilon).numbers["x"]
    for name, key in (("25%", "q = 0.25"), ("50%", "median")):
        yield f"{name} in a description", holds(found[name], true[key])


def _tests(x, bounds, epsilon, true, rng):
    schema = Schema({"g": ["few", "many"], "x": Number(*bounds, missing="error")})
    table = {"g": np.where(np.arange(len(x)) < len(x) // 50, "few", "many"), "x": x}
    for name in ("ttest_ind", "mannwhitneyu"):
        yield f"{name} at 0.05", getattr(stats, name)(table, "g", schema=schema, epsilon=epsilon).pvalue > 0.05


CALLS = {
    "quantiles": _quantiles, "products": _products, "groups": _groups, "describe": _describe, "tests": _tests,
}  # fmt: skip


def read():
    """Return the rows of the results."""
    if not RESULTS.exists():
        return []
    with RESULTS.open(newline="") as file:
        return list(csv.DictReader(file))


def run(task, runs, epsilons, widths, sizes):
    """Measure cells, and write each when it is done."""
    for law in LAWS:
        for width in widths:
            for epsilon in epsilons:
                rng = np.random.default_rng(zlib.crc32(f"{task} {law} {width} {epsilon}".encode()))
                given = law, width, epsilon, runs, rng
                if task in CALLS:
                    found, tested = called(*given, CALLS[task], sizes), sizes
                else:
                    found, tested = moments(*given, described=task == "described"), SIZES
                for name, hits in found.items():
                    row = name, law, width, epsilon, " ".join(map(str, tested)), runs, f"{min(hits) / runs:.3f}"
                    new = dict(zip(FIELDS, map(str, row), strict=True))
                    others = [old for old in read() if any(old[key] != new[key] for key in FIELDS[:4])]
                    with RESULTS.open("w", newline="") as file:
                        writer = csv.DictWriter(file, FIELDS, lineterminator="\n")
                        writer.writeheader()
                        writer.writerows(sorted([*others, new], key=lambda one: [one[key] for key in FIELDS[:4]]))
                    print(*new.values(), sep=",", flush=True)


def report():
    """Write the table of the smallest coverage of each statistic and law."""
    rows = read()
    names = list(dict.fromkeys(row["statistic"] for row in rows))
    laws = [law for law in LAWS if any(row["law"] == law for row in rows)]
    lines = [".. list-table::", "   :header-rows: 1", ""]
    table = [["statistic", *laws]]
    for name in names:
        cells = [[float(row["least"]) for row in rows if (row["statistic"], row["law"]) == (name, law)] for law in laws]
        table.append([name, *(f"{min(own):.3f}".lstrip("0") if own else "" for own in cells)])
    for texts in table:
        lines += [f"   {'*' if i == 0 else ' '} - {text}".rstrip() for i, text in enumerate(texts)]
    REPORT.write_text("\n".join(lines) + "\n")


def main():
    """Do what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("what", choices=("run", "report"))
    parser.add_argument("task", nargs="?", choices=("moments", "described", *CALLS))
    parser.add_argument("--runs", type=int, default=500)
    parser.add_argument("--epsilons", type=float, nargs="*", default=(1.0, 10.0))
    parser.add_argument("--widths", type=int, nargs="*", default=WIDTHS)
    parser.add_argument("--sizes", type=int, nargs="*", default=CALLED, help="numbers of records of calls")
    given = parser.parse_args()
    if given.what == "report":
        report()
    else:
        run(given.task, given.runs, given.epsilons, given.widths, given.sizes)


if __name__ == "__main__":
    main()
