"""Errors of `skdp.stats` and of diffprivlib.tools on the same records, bounds and budgets.

Each line has the root mean square error of both over the same number of calls, as a multiple of the standard deviation
of the records (for counts, in records). diffprivlib treats the number of records as public, and protects against the
replacement of a record. skdp protects against adding or removing a record, and the number of records is private.

    python examples/benchmarks/statistics_errors.py [calls] [rows ...]
"""

import sys
import time
import warnings

import numpy as np
from diffprivlib import tools

from skdp import stats

EPSILONS = (0.01, 0.1, 1.0, 10.0)
WIDTHS = (1, 10, 1000)


def pairs(bounds, epsilon):
    """Return, by name, the exact statistic, that of skdp and that of diffprivlib."""
    given = {"bounds": bounds, "epsilon": epsilon}
    return {
        "count": (
            lambda x: np.count_nonzero(x > 3),
            lambda x: np.maximum(stats.proportion(x > 3, epsilon=epsilon).spread.a, 0),
            lambda x: tools.count_nonzero(x > 3, epsilon=epsilon),
        ),
        "sum": (np.sum, lambda x: stats.sum(x, **given).value, lambda x: tools.sum(x, **given)),
        "mean": (np.mean, lambda x: stats.mean(x, **given).value, lambda x: tools.mean(x, **given)),
        "mean, direct": (
            np.mean,
            lambda x: stats.mean(x, method="direct", **given).value,
            lambda x: tools.mean(x, **given),
        ),
        "var": (np.var, lambda x: stats.var(x, **given).value, lambda x: tools.var(x, **given)),
        "std": (np.std, lambda x: stats.std(x, **given).value, lambda x: tools.std(x, **given)),
        "median": (np.median, lambda x: stats.median(x, **given).value, lambda x: tools.median(x, **given)),
        "quartile": (
            lambda x: np.quantile(x, 0.25),
            lambda x: stats.quantile(x, 0.25, **given).value,
            lambda x: tools.quantile(x, 0.25, **given),
        ),
        "histogram": (
            lambda x: np.histogram(x, 10, bounds)[0],
            lambda x: np.maximum(stats.histogram(x, 10, **given).value, 0),
            lambda x: tools.histogram(x, epsilon=epsilon, bins=10, range=bounds)[0],
        ),
    }


def measured(call, x, exact, calls):
    """Return the root mean square error of a call, and the median of its time."""
    errors, times = [], []
    for _ in range(calls):
        start = time.perf_counter()
        found = call(x)
        times.append(time.perf_counter() - start)
        errors.append(np.mean((np.asarray(found, dtype=float) - exact) ** 2))
    return float(np.sqrt(np.mean(errors))), float(np.median(times))


def main():
    """Print one line for each statistic, number of rows, width of the bounds and epsilon."""
    calls = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    sizes = [int(n) for n in sys.argv[2:]] or [1000, 10_000, 100_000]
    warnings.simplefilter("ignore")
    rng = np.random.default_rng(0)
    print("statistic,rows,width,epsilon,skdp,diffprivlib,ratio,skdp_ms,diffprivlib_ms")
    for n in sizes:
        x = rng.beta(2, 5, n) * 10
        for width in WIDTHS:
            for epsilon in EPSILONS:
                for name, (exact, ours, theirs) in pairs((0.0, 10.0 * width), epsilon).items():
                    truth = exact(x)
                    (a, t), (b, u) = (measured(call, x, truth, calls) for call in (ours, theirs))
                    unit = 1.0 if name in ("count", "histogram") else float(np.std(x))
                    line = (
                        name,
                        n,
                        width,
                        f"{epsilon:g}",
                        f"{a / unit:.4g}",
                        f"{b / unit:.4g}",
                        f"{a / b if b else 1:.3f}",
                    )
                    print(*line, f"{1e3 * t:.2f}", f"{1e3 * u:.2f}", sep=",", flush=True)


if __name__ == "__main__":
    main()
