"""Errors and times of `skdp.stats`, diffprivlib.tools, OpenDP and Tumult Analytics on the same records and budgets.

    python examples/benchmarks/statistics_errors.py run {skdp,diffprivlib,opendp,tumult} [--rows 1000 ...]
        [--only mean ...] [--epsilons 0.01 ...] [--runs 400]
    python examples/benchmarks/statistics_errors.py report
    python examples/benchmarks/statistics_errors.py speed [--rows 1000000]
    python examples/benchmarks/statistics_errors.py memory [--rows 10000000]

``run`` writes a row for each cell to ``docs/benchmarks/statistics.csv``, in place of an earlier row of the same cell
and library. It needs that library only. The records are 10 times a beta(2, 5) variable. An error is the root mean
square of the difference from the exact statistic of the records, as a multiple of their standard deviation (for counts,
in records). ``report`` makes ``docs/user_guide/statistics_tables.inc`` from that file.

diffprivlib takes the number of records to be public and protects against the replacement of a record. The others
protect against adding or removing a record, and the number of records is private. OpenDP's means are sums over counts,
with half of the budget for each, and its quantiles have 1,001 candidates that are evenly spaced between the bounds. Its
variance needs a public number of records and is not compared. Tumult runs on Spark: it computes all repetitions of a
cell as groups of one table, and is compared up to 10,000 records.

    python -m pip install diffprivlib==0.6.6 scikit-learn==1.7.2
    python -m pip install opendp==0.16.0
    python -m pip install tmlt.analytics==0.21.0
"""

import argparse
import csv
import math
import resource
import sys
import tempfile
import time
import warnings
from collections import defaultdict
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))
RESULTS = ROOT / "docs" / "benchmarks" / "statistics.csv"
REPORT = ROOT / "docs" / "user_guide" / "statistics_tables.inc"

EPSILONS = (0.01, 0.1, 1.0, 10.0)
WIDTHS = (1, 10, 1000)
SIZES = (1000, 10_000, 100_000, 1_000_000)
COUNTS = ("count", "histogram")
EXACT = {
    "count": lambda x, bounds: np.count_nonzero(x > 3),
    "sum": lambda x, bounds: np.sum(x),
    "mean": lambda x, bounds: np.mean(x),
    "var": lambda x, bounds: np.var(x),
    "std": lambda x, bounds: np.std(x),
    "median": lambda x, bounds: np.median(x),
    "quartile": lambda x, bounds: np.quantile(x, 0.25),
    "histogram": lambda x, bounds: np.histogram(x, 10, bounds)[0],
}
FIELDS = ("library", "statistic", "rows", "width", "epsilon", "runs", "rmse", "error", "milliseconds")

# A ratio counts as larger than 1 beyond so many standard errors.
CLEAR = 3.0


def records(n):
    """Return the records."""
    return np.random.default_rng(n).beta(2, 5, n) * 10


def runs_of(n):
    """Return how often a cell is repeated. Rows of the results state their own numbers."""
    return 100 if n < 1_000_000 else 20


def skdp_calls(bounds, epsilon):
    """Return functions of records by name."""
    from skdp import stats

    given = {"bounds": bounds, "epsilon": epsilon}
    return {
        "count": lambda x: np.maximum(stats.proportion(x > 3, epsilon=epsilon).spread.a, 0),
        "sum": lambda x: stats.sum(x, **given).value,
        "mean": lambda x: stats.mean(x, **given).value,
        "var": lambda x: stats.var(x, **given).value,
        "std": lambda x: stats.std(x, **given).value,
        "median": lambda x: stats.median(x, **given).value,
        "quartile": lambda x: stats.quantile(x, 0.25, **given).value,
        "histogram": lambda x: np.maximum(stats.histogram(x, 10, **given).value, 0),
    }


def diffprivlib_calls(bounds, epsilon):
    """Return functions of records by name."""
    from diffprivlib import tools

    given = {"bounds": bounds, "epsilon": epsilon}
    return {
        "count": lambda x: tools.count_nonzero(x > 3, epsilon=epsilon),
        "sum": lambda x: tools.sum(x, **given),
        "mean": lambda x: tools.mean(x, **given),
        "var": lambda x: tools.var(x, **given),
        "std": lambda x: tools.std(x, **given),
        "median": lambda x: tools.median(x, **given),
        "quartile": lambda x: tools.quantile(x, 0.25, **given),
        "histogram": lambda x: tools.histogram(x, epsilon=epsilon, bins=10, range=bounds)[0],
    }


