"""Fit time of the private classifiers, as a ratio to scikit-learn's, in one process.

The rounds are interleaved. The script prints the ratio of each round and the median. The certificate is timed
separately.

    python examples/benchmarks/fit_speed.py [n_samples n_features]
"""

import statistics
import sys
import time

import numpy as np
from sklearn.linear_model import LogisticRegression

from skdp import ObjPertLogReg, OutputPertLogReg
from skdp.solvers import certified

ROUNDS = 9


def timed(action):
    """Return the seconds of a call."""
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def main():
    """Print the ratios."""
    n_samples, n_features = (int(a) for a in sys.argv[1:3]) if len(sys.argv) > 2 else (100_000, 100)
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 1, (n_samples, n_features)) / np.sqrt(n_features)
    w = 20 * rng.normal(size=n_features)
    y = (X @ w - (X @ w).mean() + rng.logistic(size=n_samples) > 0).astype(int)

    certificate = [0.0]
    whole = certified.Objective.certified_gradient

    def watched(self, theta):
        start = time.perf_counter()
        result = whole(self, theta)
        certificate[0] += time.perf_counter() - start
        return result

    certified.Objective.certified_gradient = watched

    for estimator in (ObjPertLogReg, OutputPertLogReg):
        for delta in (1e-5, 0.0):
            model = estimator(epsilon=1.0, delta=delta, data_norm=1.0, classes=[0, 1])
            C = model.fit(X[:10], y[:10]).C_
            reference = LogisticRegression(C=C, solver="newton-cholesky")
            ratios, shares = [], []
            for _ in range(ROUNDS):
                base = timed(lambda reference=reference: reference.fit(X, y))
                certificate[0] = 0.0
                own = timed(lambda model=model: model.fit(X, y))
                ratios.append(own / base)
                shares.append(certificate[0] / own)
            print(
                f"{estimator.__name__}, delta={delta:g}: ratio {statistics.median(ratios):.2f} "
                f"[{min(ratios):.2f}, {max(ratios):.2f}], of which certificate {statistics.median(shares):.0%}"
            )


if __name__ == "__main__":
    main()
