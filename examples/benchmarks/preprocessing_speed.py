"""Fit time of the scalers and binners, as ratios to scikit-learn's counterparts, in one process.

The rounds are interleaved. The script prints the ratio of each round and the median. Memory is the peak in tracemalloc,
relative to X.

    OMP_NUM_THREADS=1 python examples/benchmarks/preprocessing_speed.py [n_features]
"""

import statistics
import sys
import time
import tracemalloc

import numpy as np
from sklearn.preprocessing import KBinsDiscretizer, MinMaxScaler, StandardScaler

from skdp.preprocessing import BoundsScaler, DPQuantileBinner, DPStandardScaler

ROUNDS = 15


def timed(action):
    """Return the seconds of a call."""
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def compare(name, action, reference, size):
    """Print the ratio of two calls."""
    action(), reference()
    ratios, own = [], []
    for _ in range(ROUNDS):
        base = timed(reference)
        own.append(timed(action))
        ratios.append(own[-1] / base)
    tracemalloc.start()
    action()
    peak = tracemalloc.get_traced_memory()[1] / size
    tracemalloc.stop()
    print(
        f"  {name}: ratio {statistics.median(ratios):.2f} [{min(ratios):.2f}, {max(ratios):.2f}], "
        f"{1e3 * statistics.median(own):.1f} ms; peak memory {peak:.2f} X"
    )


def main():
    """Print the ratios."""
    n_features = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    rng = np.random.default_rng(0)
    for n_samples in (1_000, 10_000, 100_000, 1_000_000):
        X = np.clip(rng.normal(0, 0.4, (n_samples, n_features)), -1, 1)
        print(f"{n_samples} x {n_features}")
        for delta in (1e-5, 0.0):
            scaler = DPStandardScaler(epsilon=1.0, delta=delta, bounds=(-1, 1))
            standard = StandardScaler()
            compare(
                f"DPStandardScaler.fit / StandardScaler.fit, delta={delta:g}",
                lambda X=X, scaler=scaler: scaler.fit(X),
                lambda X=X, standard=standard: standard.fit(X),
                X.nbytes,
            )
        compare(
            "DPStandardScaler.transform / StandardScaler.transform",
            lambda X=X, scaler=scaler: scaler.transform(X),
            lambda X=X, standard=standard: standard.transform(X),
            X.nbytes,
        )
        bounds, minmax = BoundsScaler((-1, 1)), MinMaxScaler()
        compare(
            "BoundsScaler.fit_transform / MinMaxScaler.fit_transform",
            lambda X=X, bounds=bounds: bounds.fit_transform(X),
            lambda X=X, minmax=minmax: minmax.fit_transform(X),
            X.nbytes,
        )
        if n_samples <= 100_000:
            binner = DPQuantileBinner(8, epsilon=1.0, delta=1e-5, bounds=(-1, 1))
            bins = KBinsDiscretizer(
                8,
                strategy="quantile",
                encode="ordinal",
                subsample=None,
                **({"quantile_method": "linear"} if "quantile_method" in KBinsDiscretizer().get_params() else {}),
            )
            compare(
                "DPQuantileBinner.fit / KBinsDiscretizer.fit",
                lambda X=X, binner=binner: binner.fit(X),
                lambda X=X, bins=bins: bins.fit(X),
                X.nbytes,
            )


if __name__ == "__main__":
    main()
