"""Fit time of private principal components, as a ratio to scikit-learn's by the covariance, in one process.

The rounds are interleaved. The script prints the ratio of each round and the median. Memory is the peak in tracemalloc,
relative to X.

    OMP_NUM_THREADS=1 python examples/benchmarks/pca_speed.py [n_components]
"""

import statistics
import sys
import time
import tracemalloc

import numpy as np
from sklearn.decomposition import PCA

from skdp import DPPCA, ExpMechPCA

ROUNDS = 7
SHAPES = [(1_000, 64), (10_000, 64), (100_000, 64), (10_000, 256), (30_000, 256), (100_000, 256)]


def timed(action):
    """Return the seconds of a call."""
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def main():
    """Print the ratios."""
    k = int(sys.argv[1]) if len(sys.argv) > 1 else 10
    rng = np.random.default_rng(0)
    print(f"{k} components; median ratio of {ROUNDS} rounds [least, largest], milliseconds, peak memory")
    for n_samples, n_features in SHAPES:
        X = rng.normal(size=(n_samples, n_features)) / np.sqrt(np.arange(1, n_features + 1))
        reference = PCA(k, svd_solver="covariance_eigh")
        own = {
            "DPPCA, delta 1e-5": DPPCA(k, delta=1e-5, data_norm=4.0),
            "DPPCA, centred first": DPPCA(k, delta=1e-5, data_norm=4.0, centered_norm=3.0),
            "ExpMechPCA": ExpMechPCA(k, data_norm=4.0),
            "ExpMechPCA, private mean": ExpMechPCA(k, data_norm=4.0, center="private"),
        }
        times = {name: [] for name in own}
        base = []
        for _ in range(ROUNDS):
            base.append(timed(lambda X=X, reference=reference: reference.fit(X)))
            for name, model in own.items():
                times[name].append(timed(lambda X=X, model=model: model.fit(X)))
        print(f"{n_samples} x {n_features}: scikit-learn {1e3 * statistics.median(base):.1f} ms")
        for name, model in own.items():
            ratios = [own_time / time for own_time, time in zip(times[name], base, strict=True)]
            tracemalloc.start()
            model.fit(X)
            peak = tracemalloc.get_traced_memory()[1] / X.nbytes
            tracemalloc.stop()
            print(
                f"    {name:26} {statistics.median(ratios):5.2f} [{min(ratios):.2f}, {max(ratios):.2f}], "
                f"{1e3 * statistics.median(times[name]):.1f} ms, {peak:.2f} X"
            )


if __name__ == "__main__":
    main()
