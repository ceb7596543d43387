"""Fit time and memory of private trees, as ratios to scikit-learn's random forest, in one process.

The rounds are interleaved. The script prints the ratio of each round and the median. Memory is the peak in tracemalloc,
relative to X.

    OMP_NUM_THREADS=1 python examples/benchmarks/tree_speed.py [n_features]
"""

import statistics
import sys
import tempfile
import time
import tracemalloc
from pathlib import Path

import numpy as np
from sklearn.ensemble import RandomForestClassifier

from skdp import DPGreedyTree, DPRandomTree

ROUNDS = 7


def timed(action):
    """Return the seconds of a call."""
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def peak_of(action):
    """Return the peak of bytes in tracemalloc."""
    tracemalloc.start()
    action()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


def main():
    """Print the ratios."""
    n_features = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(100_000, n_features))
    y = (X[:, 0] + X[:, 1] * X[:, -1] + 0.3 * rng.normal(size=len(X)) > 0.8).astype(int)
    public = {"bounds": (0, 1), "classes": [0, 1], "max_depth": 5}
    reference = RandomForestClassifier(n_estimators=10, max_depth=5, n_jobs=1)
    print(f"{len(X)} x {n_features}; ratios to RandomForestClassifier(n_estimators=10, max_depth=5, n_jobs=1)")
    models = {
        f"{name}, delta={delta:g}": DPRandomTree(delta=delta, **public, **variant)
        for name, variant in {
            "10 trees": {"n_estimators": 10},
            "10 trees, equal weights": {"n_estimators": 10, "weights": "equal"},
            "10 trees, quantiles": {"n_estimators": 10, "thresholds": "quantile"},
            "default number": {},
        }.items()
        for delta in (1e-5, 0.0)
    }
    models |= {f"greedy tree, delta={delta:g}": DPGreedyTree(delta=delta, **public) for delta in (1e-5, 0.0)}
    for name, model in models.items():
        model.fit(X[:10], y[:10])
        ratios, own = [], []
        for _ in range(ROUNDS):
            base = timed(lambda: reference.fit(X, y))
            own.append(timed(lambda model=model: model.fit(X, y)))
            ratios.append(own[-1] / base)
        memory = peak_of(lambda model=model: model.fit(X, y)) / X.nbytes
        with tempfile.TemporaryDirectory() as folder:
            np.save(Path(folder, "X.npy"), X)
            mapped = np.load(Path(folder, "X.npy"), mmap_mode="r")
            from_disk = peak_of(lambda model=model, mapped=mapped: model.fit(mapped, y)) / X.nbytes
            del mapped
        print(
            f"{name}: ratio {statistics.median(ratios):.3f} [{min(ratios):.3f}, {max(ratios):.3f}], "
            f"{1e3 * statistics.median(own):.0f} ms; peak memory {memory:.2f} X, memory-mapped {from_disk:.2f} X"
        )


if __name__ == "__main__":
    main()
