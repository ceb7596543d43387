"""Coverage of the intervals of `skdp.stats` for skewed, discrete and constant columns, and sizes of its tests.

    python examples/benchmarks/statistics_coverage.py run \\
        {moments,described,quantiles,products,counts,groups,describe,tests} [--rows 5] [--equal 3]
    python examples/benchmarks/statistics_coverage.py report

``run`` writes the smallest coverage of intervals at 95 % of each statistic, law, width of the bounds and epsilon, over
the numbers of records, to ``docs/benchmarks/statistics_coverage.csv``. The laws are those of ``tests/stats/laws.py``.
Moments are computed from released sums that are drawn for up to a million records. Other statistics are called for up
to 10,000 records. With ``--rows``, each person has so many rows, of which ``--equal`` are equal, and persons are the
unit of privacy. Moments have equal rows only. ``report`` makes ``docs/user_guide/statistics_coverage.inc`` from that
file, without the rows of people.
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


def moments(law, width, epsilon, runs, rng, rows, described=False):
    """Return the numbers of intervals that hold, by statistic and size."""
    return {
        f"{name} in a description" if described else name: [
            moment_coverage(name, law, width, n, epsilon, runs, rng, described=described, rows=rows) for n in SIZES
        ]
        for name in ("mean", "std")
    }


def called(law, width, epsilon, runs, rng, rows, equal, call, sizes):
    """Return the numbers of intervals that hold, by statistic and size.

    `call` yields pairs. It selects rows of a table of independent records by `order`.
    """
    values, probabilities, bounds = column(law, width)
    hits, true = {}, truths(values, probabilities)
    for n in sizes:
        counts = {}
        person, place = np.divmod(np.arange(n), rows)
        order = np.where(place < equal, person * rows, np.arange(n))
        given = {"epsilon": epsilon} | ({"rows_per_group": rows, "groups": person} if rows > 1 else {})
        for _ in range(runs):
            x = rng.choice(values, n, p=probabilities)
            for name, is_held in call(x, order, bounds, true, rng, given):
                counts[name] = counts.get(name, 0) + is_held
        for name, count in counts.items():
            hits.setdefault(name, []).append(count)
    return hits


def _quantiles(x, order, bounds, true, rng, given):
    for name, q in LEVELS.items():
        yield name, holds(stats.quantile(x[order], q, bounds=bounds, **given), true[name])


def _products(x, order, bounds, true, rng, given):
    # The second column is the first one or an independent one, with probability one half each.
    y = np.where(rng.random(len(x)) < 0.5, x, rng.permutation(x))
    rows, variance = np.column_stack([x, y])[order], true["std"] ** 2
    yield "covariance", holds(stats.covariance(rows, bounds=bounds, **given), variance / 2, (0, 1))
    if variance > 0:
        yield "correlation", holds(stats.correlation(rows, bounds=bounds, **given), 0.5, (0, 1))
        yield "linear_trend", holds(stats.linear_trend(rows, bounds=bounds, **given), 0.5)


def _counts(x, order, bounds, true, rng, given):
    # Two independent columns of labels, of which "rare" is one in twenty.
    labels, draws = np.array(["rare", "common"]), rng.random((2, len(x)))
    schema = Schema({"g": list(labels), "h": list(labels)})
    g, h = labels[(draws > 0.05).astype(int)][:, order]
    table = {"g": g, "h": h}
    yield "proportion", holds(stats.proportion(table, "rare", columns="g", schema=schema, **given), 0.05)
    yield "value_counts", holds(stats.value_counts(table, columns="g", schema=schema, **given), 0.05 * len(x), 0)
    u = draws[0][order]
    yield "histogram", holds(stats.histogram(u, [0, 0.01, 1], bounds=(0, 1), **given), 0.01 * len(x), 0)
    yield "ecdf", holds(stats.ecdf(u, depth=4, bounds=(0, 1), **given), 1 / 16, 1)
    yield "chi2_contingency at 0.05", stats.chi2_contingency(table, schema=schema, **given).pvalue > 0.05


def _groups(x, order, bounds, true, rng, given):
    schema = Schema({"g": ["few", "many"], "x": Number(*bounds, missing="error")})
    table = {"g": np.where(rng.random(len(x)) < 0.1, "few", "many")[order], "x": x[order]}
    found = stats.group_by(table, "g", {"x": ["mean", "std"]}, schema=schema, **given)
    for name in ("mean", "std"):
        for place, group in enumerate(("few", "many")):
            yield f"{name} of the group of {group}", holds(found[f"x_{name}"], true[name], place)


def _describe(x, order, bounds, true, rng, given):
    schema = Schema({"x": Number(*bounds), "y": Number(*bounds)})
    found = stats.describe({"x": x[order], "y": x[::-1][order]}, schema=schema, **given).numbers["x"]
    for name, key in (("25%", "q = 0.25"), ("50%", "median")):
        yield f"{name} in a description", holds(found[name], true[key])


def _tests(x, order, bounds, true, rng, given):
    schema = Schema({"g": ["few", "many"], "x": Number(*bounds, missing="error")})
    table = {"g": np.where(np.arange(len(x)) < len(x) // 50, "few", "many"), "x": x[order]}
    for name in ("ttest_ind", "mannwhitneyu"):
        yield f"{name} at 0.05", getattr(stats, name)(table, "g", schema=schema, **given).pvalue > 0.05


CALLS = {
    "quantiles": _quantiles, "products": _products, "counts": _counts, "groups": _groups, "describe": _describe,
    "tests": _tests,
}  # fmt: skip


def read():
    """Return the rows of the results."""
    if not RESULTS.exists():
        return []
    with RESULTS.open(newline="") as file:
        return list(csv.DictReader(file))


def run(task, runs, epsilons, widths, sizes, rows, equal, laws):
    """Measure cells, and write each when it is done."""
    for law in laws:
        for width in widths:
            for epsilon in epsilons:
                people = f", {rows} rows per person, {equal} equal" if rows > 1 else ""
                rng = np.random.default_rng(zlib.crc32(f"{task} {law} {width} {epsilon}{people}".encode()))
                given = law, width, epsilon, runs, rng, rows
                if task in CALLS:
                    found, tested = called(*given, equal, CALLS[task], sizes), sizes
                else:
                    found, tested = moments(*given, described=task == "described"), SIZES
                for name, hits in found.items():
                    row = (
                        name + people,
                        law,
                        width,
                        epsilon,
                        " ".join(map(str, tested)),
                        runs,
                        f"{min(hits) / runs:.3f}",
                    )
                    new = dict(zip(FIELDS, map(str, row), strict=True))
                    others = [old for old in read() if any(old[key] != new[key] for key in FIELDS[:4])]
                    with RESULTS.open("w", newline="") as file:
                        writer = csv.DictWriter(file, FIELDS, lineterminator="\n")
                        writer.writeheader()
                        writer.writerows(sorted([*others, new], key=lambda one: [one[key] for key in FIELDS[:4]]))
                    print(*new.values(), sep=",", flush=True)


def report():
    """Write the table of the smallest coverage of each statistic and law."""
    rows = [row for row in read() if "per person" not in row["statistic"]]
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
    parser.add_argument("--rows", type=int, default=1, help="rows of each person")
    parser.add_argument("--equal", type=int, help="rows of each person that are equal, by default all")
    parser.add_argument("--laws", nargs="*", choices=LAWS, default=tuple(LAWS))
    given = parser.parse_args()
    if given.what == "report":
        report()
    else:
        run(
            given.task,
            given.runs,
            given.epsilons,
            given.widths,
            given.sizes,
            given.rows,
            given.equal or given.rows,
            given.laws,
        )


if __name__ == "__main__":
    main()
