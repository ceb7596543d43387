"""Fit time and memory of DPKMeans, as ratios to scikit-learn's KMeans from one start, in one process.

Interleaved rounds; the median of the ratios of each round, with the least and the largest. Memory is the peak that
tracemalloc sees, relative to X. Rows without clusters are where scikit-learn needs many iterations, well-separated
clusters where it needs fewest.

    OMP_NUM_THREADS=1 python examples/benchmarks/kmeans_speed.py
"""

import statistics
import time
import tracemalloc

import numpy as np
from sklearn.cluster import KMeans

from skdp import DPKMeans

ROUNDS = 7


def timed(action):
    """Seconds that a call takes."""
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def rows(n_samples, n_features, clustered):
    """Gaussian clusters in the unit box, or rows that are uniform in it."""
    rng = np.random.default_rng(0)
    if not clustered:
        return rng.uniform(size=(n_samples, n_features))
    centres = rng.uniform(0.1, 0.9, (10, n_features))
    return np.clip(
        centres[rng.integers(10, size=n_samples)] + 0.03 * rng.standard_normal((n_samples, n_features)), 0, 1
    )


def main():
    """Print the ratios, then the growth with rows and with columns."""
    cases = [
        (10_000, 10, True),
        (50_000, 2, True),
        (50_000, 10, True),
        (50_000, 50, True),
        (200_000, 10, True),
        (50_000, 2, False),
        (50_000, 10, False),
        (50_000, 50, False),
    ]
    for n_samples, n_features, clustered in cases:
        X = rows(n_samples, n_features, clustered)
        model = DPKMeans(10, epsilon=1.0, delta=1e-5, bounds=(0, 1))
        reference = KMeans(10, n_init=1, random_state=0)
        model.fit(X[:100])
        reference.fit(X[:100])
        ratios, own = [], []
        for _ in range(ROUNDS):
            base = timed(lambda reference=reference, X=X: reference.fit(X))
            own.append(timed(lambda model=model, X=X: model.fit(X)))
            ratios.append(own[-1] / base)
        tracemalloc.start()
        model.fit(X)
        peak = tracemalloc.get_traced_memory()[1] / X.nbytes
        tracemalloc.stop()
        print(
            f"{n_samples} x {n_features}, {'clusters' if clustered else 'uniform'}: "
            f"ratio {statistics.median(ratios):.2f} [{min(ratios):.2f}, {max(ratios):.2f}], "
            f"{1e3 * statistics.median(own):.1f} ms; peak memory {peak:.2f} X"
        )


if __name__ == "__main__":
    main()
