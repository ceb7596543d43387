"""Fit time and memory of naive Bayes, as ratios to scikit-learn's GaussianNB, in one process.

Interleaved rounds; the ratio of each round, and the median. Memory is the peak that tracemalloc sees, relative to X.

    OMP_NUM_THREADS=1 python examples/benchmarks/naive_bayes_speed.py [n_features [n_classes]]
"""

import statistics
import sys
import time
import tracemalloc

import numpy as np
from sklearn.naive_bayes import GaussianNB

from skdp import DPNaiveBayes

ROUNDS = 15


def timed(action):
    """Seconds that a call takes."""
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def main():
    """Print the ratios."""
    n_features = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    n_classes = int(sys.argv[2]) if len(sys.argv) > 2 else 2
    rng = np.random.default_rng(0)
    for n_samples in (10_000, 100_000):
        y = rng.integers(n_classes, size=n_samples)
        X = np.clip(0.2 * y[:, None] / n_classes + rng.normal(0, 0.4, (n_samples, n_features)), -1, 1)
        for numeric in ("binned", "gaussian"):
            for delta in (1e-5, 0.0):
                model = DPNaiveBayes(
                    epsilon=1.0, delta=delta, bounds=(-1, 1), numeric=numeric, classes=np.arange(n_classes)
                )
                reference = GaussianNB()
                model.fit(X[:10], y[:10])
                reference.fit(X[:100], y[:100])
                ratios, own = [], []
                for _ in range(ROUNDS):
                    base = timed(lambda reference=reference, X=X, y=y: reference.fit(X, y))
                    own.append(timed(lambda model=model, X=X, y=y: model.fit(X, y)))
                    ratios.append(own[-1] / base)
                nothing = statistics.median(
                    timed(lambda model=model, X=X, y=y: model.fit(X[:0], y[:0])) for _ in range(9)
                )
                tracemalloc.start()
                model.fit(X, y)
                peak = tracemalloc.get_traced_memory()[1] / X.nbytes
                tracemalloc.stop()
                print(
                    f"{n_samples} x {n_features}, {numeric}, delta={delta:g}: ratio {statistics.median(ratios):.2f} "
                    f"[{min(ratios):.2f}, {max(ratios):.2f}], {1e3 * statistics.median(own):.1f} ms, without rows "
                    f"{1e3 * nothing:.1f} ms; peak memory {peak:.2f} X"
                )


if __name__ == "__main__":
    main()
