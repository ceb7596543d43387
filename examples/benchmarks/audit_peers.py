"""Audit diffprivlib's models with skdp.audit, to see which claimed epsilons are refuted.

Run it where diffprivlib can be imported (it needs scikit-learn 1.7 or older):

    python examples/benchmarks/audit_peers.py [--runs 2000]

The neighbouring data sets differ in one replaced record. This is the relation that diffprivlib's models use.
"""

import argparse
import warnings

import numpy as np
from diffprivlib import models

from skdp.audit import audit_epsilon

warnings.filterwarnings("ignore")


def replaced(X, y, row, label):
    """Return two data sets with a different first record."""
    other, labels = X.copy(), y.copy()
    other[0], labels[0] = row, label
    return (X, y), (other, labels)


def cases():
    """Yield name, model, pair of neighbours, and statistic, which is None for all fitted numbers."""
    zeros = np.zeros((20, 1))
    pair = replaced(zeros, np.zeros(20), 1.0, 1.0)
    for bounds in ((-1.0, 1.0), (0.0, 1.0)):
        model = models.LinearRegression(epsilon=1.0, bounds_X=bounds, bounds_y=(-1.0, 1.0), fit_intercept=False)
        yield f"LinearRegression, bounds {bounds}", model, pair, None
    # Rows of the stated norm that pull the model to one side, where all labels but one agree.
    for norm in (1.0, 100.0):
        X = np.full((200, 1), norm)
        labels = np.arange(200) % 2
        model = models.LogisticRegression(epsilon=1.0, data_norm=norm, fit_intercept=False, C=1.0)
        yield f"LogisticRegression, data_norm {norm:g}", model, replaced(X, labels, -norm, 0), None
    X = np.repeat([[0.25], [0.75]], 50, axis=0)
    labels = np.repeat([0, 1], 50)
    model = models.GaussianNB(epsilon=1.0, bounds=(0.0, 1.0))
    yield "GaussianNB", model, replaced(X, labels, 1.0, 1), None
    model = models.RandomForestClassifier(
        n_estimators=1, epsilon=1.0, bounds=(0.0, 1.0), classes=[0, 1], max_depth=1, shuffle=False
    )
    yield "RandomForestClassifier", model, replaced(X, labels, 0.25, 1), lambda m: m.predict_proba([[0.25]])[0, :1]
    model = models.StandardScaler(epsilon=1.0, bounds=(0.0, 1.0))
    yield "StandardScaler", model, tuple((data,) for data, _ in replaced(X, labels, 1.0, 0)), None
    model = models.PCA(1, epsilon=1.0, data_norm=1.0, bounds=(0.0, 1.0))
    wide = np.repeat([[0.6, 0.0], [0.0, 0.6]], 10, axis=0)
    pair = tuple((data,) for data, _ in replaced(wide, np.zeros(20), [0.0, 0.6], 0))
    yield "PCA", model, pair, None
    model = models.KMeans(1, epsilon=1.0, bounds=(0.0, 1.0))
    yield "KMeans", model, tuple((data,) for data, _ in replaced(X[:50], labels[:50], 1.0, 0)), None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=2000)
    arguments = parser.parse_args()
    for name, model, (D, D_prime), statistic in cases():
        found = audit_epsilon(model, D, D_prime, statistic=statistic, n_runs=arguments.runs, delta=0.0)
        print(f"{name:40s} {found}", flush=True)


if __name__ == "__main__":
    main()