def opendp_calls(bounds, epsilon):
    """Return functions of records by name."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.symmetric_distance()
    candidates = np.linspace(*bounds, 1001).tolist()
    inner = np.linspace(*bounds, 11)[1:-1].tolist()

    def calibrated(make, budget):
        return dp.binary_search_chain(make, d_in=1, d_out=budget)

    def total(budget):
        return calibrated(
            lambda scale: space >> dp.t.then_clamp(bounds) >> dp.t.then_sum() >> dp.m.then_laplace(scale), budget
        )

    def number(budget):
        return calibrated(lambda scale: space >> dp.t.then_count() >> dp.m.then_laplace(scale), budget)

    def quantile(level):
        return calibrated(
            lambda scale: space >> dp.m.then_private_quantile(dp.max_divergence(), candidates, level, scale), epsilon
        )

    sum_of_half, number_of_half, number_of_all = total(epsilon / 2), number(epsilon / 2), number(epsilon)
    counts = calibrated(
        lambda scale: (
            space
            >> dp.t.then_find_bin(inner)
            >> dp.t.then_count_by_categories(list(range(10)), null_category=False)
            >> dp.m.then_laplace(scale)
        ),
        epsilon,
    )
    return {
        "count": lambda x: max(number_of_all(x[x > 3]), 0),
        "sum": total(epsilon),
        "mean": lambda x: min(max(sum_of_half(x) / max(number_of_half(x), 1), bounds[0]), bounds[1]),
        "median": quantile(0.5),
        "quartile": quantile(0.25),
        "histogram": lambda x: np.maximum(counts(x), 0),
    }


def tumult_session(x, runs):
    """Return a session that holds so many copies of the records, and a query builder over the copies as groups."""
    import pandas as pd
    from pyspark.sql import SparkSession
    from tmlt.analytics import AddOneRow, KeySet, PureDPBudget, QueryBuilder, Session

    builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
    spark = builder.config("spark.sql.shuffle.partitions", "1").config("spark.driver.memory", "3g").getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    table = pd.DataFrame({"x": np.tile(x, runs), "run": np.repeat(np.arange(runs), len(x))})
    session = Session.from_dataframe(PureDPBudget(math.inf), "t", spark.createDataFrame(table), AddOneRow())
    return session, lambda: QueryBuilder("t"), KeySet.from_dict({"run": list(range(runs))}), PureDPBudget


def tumult_values(session, query, keys, budget, name, bounds, epsilon):
    """Return the values of one statistic in all groups, or None where it is not compared."""
    ask = {
        "count": lambda: query().filter("x > 3").groupby(keys).count(name="y"),
        "sum": lambda: query().groupby(keys).sum("x", *bounds, name="y"),
        "mean": lambda: query().groupby(keys).average("x", *bounds, name="y"),
        "var": lambda: query().groupby(keys).variance("x", *bounds, name="y"),
        "std": lambda: query().groupby(keys).stdev("x", *bounds, name="y"),
        "median": lambda: query().groupby(keys).median("x", *bounds, name="y"),
        "quartile": lambda: query().groupby(keys).quantile("x", 0.25, *bounds, name="y"),
    }
    if name not in ask:
        return None
    found = session.evaluate(ask[name](), budget(epsilon)).toPandas()["y"].to_numpy(dtype=float)
    found = found[np.isfinite(found)]
    return np.maximum(found, 0) if name == "count" else found


def summary(errors):
    """Return the root of the mean, and its standard error."""
    errors = np.asarray(errors, dtype=float)
    root = math.sqrt(errors.mean())
    return root, float(errors.std() / (2 * max(root, 1e-300) * math.sqrt(len(errors))))


def cells(library, sizes, only, epsilons, runs):
    """Measure the cells of one library."""
    for n in sizes:
        x = records(n)
        session = tumult_session(x, runs or runs_of(n)) if library == "tumult" else None
        for width in WIDTHS:
            bounds = (0.0, 10.0 * width)
            for epsilon in epsilons:
                calls = None if session else CALLS[library](bounds, epsilon)
                for name in EXACT:
                    if (only and name not in only) or (calls and name not in calls):
                        continue
                    truth = EXACT[name](x, bounds)
                    if session:
                        start = time.perf_counter()
                        found = tumult_values(*session, name, bounds, epsilon)
                        if found is None:
                            continue
                        errors, times = (found - truth) ** 2, [(time.perf_counter() - start) / len(found)]
                    else:
                        errors, times = [], []
                        for _ in range(runs or runs_of(n)):
                            start = time.perf_counter()
                            found = calls[name](x)
                            times.append(time.perf_counter() - start)
                            errors.append(np.mean((np.asarray(found, dtype=float) - truth) ** 2))
                    unit = 1.0 if name in COUNTS else float(np.std(x))
                    root, error = (one / unit for one in summary(errors))
                    yield (library, name, n, width, epsilon, len(errors), root, error, 1e3 * float(np.median(times)))


CALLS = {"skdp": skdp_calls, "diffprivlib": diffprivlib_calls, "opendp": opendp_calls}


def read():
    """Return the rows of the results."""
    if not RESULTS.exists():
        return []
    with RESULTS.open(newline="") as file:
        return list(csv.DictReader(file))


def run(library, sizes, only, epsilons, runs):
    """Measure cells, and write each when it is done."""
    for row in cells(library, sizes, only, epsilons, runs):
        new = dict(zip(FIELDS, (one if isinstance(one, str) else f"{one:.4g}" if isinstance(one, float) else str(one)
                                for one in row), strict=True))  # fmt: skip
        key = FIELDS[:5]
        kept = [old for old in read() if any(old[name] != new[name] for name in key)]
        with RESULTS.open("w", newline="") as file:
            writer = csv.DictWriter(file, FIELDS, lineterminator="\n")
            writer.writeheader()
            writer.writerows(sorted([*kept, new], key=_order))
        print(*new.values(), sep=",", flush=True)


def _order(row):
    names = list(EXACT)
    return (row["library"], names.index(row["statistic"]), int(row["rows"]), int(row["width"]), float(row["epsilon"]))


def report():
    """Print the table of ratios to the best peer in each cell."""
    found = defaultdict(dict)
    for row in read():
        cell = row["statistic"], int(row["rows"]), int(row["width"]), float(row["epsilon"])
        found[cell][row["library"]] = float(row["rmse"]), float(row["error"])
    lines = [".. list-table::", "   :header-rows: 1", ""]
    heads = ["records, bounds", *(f"epsilon {epsilon:g}" for epsilon in EPSILONS)]
    names = {1: "tight", 10: "10 times", 1000: "1,000 times"}
    later = []
    for name in EXACT:
        lines += _lines([name, *heads[1:]]) if name == next(iter(EXACT)) else _lines([f"**{name}**", *[""] * 4])
        for n in SIZES:
            for width in WIDTHS:
                texts = []
                for epsilon in EPSILONS:
                    own = found.get((name, n, width, epsilon), {})
                    peers = {library: value for library, value in own.items() if library != "skdp"}
                    if "skdp" not in own or not peers:
                        texts.append("")
                        continue
                    best = min(peers, key=lambda library: peers[library][0])
                    (a, s), (b, t) = own["skdp"], peers[best]
                    ratio = a / b if b else 1.0
                    error = ratio * math.hypot(s / a if a else 0, t / b if b else 0)
                    behind = ratio - 1 > CLEAR * error
                    texts.append(f"{ratio:.2f}{'*' if behind else ''}" if ratio >= 0.005 else "0.00")
                    if behind:
                        later.append((name, n, width, epsilon, best, ratio))
                lines += _lines([f"{n:,}, {names[width]}", *texts])
    REPORT.write_text("\n".join(lines) + "\n")
    for one in later:
        print("not first:", *one)


def _lines(texts):
    return [f"   {'*' if i == 0 else ' '} - {text}".rstrip() for i, text in enumerate(texts)]


def speed(n):
    """Print the time of one call of skdp as a ratio to diffprivlib's, in processor time."""
    from skdp import Schema, stats

    x = records(n)
    bounds, codes = (0.0, 10.0), np.random.default_rng(0).integers(0, 3, n)
    schema = Schema({"code": [0, 1, 2]})
    ours, theirs = skdp_calls(bounds, 1.0), diffprivlib_calls(bounds, 1.0)
    ours["count"] = lambda x: stats.count(x)
    ours["value_counts"] = lambda x: stats.value_counts({"code": codes}, schema=schema)
    theirs["value_counts"] = lambda x: __import__("diffprivlib").tools.histogram(codes, bins=3, range=(0, 3))
    for name, call in ours.items():
        times = []
        for function in (call, theirs[name]):
            function(x)
            each = []
            for _ in range(9):
                start = time.process_time()
                function(x)
                each.append(time.process_time() - start)
            times.append(min(each))
        print(f"{name},{n},{1e3 * times[0]:.2f},{1e3 * times[1]:.2f},{times[0] / times[1]:.2f}", flush=True)


