"""Boosted trees of random structure on Adult, with noise in the sums of all leaves (Maddock and others, 2022).

    python examples/benchmarks/private_boosting.py

The script prints the area under the ROC curve for several settings, on one split, with one draw of noise. The noise is
NumPy's, so that this is not a private implementation. The contribution of a record to a leaf is a gradient in [-1, 1]
and half of a second derivative in [0, 1/4].
"""

import math

import numpy as np
from scipy.special import expit
from sklearn.metrics import roc_auc_score

from skdp.accounting import gaussian_mu
from skdp.datasets import load_adult

DELTA = 1e-5
EPSILONS = (0.1, 1.0, 10.0)

# Rounds, trees of a round, levels of a tree, and step length.
SETTINGS = [
    (100, 1, 4, 0.3),
    (300, 1, 4, 0.1),
    (20, 10, 4, 1.0),
    (50, 10, 4, 0.5),
    (100, 1, 6, 0.3),
    (300, 1, 2, 0.2),
    (30, 20, 6, 1.0),
    (10, 30, 8, 1.0),
]

# The ridge, in standard deviations of the noise.
RIDGES = (0.5, 3.0)


def columns(adult):
    """Return numbers in [0, 1] and codes of categories, and numbers of categories: 0 for numbers."""
    variables = [name.split("=")[0] for name in adult.feature_names]
    places = [np.flatnonzero([own == name for own in variables]) for name in dict.fromkeys(variables)]
    unit = adult.data * math.sqrt(len(places))
    X = np.column_stack([unit[:, own[0]] if len(own) == 1 else unit[:, own].argmax(axis=1) for own in places])
    for j, largest in ((2, 99_999), (3, 4_356)):
        # Capital gains and losses in logarithms.
        X[:, j] = np.log1p(X[:, j] * largest / 100) / np.log1p(largest / 100)
    return X, [0 if len(own) == 1 else len(own) for own in places]


def cells(rng, depth, sizes, *parts):
    """Draw a tree, with one column and one threshold or one set of categories for each level; return leaves of rows."""
    found = [np.zeros(len(X), dtype=int) for X in parts]
    for j in rng.integers(len(sizes), size=depth):
        subset, threshold = rng.random(sizes[j]) < 0.5, rng.random()
        for k, X in enumerate(parts):
            right = subset[X[:, j].astype(int)] if sizes[j] else X[:, j] > threshold
            found[k] = 2 * found[k] + right
    return found


def scores(train, labels, test, sizes, epsilon, setting, ridge, seed):
    n_rounds, n_trees, depth, step = setting
    rng, n_leaves = np.random.default_rng(seed), 2**depth
    noise = math.sqrt((1 + 1 / 64) * n_rounds * n_trees) / gaussian_mu(epsilon, DELTA)
    own, out = np.zeros(len(train)), np.zeros(len(test))
    for _ in range(n_rounds):
        p = expit(own)
        move, other = np.zeros(len(own)), np.zeros(len(out))
        for _ in range(n_trees):
            here, there = cells(rng, depth, sizes, train, test)
            slope, bend = np.bincount(here, p - labels, n_leaves), np.bincount(here, p * (1 - p) / 2, n_leaves)
            slope = slope + noise * rng.standard_normal(n_leaves)
            bend = 2 * (bend + noise * rng.standard_normal(n_leaves))
            values = np.clip(-slope / (np.maximum(bend, 0) + ridge * noise + 1), -3, 3)
            move += values[here]
            other += values[there]
        own, out = own + step / n_trees * move, out + step / n_trees * other
    return out


def main():
    adult = load_adult()
    (X, sizes), y = columns(adult), adult.target
    train, test = np.split(np.random.default_rng(0).permutation(len(y)), [round(0.8 * len(y))])
    print("rounds, trees, levels, step, ridge:", *(f"epsilon {epsilon:g}" for epsilon in EPSILONS))
    for setting in SETTINGS:
        for ridge in RIDGES:
            found = [
                roc_auc_score(y[test], scores(X[train], y[train], X[test], sizes, epsilon, setting, ridge, 0))
                for epsilon in EPSILONS
            ]
            print(*setting, ridge, ":", *(f"{value:.4f}" for value in found), flush=True)


if __name__ == "__main__":
    main()