def memory(n):
    """Print by how much the largest resident memory grows, for records in a file that is mapped."""
    from skdp import stats

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x.npy"
        mapped = np.lib.format.open_memmap(path, mode="w+", dtype=np.float64, shape=(n,))
        for start in range(0, n, 2**16):
            mapped[start : start + 2**16] = records(min(2**16, n - start))
        mapped.flush()
        del mapped
        x = np.load(path, mmap_mode="r")
        for name in ("sum", "mean", "std", "median", "histogram"):
            start = time.process_time()
            getattr(stats, name)(x, bounds=(0.0, 10.0))
            seconds = time.process_time() - start
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
            print(
                f"{name},{n},{seconds:.2f} s,{x.nbytes / 2**20:.0f} MiB of records,{peak:.0f} MiB at most", flush=True
            )


def main():
    """Do what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("task", choices=("run", "report", "speed", "memory"))
    parser.add_argument("library", nargs="?", choices=("skdp", "diffprivlib", "opendp", "tumult"))
    parser.add_argument("--rows", type=int, nargs="*")
    parser.add_argument("--only", nargs="*", choices=tuple(EXACT))
    parser.add_argument("--runs", type=int)
    parser.add_argument("--epsilons", type=float, nargs="*", default=EPSILONS)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    if given.task == "run":
        sizes = given.rows or (SIZES[:2] if given.library == "tumult" else SIZES)
        run(given.library, sizes, given.only, given.epsilons, given.runs)
    elif given.task == "report":
        report()
    elif given.task == "speed":
        speed(given.rows[0] if given.rows else 1_000_000)
    else:
        memory(given.rows[0] if given.rows else 10_000_000)


if __name__ == "__main__":
    main()
